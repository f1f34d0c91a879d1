"""`rlt adapt`: from a log to the confirmed policy, and what each step does where it fails."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rltools_host.boards.board_link import STORAGE_VARIABLE
from rltools_host.boards.push import Push
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.commands import adapt, cli
from rltools_host.drones.fitting import fit as fitting
from rltools_host.drones.fitting.fit import fit as fit_now
from rltools_host.drones.fitting.log import read_log
from rltools_host.drones.fitting.result import FitResult
from rltools_host.drones.flight.gate_result import read_result
from rltools_host.errors import (
    BoardMismatchError,
    Interrupted,
    RefusedError,
    UsageError,
)
from rltools_host.policies.contract import EntryEnvelope
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.run import train as train_now
from rltools_host.tree import TREE
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
    """Train for a moment, which teaches nothing, and fit once, except for the real thing."""
    if request.function is test_on_the_emulated_flight_controller:
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert entry == EntryEnvelope(0, 0, 0, 0, 0)  # it has learned nothing
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


# -- what is refused before anything begins -------------------------------------------------------


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
    assert "and 95.0 % were to: train it with another --seed" in document["error"]
    assert (document["run"], document["success_rate"]) == (str(tmp_path / "run"), 0.0)
    assert not storage.exists()


@pytest.mark.all  # of every day: test_push.py
def test_ctrl_c_in_the_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Push, "_verify", interrupt)
    assert run_line(tmp_path / "run", "--least", "0") == Interrupted.exit_code
    captured = capsys.readouterr()
    assert "interrupted; no policy acts" in captured.err
    assert "Traceback" not in captured.err
    assert cli.run(["policies", "--board", "host", "--contract", "quadrotor", "--json"]) == 0
    slots = json.loads(capsys.readouterr().out.splitlines()[-1])["slots"]
    assert {slot["use"] for slot in slots} == {"empty"}
    assert RunFolder.open(tmp_path / "run").state == "finished"
