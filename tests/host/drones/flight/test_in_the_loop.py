"""Flights over the board that is a process here, which fly a controller made by hand."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policy_run import make_policy_run
from quadrotor_policies import controller, image_of, recurrent_controller
from rltools_host.boards import policy_session as policy_board
from rltools_host.boards.board_link import STORAGE_VARIABLE
from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import PushRequest, push
from rltools_host.boards.transport import ProcessLink
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.commands import cli
from rltools_host.commands.policies import list_policies
from rltools_host.drones.flight.disturbances import Disturbances, Fault
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.in_the_loop import (
    CONTRACT,
    STARTS,
    FlyRequest,
    farthest_start,
    fly_over_board,
    rule_of,
)
from rltools_host.drones.flight.loop import Answer, BoardPilot
from rltools_host.drones.flight.result import TIME_OVER, LoopResult
from rltools_host.drones.flight.simulator import Flight, flight_library, fly
from rltools_host.errors import (
    BoardMismatchError,
    Interrupted,
    LinkLostError,
    RefusedError,
)
from rltools_host.policies.contract import Contract
from rltools_host.policies.image import read_run_policy
from tcp_board import TcpBoard

pytestmark = pytest.mark.usefixtures("storage")

HERE = PolicyTarget("host", None, CONTRACT)
STILL = {"start_share": 0.0}  # it begins at hover at the target
TILTED = {"start_share": 1.0, "start_tilt": 20.0, "start_position": 0.2, "start_rate": 0.5}


class Watcher:
    result: LoopResult

    def __call__(self, result: LoopResult) -> None:
        self.result = result


@pytest.fixture
def tcp_board(storage: Path) -> Iterator[PolicyTarget]:
    """One that goes on when a command has ended."""
    program = firmware.build_firmware(load_board("host"), CONTRACT, "infer")
    storage.parent.mkdir()
    with TcpBoard(program, {STORAGE_VARIABLE: str(storage)}) as board:
        yield PolicyTarget("host", board.port, CONTRACT)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return make_policy_run(tmp_path / "good", controller())


@pytest.fixture(params=[controller, recurrent_controller], ids=["dense", "recurrent"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Without and with a hidden state."""
    return make_policy_run(tmp_path / "either", request.param())


def request_of(run: Path, place: PolicyTarget = HERE, **fields: Any) -> FlyRequest:
    rule = rule_of(fields.pop("seconds", 1.0))
    return FlyRequest(str(run), place, rule, **{"settings": STILL, **fields})


def fly_here(run: Path, place: PolicyTarget = HERE, **fields: Any) -> LoopResult:
    return fly_over_board(request_of(run, place, **fields), lambda _: None, Watcher())


def failed(run: Path, place: PolicyTarget = HERE, **fields: Any) -> tuple[str, dict[str, Any]]:
    """The sentence and the document of a flight that is no success."""
    with pytest.raises(RefusedError) as caught:
        fly_here(run, place, **fields)
    return str(caught.value), caught.value.details


def uses(place: PolicyTarget) -> list[tuple[str, str | None]]:
    return [(slot["use"], slot.get("sha256")) for slot in list_policies(place)["slots"]]


# -- the ideal case --------------------------------------------------------------------------------


def test_a_flight_over_the_board_is_the_one_on_this_machine(
    good: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fly", str(good), "--board", "host", "--seconds", "2", "--seed", "7", "--json"]
    words += [word for pair in STILL.items() for word in ("--set", "{}={}".format(*pair))]
    assert cli.run(words) == 0
    *said, last = capsys.readouterr().out.splitlines()
    document = json.loads(last)
    assert (document["board"], document["success"], document["failsafe"]) == ("host", True, None)
    assert document["flight_sha256"] == document["host_flight_sha256"]
    assert (document["ticks"], document["kept"], document["same_bits"]) == (1000, True, True)
    assert document["statuses"] == {"acted": 1000}
    assert document["settings"] == STILL
    sha = document["flight_sha256"][:12]
    assert f"1,000 ticks, each with this machine's bits: flight {sha}" in said
    assert said.index("in trial for 300 s") < said.index("confirmed: active in slot 0")
    kept = json.loads((good / "flight-host.json").read_text())
    assert {**kept, "wall_s": 0} == {**document, "wall_s": 0}
    assert (good / "flight-host.html").stat().st_size < 300_000


def test_it_is_the_flight_of_the_gate(either: Path) -> None:
    """Whose policy is in the hands of the same executor, in C++ alone."""
    settings = {"airframe": 8.0, "latency_ms": 20.0, "noise": 1.0, "gust_m_s2": 1.0}
    for start in (0, 5):
        request = request_of(either, settings=settings, start=start, seed=3)
        watcher = Watcher()
        try:
            result = fly_over_board(request, lambda _: None, watcher)
        except RefusedError:
            result = watcher.result
        image = read_run_policy(either)
        outcomes, (samples,) = fly(
            image, request.rule, settings, 3, first_episode=start, traced=True
        )
        assert result.trace is not None
        ticks = result.trace.ticks
        assert len(ticks) == len(samples) == outcomes["ticks"][0] > 50
        assert ticks["reading"].tobytes() == samples["reading"].tobytes()
        assert ticks["action"].tobytes() == samples["action"].tobytes()
        assert result.cause == outcomes["cause"][0]


def test_a_flight_without_a_start_begins_where_recovery_is_seen() -> None:
    settings = load_gate("hover-nominal").settings
    far = farthest_start(3, settings)

    def away(start: int) -> float:
        reading = Flight(3, start, settings).read()
        w, x, y, z = reading["attitude"].astype(float)
        tilt = np.arccos(np.clip(w * w - x * x - y * y + z * z, -1, 1))  # of the axis up
        return float(np.linalg.norm(reading["position_m"] - reading["target_position_m"]) + tilt)

    sums = [away(start) for start in range(STARTS)]
    assert far == int(np.argmax(sums))
    assert sums[far] > 2 * np.median(sums) or sums[far] > 1.0


def test_a_start_of_a_gate(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its settings in place of the run's."""
    cli.run(run_words(good, "--gate", "hover", "--start", "11", "--json"))
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (document["seed"], document["start"]) == (4_000_000_000, 11)
    assert document["settings"]["start_tilt"] == 180
    assert document["flight_sha256"] == document["host_flight_sha256"]
    gate = load_gate("hover")
    _, trace = gate.trace(read_run_policy(good), 11)
    assert document["airframe"] == flight_library().table_name(int(trace["reading"]["table"][0]))


DRONE = {"mass_kg": 0.05, "inertia_x": 20, "inertia_y": 21, "inertia_z": 40}
DRONE |= {"rotor_x_m": 0.05, "rotor_y_m": 0.05, "thrust_0": 0, "thrust_1": 0.1, "thrust_2": 0.2}


def test_an_airframe_of_a_file(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It flies in place of the run's or the gate's, over the board as here."""
    path = tmp_path / "my drone.json"
    path.write_text(json.dumps({**DRONE, "airframe": 0}))
    words = ["--airframe", str(path), "--seconds", "0.2", "--json"]
    for more in ([], ["--gate", "any-airframe", "--set", "lag_up_s=0.1"]):
        cli.run(["fly", str(good), "--board", "host", *words, *more])
        document = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert document["airframe"] == "custom"
        assert document["same_bits"]
        flown = document["settings"]
        for name, value in DRONE.items():
            if value:
                assert flown[name] == pytest.approx(value), name
        assert flown["airframe"] == 0
        assert flown.get("lag_up_s") == (0.1 if "--set" in more else None)


def test_an_airframe_that_cannot_fly_is_refused(
    good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "drone.json"
    path.write_text(json.dumps({**DRONE, "mass_kg": 0.2}))
    assert cli.run(["fly", str(good), "--board", "host", "--airframe", str(path)]) != 0
    error = capsys.readouterr().err
    assert "its rotors lift 1.2 N, and it weighs 1.96 N" in error
    assert str(path) in error


def test_an_active_policy_flies_without_a_trial(either: Path) -> None:
    """Nor with the hidden state of the flight before: the board, which goes on, has none left."""
    said: list[str] = []
    fly_here(either)
    result = fly_over_board(request_of(either), said.append, Watcher())
    assert any(text.startswith("active already in slot 0") for text in said)
    assert result.success
    assert result.kept
    sentence, document = failed(either, disturbances=Disturbances(loss=1.0))
    assert sentence.endswith("; the policy was active before, and stays")
    assert document["kept"]


def test_disturbances_are_the_same_on_this_machine(good: Path) -> None:
    worse = Disturbances(latency_ms=1.0, jitter_ms=1.0, seed=4)
    result = fly_here(good, disturbances=worse)
    assert result.success
    assert result.trace is not None
    assert set(result.trace.ticks["age_us"]) == {2000}
    ideal = fly_here(good)
    assert ideal.trace is not None
    assert ideal.trace.sha256() != result.trace.sha256()
    noisy = fly_here(good, settings={**STILL, "noise": 1.0})
    assert noisy.trace is not None
    assert noisy.trace.sha256() != ideal.trace.sha256()
    _, document = failed(good, disturbances=Disturbances(loss=0.3, jitter_ms=3.0, seed=1))
    assert document["same_bits"]
    assert document["statuses"]["observation_stale"] > 10


# -- the fail-safe ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "status", "after"),
    [
        ("cut", "observation_stale", 2),  # until then the last one is not too old
        ("stale", "observation_stale", 0),
        ("nan", "observation_not_finite", 0),
        ("range", "observation_out_of_range", 0),
        ("future", "observation_out_of_order", 0),
    ],
)
def test_a_fault_leads_to_the_safe_action_within_two_ticks(
    good: Path, what: str, status: str, after: int
) -> None:
    watcher = Watcher()
    fault = Fault(what, 100)
    request = request_of(good, seconds=0.5, disturbances=Disturbances(faults=(fault,)))
    with pytest.raises(RefusedError) as caught:
        fly_over_board(request, lambda _: None, watcher)
    document = caught.value.details
    failsafe = document["failsafe"]
    assert (failsafe["status"], failsafe["tick"]) == (status, 100 + after)
    assert failsafe["after_fault_ticks"] == after <= 2
    assert document["same_bits"]
    assert (document["success"], document["cause"]) == (False, "executor_fault")
    trace = watcher.result.trace
    assert trace is not None
    assert (trace.ticks["action"][100 + after :] == 0.0).all()
    assert (trace.ticks["action"][: 100 + after] > 0.0).all()


def test_the_policy_acts_again_when_a_fault_is_over(either: Path) -> None:
    """A hidden state begins with zeros again, on the board as on this machine."""
    _, document = failed(either, disturbances=Disturbances(faults=(Fault("nan", 100, 103),)))
    assert document["same_bits"]
    assert [(event["tick"], event["status"]) for event in document["events"]] == [
        (0, "acted"),
        (100, "observation_not_finite"),
        (103, "acted"),
    ]
    assert document["ticks"] == 500  # three ticks do not bring it down, and it is no success


def exhausted(run: Path, place: PolicyTarget, **fields: Any) -> tuple[str, dict[str, Any]]:
    """A flight whose trial ends while it waits at tick 50: with a longer trial where a busy machine
    needs more time to come there."""
    fault = Disturbances(faults=(Fault("trial", 50),))
    for trial_s in (1.0, 5.0, 25.0, 125.0):
        try:
            sentence, document = failed(run, place, trial_s=trial_s, disturbances=fault, **fields)
        except RefusedError:  # it ended before the flight
            continue
        if [event["tick"] for event in document["events"] if event["text"] == TIME_OVER] == [50]:
            return sentence, document
    raise AssertionError("no trial was long enough")


def test_a_trial_that_is_over(good: Path, tcp_board: PolicyTarget) -> None:
    """The board ends it by its own clock; the flight waits for that at a tick of its own."""
    sentence, document = exhausted(good, tcp_board)
    assert document["failsafe"]["status"] == "no_policy"
    assert document["failsafe"]["tick"] == 50
    assert document["events"][1]["text"] == "policy dropped: it was not confirmed in time"
    assert not document["kept"]
    assert "there is no policy" in sentence
    assert [use for use, _ in uses(tcp_board)] == ["empty", "empty"]


@pytest.mark.all
def test_the_policy_before_takes_over_from_a_trial_that_is_over(
    good: Path, tmp_path: Path, tcp_board: PolicyTarget
) -> None:
    fly_here(good, tcp_board)
    other = make_policy_run(tmp_path / "other", controller(gain=1.1))
    sentence, document = exhausted(other, tcp_board, settings=TILTED, seconds=4.0)
    assert "the board ended the policy's trial" in sentence
    assert document["first_difference"] == 50
    assert uses(tcp_board)[0] == ("active", read_run_policy(good).sha256)


def test_an_output_that_is_not_finite_drops_the_policy(tmp_path: Path) -> None:
    """Far away a layer overflows; its example, at the target, is well."""
    hidden = np.zeros((13, 1), np.float32)
    hidden[0, 0] = 3e38
    outer = np.full((1, 4), 3e38, np.float32)
    weights = [("identity", hidden, np.zeros(1, np.float32))]
    weights += [("identity", outer, np.zeros(4, np.float32))]
    run = make_policy_run(tmp_path / "overflows", image_of(weights))
    settings = {"start_share": 1.0, "start_tilt": 0.0, "start_velocity": 0.0, "start_rate": 0.0}
    _, document = failed(run, settings=settings)
    assert document["failsafe"]["status"] == "output_not_finite"
    assert document["failsafe"]["tick"] == 0
    assert [event["status"] for event in document["events"][-2:]] == [
        "output_not_finite",
        "no_policy",
    ]
    assert document["same_bits"]


# -- a policy that flies badly ---------------------------------------------------------------------


def test_what_flies_badly_is_rolled_back(tmp_path: Path, tcp_board: PolicyTarget) -> None:
    """Though its examples give the right bits, which is all that a push looks at."""
    before = make_policy_run(tmp_path / "before", controller(gain=1.1))
    fly_here(before, tcp_board)
    good_sha = read_run_policy(before).sha256
    bad = make_policy_run(tmp_path / "bad", controller(roll_sign=-1.0))
    sentence, document = failed(bad, tcp_board, seconds=4.0, settings=TILTED)
    assert sentence.startswith("the flight failed: ")
    assert sentence.endswith(f"; {good_sha[:12]} acts")
    assert document["reason"] == sentence
    assert document["same_bits"]
    assert not document["kept"]
    assert ("active", good_sha) in uses(tcp_board)
    assert "trial" not in dict(uses(tcp_board))
    push(PushRequest(str(bad), tcp_board), lambda _: None)  # a push alone takes it


def test_other_bits_are_found_at_their_tick(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = BoardPilot.act
    calls = 0

    def spoilt(self: BoardPilot, *arguments: Any) -> Answer:
        nonlocal calls
        answer = real(self, *arguments)
        if calls == 37:
            answer.action.view(np.uint32)[2] ^= 1
        calls += 1
        return answer

    monkeypatch.setattr(BoardPilot, "act", spoilt)
    with pytest.raises(RefusedError, match=r"differ from tick 37 on, at 0.074 s; no policy"):
        fly_here(good)


# -- what ends a flight ----------------------------------------------------------------------------


def interrupting(result: LoopResult) -> None:
    if result.ticks == 30:
        raise KeyboardInterrupt


def test_ctrl_c_in_mid_flight_leaves_no_trial(good: Path, tcp_board: PolicyTarget) -> None:
    with pytest.raises(Interrupted, match=r"interrupted at 0.06 s of the flight; no policy acts"):
        fly_over_board(request_of(good, tcp_board), lambda _: None, interrupting)
    assert [use for use, _ in uses(tcp_board)] == ["empty", "empty"]


def test_a_board_that_dies_in_mid_flight(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[ProcessLink] = []
    real_open = policy_board.open_board_link

    def remember(*arguments: Any) -> Any:
        links.append(real_open(*arguments))  # type: ignore[arg-type]
        return links[-1]

    def killing(result: LoopResult) -> None:
        if result.ticks == 30:
            os.kill(links[-1].process_id, signal.SIGKILL)

    monkeypatch.setattr(policy_board, "open_board_link", remember)
    with pytest.raises(LinkLostError) as caught:
        fly_over_board(request_of(good), lambda _: None, killing)
    assert re.fullmatch(
        r"lost the program of board host: .*; the board drops it within 300 s",
        str(caught.value),
    )
    assert caught.value.details["cause"] is None
    assert caught.value.details["first_difference"] is None
    assert caught.value.details["ticks"] in (30, 31)


# -- bad input -------------------------------------------------------------------------------------


def run_words(run: Path | str, *words: str, board: str = "host") -> list[str]:
    return ["fly", str(run), "--board", board, *words]


def test_a_policy_of_something_else(tmp_path: Path) -> None:
    pendulum = make_policy_run(tmp_path / "pendulum")
    with pytest.raises(BoardMismatchError, match="is not a quadrotor's policy: observation 0 is"):
        fly_here(pendulum)
    ours = flight_library().contract
    slow = Contract(ours.observations, ours.actions, 10_000)
    weights = ("identity", np.zeros((13, 4), np.float32), np.zeros(4, np.float32))
    run = make_policy_run(tmp_path / "slow", image_of([weights], slow))
    with pytest.raises(BoardMismatchError, match="a step is 10,000 us of it, 2,000 here"):
        fly_here(run)


@pytest.mark.all
def test_a_board_with_another_program_or_contract(good: Path, tmp_path: Path) -> None:
    for contract, program, sentence in (
        ("pendulum", "infer", 'acts by the contract "pendulum", for which'),
        ("pendulum-td3", "train", 'runs the program "train", not "infer"'),
    ):
        built = firmware.build_firmware(load_board("host"), contract, program)
        with (
            TcpBoard(built, {STORAGE_VARIABLE: str(tmp_path / program)}) as board,
            pytest.raises(BoardMismatchError, match=sentence),
        ):
            fly_here(good, PolicyTarget("host", board.port, CONTRACT))
