"""`rlt fly RUN --px4` as it is typed, over UDP, against the scripted vehicle."""

from __future__ import annotations

import functools
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from policy_run import make_policy_run
from px4_model import POLICY, Wrong
from px4_vehicle import Script, ScriptedPx4, UdpPx4
from quadrotor_policies import controller, recurrent_controller, with_wide_entry
from rltools_host.commands import cli
from rltools_host.drones.vehicles import px4_flight
from rltools_host.errors import BoardMismatchError, Interrupted, RefusedError

FlyOver = Callable[[UdpPx4], None]


@pytest.fixture
def fly_over(monkeypatch: pytest.MonkeyPatch) -> FlyOver:
    """Has the command fly in the vehicle's time."""

    def fly_over(px4: UdpPx4) -> None:
        there = functools.partial(px4_flight.fly, open_link=px4.open_link, clock=px4.clock)
        monkeypatch.setattr(px4_flight, "fly", there)

    return fly_over


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_policy_run(tmp_path / "run", with_wide_entry(controller()))


def fly(run: Path, url: str, *words: str) -> int:
    return cli.run(["fly", str(run), "--px4", url, *words])


def test_a_flight(run: Path, capsys: pytest.CaptureFixture[str], fly_over: FlyOver) -> None:
    with UdpPx4(ScriptedPx4()) as px4:
        fly_over(px4)
        assert fly(run, px4.url, "--starts", "2", "--json") == 0
    printed = capsys.readouterr().out.splitlines()
    document = json.loads(printed[-1])
    assert document["successes"] == 2
    assert document["kept"]
    assert document["vehicle"] == px4.url
    assert "series" not in document["starts"][0]
    whole = json.loads((run / "flight-px4.json").read_text())
    assert len(whole["starts"][1]["series"]["rows"]) > 100
    # Our simulator has the vehicle that the parameters state: a controller for another one lets it
    # sink by half a meter.
    assert document["predicted_with"]["mass_kg"] == 1.0
    for start in document["starts"]:
        assert start["predicted"]["last_second_error_m"] == pytest.approx(0.5, abs=0.2)
        assert start["most_apart_m"] > 0.3
        assert not start["predicted"]["success"]
        assert start["hand_back"]["is_bumpless"]
        assert start["failsafe"] is None
    series, prediction = (whole["starts"][1][name] for name in ("series", "prediction"))
    assert prediction["time_s"] == series["time_s"]
    assert prediction["rows"][0] == pytest.approx(series["rows"][0], abs=1e-5)
    assert px4.vehicle.files["policy.rltp"] == (run / "policy.rltp").read_bytes()


@pytest.mark.parametrize(
    ("policy", "most_m"),
    [(controller, 0.02), pytest.param(recurrent_controller, 0.1, marks=pytest.mark.all)],
)
def test_another_vehicle_is_predicted_where_it_is_said(
    policy: Callable[[], bytes], most_m: float, tmp_path: Path, fly_over: FlyOver
) -> None:
    run = make_policy_run(tmp_path / "run", policy())
    # That airframe's thrust is the square of its signal: with 1, PX4 gives the root of a thrust.
    with UdpPx4(ScriptedPx4(Script(parameters={"THR_MDL_FAC": 1.0}))) as px4:
        fly_over(px4)
        assert fly(run, px4.url, "--starts", "1", "--set", "airframe=1") == 0
    document = json.loads((run / "flight-px4.json").read_text())
    assert document["predicted_with"]["airframe"] == 1.0
    (start,) = document["starts"]
    assert start["predicted"]["success"]
    assert start["predicted"]["last_second_error_m"] < most_m
    assert start["most_apart_m"] < 0.1


def test_a_policy_of_something_else_is_refused_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_policy_run(tmp_path / "pendulum")
    assert fly(run, "udp:127.0.0.1:1") == BoardMismatchError.exit_code
    assert "is not a quadrotor's policy" in capsys.readouterr().err


def test_a_flight_that_is_broken_off(
    run: Path, capsys: pytest.CaptureFixture[str], fly_over: FlyOver
) -> None:
    script = Script(wrong=Wrong(falls_back_at=2.0))
    with UdpPx4(ScriptedPx4(script)) as px4:
        fly_over(px4)
        code = fly(run, px4.url, "--starts", "1", "--json")
    assert code == RefusedError.exit_code
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("error: the vehicle on udp:127.0.0.1:")
    assert line.endswith("; it is on the ground and disarmed")
    details = json.loads(captured.out.splitlines()[-1])
    assert details["exit_code"] == code
    assert "fell back" in details["starts"][0]["cause"]
    assert json.loads((run / "flight-px4.json").read_text())["starts"][0]["series"]["rows"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lands_it(
    run: Path, number: signal.Signals, capsys: pytest.CaptureFixture[str], fly_over: FlyOver
) -> None:
    late: list[int] = []  # signals that the command did not take
    original = signal.signal(number, lambda number, _: late.append(number))
    before = signal.getsignal(number)
    is_over = threading.Event()
    with UdpPx4(ScriptedPx4()) as px4:
        fly_over(px4)

        def interrupt() -> None:
            while px4.vehicle.model.mode != POLICY and not is_over.wait(0.01):
                pass
            os.kill(os.getpid(), number)

        thread = threading.Thread(target=interrupt)
        thread.start()
        code = fly(run, px4.url, "--starts", "1")
        is_over.set()
        thread.join()
    assert not late, "it came before the command took signals, or after its flight"
    assert code == Interrupted.exit_code
    assert capsys.readouterr().err == "interrupted; it is on the ground and disarmed\n"
    assert px4.vehicle.model.is_on_ground
    assert not px4.vehicle.model.armed
    assert signal.getsignal(number) == before
    signal.signal(number, original)
