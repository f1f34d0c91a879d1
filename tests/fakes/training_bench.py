"""A bench that trains on fake boards, and what its tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_board import FakeBoard, initial_state, next_state, policy_of
from fake_experiment import fake_experiment
from fake_faults import Faults
from rltools_host.boards import training
from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.boards.session import value_bits
from rltools_host.boards.transport import Link
from rltools_host.build import experiments, firmware
from rltools_host.build.cmake import load_dialect
from rltools_host.build.description import ExperimentDescription
from rltools_host.errors import unknown_name
from rltools_host.runs.checkpoint import Checkpoint, load_checkpoint
from rltools_host.runs.folder import RunFolder
from rltools_host.screen.training_screen import PlainScreen
from rltools_host.training import run as training_run
from rltools_host.training.plan import Plan
from rltools_host.training.progress import TrainingView
from run_folders import document_of
from training_calls import train_here

DIALECT: Any = load_dialect()
EXPERIMENT = fake_experiment()
LEARNING_RATE_BITS = value_bits("F32", 1e-3)


def final_state(seed: int, steps: int) -> bytes:
    payload = initial_state(seed)
    for step in range(1, steps + 1):
        payload = next_state(payload, step, LEARNING_RATE_BITS)
    return payload


class Bench:
    """Trains on fake boards; `faults` and so on are those of the next one."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.options: dict[str, Any] = {}
        self.boards: list[FakeBoard] = []
        self.built = 0

    def open_board(self, _: Plan) -> Link:
        board = FakeBoard(DIALECT, faults=self.faults, **self.options)
        self.boards.append(board)
        return board.link

    def build_firmware(self, *_: object) -> None:
        self.built += 1

    @staticmethod
    def describe(name: str, _board: object = None) -> ExperimentDescription:
        if name not in ("fake-td3", "other-td3"):
            raise unknown_name("experiment", name, ["fake-td3", "other-td3"])
        return fake_experiment(name)

    def train(self, path: Path, *settings: str, **options: Any) -> dict[str, Any]:
        """A new run in `path`, or with `resume` whatever the options say."""
        if "resume" not in options:
            options = {"experiment": "fake-td3", "seed": 3, "out": path, **options}
        options = {"board": "host", **options}
        return train_here(settings=settings, **options)

    def close(self) -> None:
        for board in self.boards:
            board.stop()


def installed_bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Fake boards in place of all that is built and opened."""
    bench = Bench()
    monkeypatch.setattr(training_run, "open_board", bench.open_board)
    monkeypatch.setattr(experiments, "describe", bench.describe)
    monkeypatch.setattr(firmware, "build_firmware", bench.build_firmware)
    monkeypatch.setattr(firmware, "memory_usage", lambda *_: [])
    monkeypatch.setattr(training, "QUIET_S", 0.3)
    return bench


def saved_checkpoint(run: Path) -> Checkpoint:
    return load_checkpoint(RunFolder.open(run).checkpoint_path, EXPERIMENT)


def metrics(run: Path, kind: str) -> list[dict[str, Any]]:
    return [row for row in RunFolder.open(run).read_metrics() if row["kind"] == kind]


def is_valid(run: Path) -> dict[str, Any]:
    """Assert that every file of a run is whole; return run.json."""
    folder = RunFolder.open(run)
    folder.read_metrics()
    if folder.metrics_path.exists():
        assert (folder.metrics_path.read_bytes() or b"\n").endswith(b"\n")
    left = [path.name for path in run.iterdir() if path.name.endswith(".partial")]
    assert left == []
    if folder.checkpoint_path.exists():
        checkpoint = load_checkpoint(folder.checkpoint_path, EXPERIMENT)
        assert checkpoint.state_sha256 == folder.content.state_sha256
        assert checkpoint.step == folder.content.checkpoint_step
        assert folder.policy_path.read_bytes() == policy_of(checkpoint.payload, checkpoint.step)
    return document_of(folder)


def interrupt_at(step: int, number: int = signal.SIGINT) -> Callable[[TrainingView, Any], Any]:
    """A screen that presses Ctrl-C when the view has reached a step."""

    class PressingScreen(PlainScreen):
        pressed = False

        def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
            super().take(event)
            if self.view.step >= step and not self.pressed:
                self.pressed = True
                os.kill(os.getpid(), number)

    return PressingScreen


# The board is slow enough for a pause to come on the way, and does not end before it has come.
PAUSED_BOARD: dict[str, Any] = {"seconds_per_step": 0.0005, "waits_for_pause_at": 900}
