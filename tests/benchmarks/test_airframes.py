"""`rlt bench any-airframe`: thrusts of a peer, and that a peer is used as it is meant."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from benchmarks import any_airframe as airframes
from benchmarks import harness
from benchmarks.any_airframe import MAX_TOGETHER, Pilot, flown, thrust_parts
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.simulator import flight_library
from rltools_host.errors import MissingToolError

# 4 (.0035 + .0144 w + .0922 w^2) N carry the 30.6 g of the table crazyflie-raptor.
HOVER = (-0.0144 + math.sqrt(0.0144**2 + 4 * 0.0922 * (0.0306 * 9.81 / 4 - 0.0035))) / (2 * 0.0922)
STUB = """
import sys
print('{"version": "3.1"}', flush=True)
while header := sys.stdin.buffer.read(4):
    sys.stdin.buffer.read(4 * 13 * 32)
    sys.stdout.buffer.write(bytes(512))
    sys.stdout.buffer.flush()
"""


def test_the_thrust_of_a_speed_is_that_of_the_airframes_curve() -> None:
    found = np.zeros(2, flight_library().records["Airframe"])
    found["thrust"] = [[0.0035, 0.0144, 0.0922], [0, 5, 0]]
    parts = thrust_parts(found, np.array([[HOVER] * 4, [0, 0.25, 0.5, 1]]))
    assert parts[0] == pytest.approx([0.0306 * 9.81 / 4 / 0.1101] * 4, rel=1e-6)
    assert parts[1].tolist() == [0, 0.25, 0.5, 1]


def test_a_peer_that_is_used_wrong_is_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "command_of", lambda *_: ([sys.executable, "-c", STUB], tmp_path))
    gate = airframes.gate_of(2, {})
    (row,) = airframes.fly_all({"wrong": lambda: airframes.fly_peer("wrong", "", gate)})
    assert "does not hold a Crazyflie at rest in still air" in row["error"]


@pytest.fixture(scope="module")
def raptor() -> Callable[..., Any]:
    """RAPTOR's process, with this option of its rate; skipped where it cannot be installed."""
    try:
        command, folder = harness.command_of("airframes", "raptor")
    except MissingToolError as error:
        pytest.skip(str(error))

    @contextmanager
    def start(*options: str) -> Iterator[Pilot]:
        pilot = Pilot("raptor", [*command, *options], folder)
        try:
            yield pilot
        finally:
            pilot.end()

    return start


@pytest.mark.all
@pytest.mark.slow  # installs a peer
def test_raptor_in_each_tick_begins_with_the_state_of_its_step(raptor: Any) -> None:
    """So that in the ticks of its own rate it does what it does at that alone, and in those between
    answers what it sees as though the step were only now."""
    rows = np.random.default_rng(1).uniform(-0.2, 0.2, (11, MAX_TOGETHER, 13)).astype("<f4")
    rows[:, :, 6] = 1.0
    rows[3] = rows[0]
    place = np.arange(MAX_TOGETHER, dtype=np.uint32)
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
@pytest.mark.slow
def test_raptor_in_each_tick_flies_most_airframes(raptor: Any) -> None:
    """As `rlt bench any-airframe` flies it, where commands are not late."""
    gate = load_gate("any-airframe")
    part = gate.kinds["hover"]
    settings = {**part.settings, "latency_ms": 0}
    with raptor("--each-tick") as pilot:
        airframes.check_use(pilot, gate)
        result = flown(pilot, structs.replace(part, episodes=20, settings=settings))
    assert result.all.successes >= 10
