"""`rlt bench any-airframe`: who flies, peers that are used right or not, what is told."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from policy_run import make_policy_run
from quadrotor_policies import controller
from rltools_host import cli
from rltools_host.bench import airframes, harness
from rltools_host.bench.airframes import (
    ALONE,
    MOST_TOGETHER,
    OURS,
    AirframesBenchmark,
    Pilot,
    flown,
    thrust_parts,
)
from rltools_host.errors import MissingToolError, RltError, UsageError
from rltools_host.flight.gate import load_gate
from rltools_host.flight.simulator import flight_library
from stub_peers import add_peer

# 4 (.0035 + .0144 w + .0922 w^2) N carry the 30.6 g of the table crazyflie-raptor.
HOVER = (-0.0144 + math.sqrt(0.0144**2 + 4 * 0.0922 * (0.0306 * 9.81 / 4 - 0.0035))) / (2 * 0.0922)
STUB = """
import sys
print('{"version": "3.1"}', flush=True)
while header := sys.stdin.buffer.read(4):
    sys.stdin.buffer.read(4 * 13 * 32)
    %s
    sys.stdout.buffer.flush()
"""
STEADY = f"import struct; sys.stdout.buffer.write(struct.pack('<f', {HOVER!r}) * 128)"


def test_the_thrust_of_a_speed_is_that_of_the_airframes_curve() -> None:
    found = np.zeros(2, flight_library().records["Airframe"])
    found["thrust"] = [[0.0035, 0.0144, 0.0922], [0, 5, 0]]
    parts = thrust_parts(found, np.array([[HOVER] * 4, [0, 0.25, 0.5, 1]]))
    assert parts[0] == pytest.approx([0.0306 * 9.81 / 4 / 0.1101] * 4, rel=1e-6)
    assert parts[1].tolist() == [0, 0.25, 0.5, 1]


@pytest.fixture
def request_of(tmp_path: Path) -> Any:
    run = make_policy_run(tmp_path / "run", controller())

    def make(peers: dict[str, str], **fields: Any) -> AirframesBenchmark:
        folder = tmp_path / "peers"
        folder.mkdir()
        for name, script in peers.items():
            add_peer(folder, tmp_path / "venv", name, STUB % script, "run.py")
        return AirframesBenchmark(
            *(str(run), str(run)),
            episodes=2,
            peers_directory=folder,
            environments_directory=tmp_path / "venv",
            **fields,
        )

    return make


def test_rates_of_each_by_part_and_by_table(
    request_of: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airframes, "RATES", airframes.RATES[:1])
    document = airframes.run(request_of({"steady": STEADY}, settings={"latency_ms": 0}))
    assert [row["name"] for row in document["rows"]] == [OURS, ALONE, "steady each 2 ms"]
    ours, alone, steady = document["rows"]
    assert {**ours, "name": 0, "title": 0} == {**alone, "name": 0, "title": 0}
    assert steady["version"] == "3.1"
    gate = load_gate("any-airframe")
    for row in document["rows"]:
        assert [part["part"] for part in row["parts"]] == list(gate.parts)
        assert all(part["episodes"] == 2 for part in row["parts"])
        assert np.sum(row["map"]["flights"]) == 16
    # Nobody's rotors are those of the drones here, so that one falls or rises.
    assert steady["parts"][0]["success_rate"] == 0
    out = capsys.readouterr().out
    assert "The gate any-airframe, 2 airframes, seed 4000000000" in out
    assert "with latency_ms=0" in out
    for head in ("part", "hover", "weak rotor", "table"):
        assert f"\n{head} " in out
    assert "steady each 2 ms 3.1" in out


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "sys.stdout.buffer.write(bytes(512))",
            "does not hold a Crazyflie at rest in still air: it is not used as it is meant",
        ),
        (
            "sys.stdout.buffer.write(b'\\xff' * 512)",
            "wrong answered something that is not a number",
        ),
        ("sys.exit('no motors')", "no motors"),
        ("break", "wrong: "),
    ],
)
def test_a_peer_that_is_used_wrong_is_no_figure(
    script: str, reason: str, request_of: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    document = airframes.run(request_of({"wrong": script}))
    assert [("error" in row) for row in document["rows"]] == [False, False, True, True]
    assert reason in document["rows"][2]["error"]
    assert f"wrong each 2 ms: {document['rows'][2]['error']}" in capsys.readouterr().out


def test_what_is_typed_wrong(request_of: Any) -> None:
    request = request_of({"steady": STEADY})
    with pytest.raises(UsageError, match='unknown peer "raptr"'):
        airframes.run(AirframesBenchmark(peers="raptr"))
    with pytest.raises(UsageError, match="--episodes 0"):
        airframes.run(AirframesBenchmark(request.run, request.run, episodes=0))
    with pytest.raises(UsageError, match="latency_ms=21 is out of bounds"):
        airframes.run(AirframesBenchmark(request.run, settings={"latency_ms": 21}))
    with pytest.raises(RltError, match="nowhere"):  # before anything is trained or flown
        airframes.run(AirframesBenchmark(alone="nowhere"))


@pytest.mark.all
def test_raptor_is_used_as_it_is_meant(
    request_of: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds its Crazyflie in still air, which the benchmark asks for, and flies most drones
    where commands are not late."""
    monkeypatch.setattr(airframes, "RATES", airframes.RATES[1:])
    request = request_of({})
    words = ["--run", request.run, "--alone", request.run, "--episodes", "10", "--json"]
    assert cli.run(["bench", "any-airframe", *words, "--set", "latency_ms=0"]) == 0
    _, _, raptor = json.loads(capsys.readouterr().out.splitlines()[-1])["rows"]
    assert raptor["version"] == "1.0.2"
    rates = {part["part"]: part["success_rate"] for part in raptor["parts"]}
    assert rates["hover"] > 0.5
    assert raptor["success_rate"] > 0.6


@pytest.fixture(scope="module")
def raptor(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """RAPTOR's process, with this option of its rate; skipped where it cannot be installed."""
    folder = AirframesBenchmark().peers_directory / "raptor"
    try:
        python = harness.python_of("raptor", folder / "requirements.txt")
    except MissingToolError as error:
        pytest.skip(str(error))

    @contextmanager
    def start(*options: str) -> Iterator[Pilot]:
        command = [str(python), str(folder / "run.py"), *options]
        pilot = Pilot("raptor", command, tmp_path_factory.mktemp("raptor"))
        try:
            yield pilot
        finally:
            pilot.end()

    return start


@pytest.mark.all
def test_raptor_in_each_tick_begins_with_the_state_of_its_step(raptor: Any) -> None:
    """So that in the ticks of its own rate it does what it does at that alone, and in those between
    answers what it sees as though the step were only now."""
    rows = np.random.default_rng(1).uniform(-0.2, 0.2, (11, MOST_TOGETHER, 13)).astype("<f4")
    rows[:, :, 6] = 1.0
    rows[3] = rows[0]
    place = np.arange(MOST_TOGETHER, dtype=np.uint32)
    answers = []
    for options in (("--each-tick",), ()):
        with raptor(*options) as pilot:
            answers.append([pilot.speeds(tick, place, seen) for tick, seen in enumerate(rows)])
    often, seldom = answers
    for tick in range(11):
        assert (often[tick] == seldom[tick]).all() == (tick in (0, 3, 5, 10)), tick
        assert (seldom[tick] == seldom[tick // 5 * 5]).all()
    assert not (often[5] == often[0]).any()


@pytest.mark.all
def test_raptor_in_each_tick_flies_most_airframes(raptor: Any) -> None:
    """As `rlt bench any-airframe` flies it, where commands are not late."""
    gate = load_gate("any-airframe")
    part = gate.kinds["hover"]
    settings = {**part.settings, "latency_ms": 0}
    with raptor("--each-tick") as pilot:
        airframes.check_use(pilot, gate)
        result = flown(pilot, structs.replace(part, episodes=20, settings=settings))
    assert result.all.successes >= 10
