"""`rlt adapt`: from a log to the confirmed policy, and what each step does where it fails."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltools_host.boards import policy_session as policy_board
from rltools_host.boards.board_link import STORAGE_VARIABLE
from rltools_host.boards.push import Push
from rltools_host.boards.transport import ProcessLink
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.commands import adapt, cli
from rltools_host.documents import LARGEST_U32
from rltools_host.drones.fitting import fit as fitting
from rltools_host.drones.fitting.fit import fit as fit_now
from rltools_host.drones.fitting.log import read_log
from rltools_host.drones.fitting.result import FitResult
from rltools_host.drones.flight.airframes import Recipe
from rltools_host.drones.flight.gate_result import GateResult, read_result
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    DiskError,
    Interrupted,
    LinkLostError,
    PortError,
    RefusedError,
    RltError,
    UsageError,
)
from rltools_host.policies.contract import EntryEnvelope
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.run import train as train_now
from rltools_host.tree import TREE, command_line, near_path
from tcp_board import TcpBoard

pytestmark = pytest.mark.usefixtures("storage")

LOG = TREE.root / "examples" / "fit" / "flight.csv"
KEYS = {
    *("log", "log_sha256", "spread", "experiment", "seed", "run", "step", "gate", "success_rate"),
    *("interval", "causes", "board", "activated", "active_sha256", "slot", "reason", "seconds"),
    *("entry", "assumed"),
}
STEPS = 8192
DRONE = (0.0306, 0.028, 0.028)  # of that log: mass and the rotors' place


@cache
def fit_of_log(log: Path, arm: float) -> fitting.Fit:
    return fit_now(read_log(log), arm, arm)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """In place of training: a copy of what the first one was."""
    first = tmp_path_factory.mktemp("trained") / "run"

    def train(request: TrainingRequest, *screen: Any) -> dict[str, Any]:
        assert request.out is not None
        if not first.exists():
            train_now(replace(request, out=first), *screen)
        shutil.copytree(first, request.out)
        made = {"experiment": request.experiment, "seed": 0, "step": STEPS}
        return {**made, "run": str(request.out)}

    return train


@pytest.fixture(autouse=True)
def quick(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    trained: Callable[..., dict[str, Any]],
) -> None:
    """Training of a moment, which teaches nothing; and one fit for all tests."""
    if request.node.get_closest_marker("all"):
        return
    recipe = replace(adapt.QUICK, steps=STEPS)
    monkeypatch.setattr(adapt, "QUICK", recipe)
    monkeypatch.setattr(adapt, "SLOW", recipe)
    monkeypatch.setattr(adapt, "train", trained)
    monkeypatch.setattr(fitting, "fit", lambda log, x, _: fit_of_log(log.path, x))


def run_line(out: Path, *words: str, board: str = "host", log: Path = LOG) -> int:
    return cli.run(["adapt", str(log), "--board", board, "--out", str(out), *words])


# -- the whole way ---------------------------------------------------------------------------------


def test_from_the_log_to_a_run_that_can_be_repeated_and_a_confirmed_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adapt, "train", train_now)
    out, began = tmp_path / "a run", time.monotonic()
    assert run_line(out, "--least", "0", "--seed", "3", "--json") == 0
    took = time.monotonic() - began
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert set(document) == KEYS
    digest = hashlib.sha256(LOG.read_bytes()).hexdigest()
    assert (document["log_sha256"], document["activated"]) == (digest, True)
    total = document["seconds"].pop("total")
    assert set(document["seconds"]) == {"fit", "train", "gate", "entry", "push"}
    assert sum(document["seconds"].values()) <= total <= took

    folder = RunFolder.open(out)
    content = folder.content
    assert content.state == "finished"
    assert content.fitted is not None
    assert (content.fitted.log, content.fitted.sha256) == ("flight.csv", digest)
    entry = read_result(out / "gate-entry.json").envelope
    assert entry == EntryEnvelope(0, 0, 0, 0, 0)  # it has learnt nothing
    assert (document["entry"], document["assumed"]) == (asdict(entry), {})
    assert document["active_sha256"] == read_leaving_policy(folder).sha256
    settings = FitResult(fit_of_log(LOG, 0.1), 1.0, 0.1, 0.1).known_settings()
    for name, value in settings.items():
        assert np.float32(content.hyperparameters[name]) == np.float32(value), name
        low, high = content.fitted.intervals.get(name, (value, value))
        assert low <= value <= high
    gate = read_result(out / "gate-hover-fitted.json")
    assert gate.policy_sha256 == read_run_policy(folder).sha256
    assert gate.all.rate == document["success_rate"]
    assert (
        gate.gate.settings.items()
        >= {**settings, "spread": content.hyperparameters["spread"]}.items()
    )

    lines = captured.err.splitlines()
    while lines[0].startswith(("Building", "Installing")):
        del lines[0]
    assert lines[0].startswith(f"{near_path(LOG)} to host: about ")
    assert [line.split()[0] for line in lines[1:6]] == ["fit", "train", "gate", "entry", "push"]
    assert [line for line in lines if "from the log to the confirmed policy" in line]


def test_neither_mass_nor_size_changes_what_moves() -> None:
    """Of the same log with other masses and distances, the same accelerations for the same
    commands."""

    def motion(mass: float, arm: float) -> dict[str, float]:
        known = FitResult(fit_of_log(LOG, arm), mass, arm, arm).known_settings()
        thrust = sum(known[f"thrust_{power}"] for power in range(3)) / mass
        torque = sum(known[f"torque_{power}"] for power in range(3)) * 1e-3
        inertia = [1e-6 * known[f"inertia_{axis}"] for axis in "xyz"]
        return {
            "thrust": thrust,
            "roll": thrust * mass * arm / inertia[0],
            "pitch": thrust * mass * arm / inertia[1],
            "yaw": torque / inertia[2],
            "coupling": inertia[2] / inertia[0],
            "lag": known["lag_up_s"],
            "drag": known["drag_x"] / mass,
        }

    real, any_one = motion(*DRONE[:2]), motion(adapt.ANY_MASS_KG, adapt.ANY_ROTOR_M)
    for name, value in real.items():
        assert any_one[name] == pytest.approx(value, rel=1e-4), name


@pytest.mark.all
def test_on_the_emulated_flight_controller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_line(tmp_path / "run", "--json", board="qemu-stm32f405") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["activated"]
    assert document["success_rate"] >= adapt.LEAST


@pytest.mark.all
@pytest.mark.parametrize("what", ["another flight's commands", "another order", "a weak rotor"])
def test_commands_that_are_not_of_this_flight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    header, *rows = [line.split(",") for line in LOG.read_text().splitlines()]
    first = header.index("speed_front_right")
    for index, row in enumerate(rows[:]):
        a, b, c, d = row[first:]
        rows[index] = (
            row[:first]
            + {
                "another flight's commands": rows[(index + 300) % len(rows)][first:],
                "another order": [b, a, d, c],
                "a weak rotor": [f"{0.8 * float(a):.3f}", b, c, d],
            }[what]
        )
    log = tmp_path / "log.csv"
    log.write_text("\n".join(map(",".join, [header, *rows])) + "\n")
    assert run_line(tmp_path / "run", log=log) == DamagedFileError.exit_code
    assert capsys.readouterr().err.rstrip().endswith("nothing was pushed")
    assert not (tmp_path / "run").exists()


def test_how_long_both_recipes_take_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapt, "QUICK", Recipe("a", 6_000_000, 1.5e6))
    monkeypatch.setattr(adapt, "SLOW", Recipe("b", 12_000_000, 6e5))
    text = "about {} s on an idle machine, {} s for a drone that turns slowly"
    assert adapt.duration_text(None) == text.format(13, 29)
    assert adapt.duration_text(3_000_000) == text.format(11, 14)


def test_the_last_lines_say_what_to_do_next() -> None:
    place = policy_board.PolicyPlace("host", "tcp:1:2", adapt.CONTRACT)
    document = {"run": "runs/x", "reason": "staged", "seconds": {"total": 12.346}}
    ends = [f"  run   {document['run']}", f"  next  {command_line('report', 'runs/x')}"]
    assert adapt.closing_lines({**document, "activated": True}, place) == [
        "12.35 s from the log to the confirmed policy",
        *ends,
    ]
    keep, drop = place.trial_commands
    assert ("confirm" in keep, "rollback" in drop, "--port tcp:1:2" in keep) == (True,) * 3
    assert adapt.closing_lines({**document, "activated": False}, place) == [
        "12.35 s from the log to the board, where it is staged",
        f"  keep it:  {keep}",
        f"  drop it:  {drop}",
        *ends,
    ]


# -- what is refused before anything begins -------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        (["--least", "1.5"], UsageError, "--least 1.5: a rate lies between 0 and 1"),
        (["--trial", "0"], UsageError, "--trial 0: give seconds above 0"),
        (["--no-confirm"], UsageError, "ends with this command, and the trial with it"),
        (["--mass", "-1"], UsageError, "--mass -1"),
        (["--rotor-x", "0.1"], UsageError, "--rotor-x and --rotor-y go together"),
        (["--board", "hots"], UsageError, "did you mean host"),
        (["--board", "crazyflie", "--no-confirm"], UsageError, "the pilot confirms the policy"),
        (["--port", "/dev/nothing"], PortError, "/dev/nothing"),
        (["--steps", "0"], UsageError, "steps=0"),
        (["--seed", "-1"], UsageError, "seed=-1"),
    ],
)
def test_a_line_that_makes_no_sense(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    error: type[RltError],
    sentence: str,
) -> None:
    assert run_line(tmp_path / "run", *words) == error.exit_code
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert not (tmp_path / "run").exists()


def test_logs_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = LOG.read_text().splitlines()
    of_a_car = [line.rpartition(",")[0].rpartition(",")[0] for line in rows]
    logs = {
        "none": None,
        "empty": "",
        "cut": "\n".join(rows[:900])[:-20],
        "short": "\n".join(rows[:400]),
        "a car": "\n".join(of_a_car),
        "binary": "\0\1\2",
    }
    for name, text in logs.items():
        log = tmp_path / f"{name}.csv"
        if text is not None:
            log.write_text(text)
        code = run_line(tmp_path / "run", log=log)
        assert code in (DamagedFileError.exit_code, UsageError.exit_code), name
        assert f"{name}.csv" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


def test_a_run_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("mine")
    assert run_line(tmp_path) == UsageError.exit_code
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_board_of_another_contract_is_refused_before_training(
    tmp_path: Path, storage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = firmware.build_firmware(load_board("host"), "pendulum", "infer")
    storage.parent.mkdir()
    with TcpBoard(program, {STORAGE_VARIABLE: str(storage)}) as board:
        assert run_line(tmp_path / "run", "--port", board.port) == BoardMismatchError.exit_code
    assert 'acts by the contract "pendulum"' in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


# -- steps that fail ------------------------------------------------------------------------------


def test_a_policy_that_does_not_pass_is_not_pushed(
    tmp_path: Path, storage: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_line(tmp_path / "run", "--json") == RefusedError.exit_code
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["error"].endswith("nothing was pushed")
    assert "and 95.0 % were to: train it with another --seed, as 1, or longer" in document["error"]
    assert (document["run"], document["success_rate"]) == (str(tmp_path / "run"), 0.0)
    assert not storage.exists()


def test_another_seed_is_one_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adapt, "train", train_now)
    greatest = str(LARGEST_U32)
    assert run_line(tmp_path / "run", "--seed", greatest) == RefusedError.exit_code
    assert "train it with another --seed, as 0, or longer" in capsys.readouterr().err


def interrupting(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("module", "name", "sentence"),
    [
        (fitting, "fit", "interrupted in the step fit, nothing was pushed"),
        (adapt, "fly_gate", "interrupted in the step gate, nothing was pushed; the policy is in"),
        (Push, "carry_out", "interrupted before the trial: the board acts as before"),
        (Push, "_verify", "interrupted; no policy acts"),
    ],
)
def test_ctrl_c_in_each_step(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: Any,
    name: str,
    sentence: str,
) -> None:
    monkeypatch.setattr(module, name, interrupting)
    assert run_line(tmp_path / "run", "--least", "0") == Interrupted.exit_code
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert "Traceback" not in captured.err
    assert cli.run(["policies", "--board", "host", "--contract", "quadrotor", "--json"]) == 0
    slots = json.loads(capsys.readouterr().out.splitlines()[-1])["slots"]
    assert {slot["use"] for slot in slots} == {"empty"}
    if name != "fit":
        assert RunFolder.open(tmp_path / "run").state == "finished"


def test_sigterm_in_training_leaves_a_run_that_goes_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(adapt, "QUICK", replace(adapt.QUICK, steps=50_000_000))
    monkeypatch.setattr(adapt, "train", train_now)

    def end() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    timer = threading.Timer(0.1, end)
    monkeypatch.setattr(
        adapt.TrainingStep, "take", lambda *_: timer.start() if not timer.ident else None
    )
    assert run_line(tmp_path / "run") == Interrupted.exit_code
    timer.join()
    error = capsys.readouterr().err
    assert "checkpoint saved; go on with" in error
    assert error.rstrip().endswith("nothing was pushed")
    folder = RunFolder.open(tmp_path / "run")
    assert (folder.state, folder.content.fitted is not None) == ("paused", True)


def test_a_board_that_is_lost_in_the_trial(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def lose(push: Push) -> None:
        link = push._session.connection.link
        assert isinstance(link, ProcessLink)
        os.kill(link.process_id, signal.SIGKILL)
        verify(push)

    verify = Push._verify
    monkeypatch.setattr(Push, "_verify", lose)
    assert run_line(tmp_path / "run", "--least", "0", "--json") == LinkLostError.exit_code
    document = json.loads(capsys.readouterr().out)
    assert "it was ended by SIGKILL" in document["error"]
    assert "; the board drops it within 10 s; the policy passed its gate, " in document["error"]
    assert not document["activated"]
    assert document["run"] == str(tmp_path / "run")
    assert cli.run(["policies", "--board", "host", "--contract", "quadrotor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {slot["use"] for slot in found["slots"]} == {"empty"}


def test_a_disk_that_is_full_after_the_training(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The flights are not kept, and the policy is pushed all the same."""

    def full(*_: Any) -> Path:
        raise DiskError("cannot write it: no space left on device; free some space")

    monkeypatch.setattr(GateResult, "write", full)
    assert run_line(tmp_path / "run", "--least", "0") == 0
    captured = capsys.readouterr()
    assert "note: the report will not have the flights: cannot write it" in captured.err
    assert "confirmed" in captured.out


@pytest.mark.all
def test_a_board_that_another_command_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a second adapt does, while the first one pushes: it ends, and its run stays."""
    place = policy_board.PolicyPlace("host", contract=adapt.CONTRACT)
    with policy_board.policy_session(place):
        code = run_line(tmp_path / "run", "--least", "0")
    assert code not in (0, RefusedError.exit_code, cli.INTERNAL_ERROR)
    error = capsys.readouterr().err
    assert "error: " in error
    assert RunFolder.open(tmp_path / "run").state == "finished"
