"""Training runs with the fake board and the program of board host: files, ends, resumption."""

from __future__ import annotations

import errno
import io
import itertools
import json
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fake_board import FakeBoard, initial_state, next_state, policy_of
from fake_experiment import FINGERPRINT, fake_experiment
from fake_faults import Faults
from rltools_host.boards import discovery
from rltools_host.boards.description import load_board
from rltools_host.build import experiments, firmware, memory
from rltools_host.build.protocol import load_dialect
from rltools_host.clients import training
from rltools_host.clients.messages import Evaluation, Event, StatusText, TrainingProgress
from rltools_host.clients.parameters import value_bits
from rltools_host.commands import train as train_command
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    DiskError,
    Interrupted,
    LinkLostError,
    PortError,
    RltError,
    TrainingFaultError,
    UnknownNameError,
    UsageError,
    VerificationError,
    unknown_name,
)
from rltools_host.files import plain_json
from rltools_host.link.transport import Link
from rltools_host.runs.checkpoint import Checkpoint, load_checkpoint
from rltools_host.runs.folder import RunFolder
from rltools_host.training import board_link
from rltools_host.training import run as training_run
from rltools_host.training.hyperparameters import (
    as_float32,
    default_values,
    given_values,
    parse_value,
    shortest,
)
from rltools_host.training.plan import Plan
from rltools_host.training.view import TrainingView
from rltools_host.ui.curve import Canvas, nice_range
from rltools_host.ui.training_screen import (
    LiveScreen,
    Pace,
    PlainScreen,
    duration,
    make_screen,
    number,
    picture,
)
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
    def describe(name: str, _board: object = None) -> experiments.ExperimentDescription:
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
    monkeypatch.setattr(memory, "memory_usage", lambda *_: [])
    monkeypatch.setattr(training, "QUIET_S", 0.3)
    return bench


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = installed_bench(monkeypatch)
    yield bench
    bench.close()


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Ctrl-C interrupts, also where the tests were started with it ignored."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def saved_checkpoint(run: Path) -> Checkpoint:
    return load_checkpoint(RunFolder.open(run).checkpoint_path, EXPERIMENT)


def metrics(run: Path, kind: str) -> list[dict[str, Any]]:
    return [row for row in RunFolder.open(run).read_metrics() if row["kind"] == kind]


def is_valid(run: Path) -> dict[str, Any]:
    """Asserts that every file of a run is whole; returns run.json."""
    folder = RunFolder.open(run)
    folder.read_metrics()
    if folder.metrics_path.exists():
        assert (folder.metrics_path.read_bytes() or b"\n").endswith(b"\n")
    assert [path.name for path in run.iterdir() if path.name.endswith(".partial")] == []
    if folder.checkpoint_path.exists():
        checkpoint = load_checkpoint(folder.checkpoint_path, EXPERIMENT)
        assert checkpoint.state_sha256 == folder.metadata["state_sha256"]
        assert checkpoint.step == folder.metadata["checkpoint_step"]
        assert folder.policy_path.read_bytes() == policy_of(checkpoint.payload)
    return folder.metadata


# -- a whole run -----------------------------------------------------------------------------------


def test_whole_run(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    document = bench.train(run, "report_every=50", "learning_rate=0.001", json_output=True)
    assert document == json.loads(capsys.readouterr().out.splitlines()[-1])
    folder = RunFolder.open(run)
    checkpoint = load_checkpoint(folder.checkpoint_path, EXPERIMENT)
    assert checkpoint.payload == final_state(3, 1000)
    expected = {
        "run": str(run),
        "experiment": "fake-td3",
        "board": "host",
        "seed": 3,
        "steps": 1000,
        "return_mean": 0.0,
        "return_std": 12.5,
        "state_sha256": checkpoint.state_sha256,
    }
    assert expected.items() <= document.items()
    assert document["steps_per_s"] == pytest.approx(1000 / document["train_s"])
    assert [row["step"] for row in metrics(run, "progress")] == list(range(50, 1001, 50))
    assert [row["step"] for row in metrics(run, "evaluation")] == list(range(100, 1001, 100))
    times = [row["time_s"] for row in folder.read_metrics()]
    assert times == sorted(times)
    metadata = is_valid(run)
    assert metadata["state"] == "finished"
    assert metadata["fingerprint"] == "1234abcd"
    assert metadata["hyperparameters"]["report_every"] == 50
    assert metadata["identity"]["unique_id"] == bytes(range(16)).hex()
    assert {"git_revision", "git_dirty", "started", "ended", "host", "versions"} <= set(metadata)
    names = {path.name.split(".")[0] for path in run.iterdir()}
    save = f"save-1000-{checkpoint.state_sha256[:12]}"
    sources = metadata["sessions"][0]["sources"].split(".")[0]
    assert names == {"run", "metrics", save, sources, "events"}
    assert sorted(path.name for path in folder.save_path.iterdir()) == [
        "checkpoint.safetensors",
        "policy.rltp",
    ]


def test_default_values_come_from_the_table_and_the_board(bench: Bench, tmp_path: Path) -> None:
    bench.train(tmp_path / "run", tensorboard=False)
    (board,) = bench.boards
    assert board.values["report_every"] == load_board("host").report_every
    assert board.values["learning_rate"] == LEARNING_RATE_BITS
    assert set(board.parameters_set) == {entry.name for entry in EXPERIMENT.hyperparameters}
    assert not list((tmp_path / "run").glob("events*"))


def test_plain_lines(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.train(tmp_path / "run", steps=300)
    out = capsys.readouterr().out
    assert "fake-td3 on host, seed 3: steps 0 to 300" in out
    assert "step 200 of 300" in out
    assert "return -700.0 ± 12.5" in out
    assert f"state {RunFolder.open(tmp_path / 'run').metadata['state_sha256']} verified" in out
    assert "\x1b" not in out, "control characters, though this is no terminal"


def test_bad_link_loses_reports_but_no_bits(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(drop=0.05, repeat=0.1, noise=0.2, flip=0.02, drop_from_host=0.05)
    document = bench.train(tmp_path / "run", "report_every=10")
    metadata = is_valid(tmp_path / "run")
    assert load_checkpoint(
        RunFolder.open(tmp_path / "run").checkpoint_path, EXPERIMENT
    ).payload == final_state(3, 1000)
    steps = [row["step"] for row in metrics(tmp_path / "run", "progress")]
    assert steps == sorted(set(steps))
    assert document["messages_lost"] == metadata["messages_lost"] > 0


# -- Ctrl-C and resumption -------------------------------------------------------------------------


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


@pytest.fixture
def interrupted(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Bench, Path, Interrupted]:
    """A run that was paused by Ctrl-C at about step 200."""
    bench.options = PAUSED_BOARD
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(200))
        with pytest.raises(Interrupted) as caught:
            bench.train(tmp_path / "run", "report_every=20")
    bench.options = {}
    return bench, tmp_path / "run", caught.value


def test_interrupt_pauses_and_says_how_to_go_on(
    interrupted: tuple[Bench, Path, Interrupted],
) -> None:
    _, run, error = interrupted
    metadata = is_valid(run)
    step = metadata["checkpoint_step"]
    assert 200 <= step < 1000
    assert metadata["state"] == "paused"
    assert error.exit_code == 130
    assert str(error).startswith(
        f"paused at step {step:,} of 1,000, checkpoint saved; go on with `"
    )
    command = str(error).split("`")[1]
    assert command.endswith("train fake-td3 --board host --resume run")
    assert error.details["resume"] == command
    assert error.details["state_sha256"] == metadata["state_sha256"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_resumed_run_ends_with_the_same_bits(
    interrupted: tuple[Bench, Path, Interrupted], tmp_path: Path
) -> None:
    bench, run, _ = interrupted
    step = RunFolder.open(run).metadata["checkpoint_step"]
    document = bench.train(run, resume=str(run))
    assert saved_checkpoint(run).payload == final_state(3, 1000)
    whole = tmp_path / "whole"
    assert bench.train(whole)["state_sha256"] == document["state_sha256"]
    metadata = is_valid(run)
    assert metadata["state"] == "finished"
    assert [s["first_step"] for s in metadata["sessions"]] == [0, step]
    assert [row["step"] for row in metrics(run, "evaluation")] == list(range(100, 1001, 100))
    times = [row["time_s"] for row in RunFolder.open(run).read_metrics()]
    assert times == sorted(times)
    assert len(list(run.glob("events*"))) == 2
    assert bench.boards[1].commands.count(DIALECT.MAV_CMD_RLT_START) == 0


def test_resumption_drops_metrics_behind_the_checkpoint(
    interrupted: tuple[Bench, Path, Interrupted],
) -> None:
    bench, run, _ = interrupted
    step = RunFolder.open(run).metadata["checkpoint_step"]
    folder = RunFolder.open(run)
    row = next(row for row in folder.read_metrics() if row["kind"] == "progress")
    folder.append_metrics([row | {"step": step + 5, "last_return": 99.0}])
    folder.close()
    bench.train(run, resume=str(run))
    assert 99.0 not in [row["last_return"] for row in metrics(run, "progress")]


def test_resumption_with_more_steps(interrupted: tuple[Bench, Path, Interrupted]) -> None:
    bench, run, _ = interrupted
    bench.train(run, resume=str(run))
    with pytest.raises(UsageError, match=r"has done its 1,000 steps: give a larger total"):
        bench.train(run, resume=str(run))
    document = bench.train(run, "report_every=7", resume=str(run), steps=1300)
    assert document["steps"] == 1300
    assert saved_checkpoint(run).payload == final_state(3, 1300)
    assert is_valid(run)["hyperparameters"]["steps"] == 1300


def test_link_lost_after_resumption_keeps_the_checkpoint(
    interrupted: tuple[Bench, Path, Interrupted],
) -> None:
    bench, run, _ = interrupted
    before = is_valid(run)
    bench.faults = Faults(unplug_at_step=800)
    with pytest.raises(LinkLostError) as caught:
        bench.train(run, resume=str(run))
    step = before["checkpoint_step"]
    assert f"go on from step {step:,} with `" in str(caught.value)
    metadata = is_valid(run)
    assert (metadata["state"], metadata["step"]) == ("link lost", 800)
    assert metadata["state_sha256"] == before["state_sha256"]
    bench.faults = Faults()
    bench.train(run, resume=str(run))
    assert saved_checkpoint(run).payload == final_state(3, 1000)


@pytest.mark.parametrize(
    ("options", "settings", "sentence"),
    [
        ({"seed": 4}, (), "--seed does not go with --resume"),
        ({"out": Path("x")}, (), "--out does not go with --resume"),
        (
            {},
            ("learning_rate=0.01",),
            "a resumed run keeps its learning_rate: only steps and report",
        ),
        ({"steps": 100}, (), "has done its"),
    ],
)
def test_what_a_resumed_run_keeps(
    interrupted: tuple[Bench, Path, Interrupted],
    options: dict[str, Any],
    settings: tuple[str, ...],
    sentence: str,
) -> None:
    bench, run, _ = interrupted
    built = bench.built
    with pytest.raises(UsageError, match=sentence):
        bench.train(run, *settings, resume=str(run), **options)
    assert bench.built == built
    is_valid(run)


def test_checkpoint_of_another_experiment_is_not_resumed(
    interrupted: tuple[Bench, Path, Interrupted],
) -> None:
    bench, run, _ = interrupted
    with pytest.raises(BoardMismatchError, match='is of experiment "fake-td3", not of "other-td3"'):
        bench.train(run, experiment="other-td3", resume=str(run))


def test_damaged_checkpoint_is_not_resumed(interrupted: tuple[Bench, Path, Interrupted]) -> None:
    bench, run, _ = interrupted
    path = RunFolder.open(run).checkpoint_path
    content = bytearray(path.read_bytes())
    content[-1] ^= 4
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="its training state does not match its SHA-256"):
        bench.train(run, resume=str(run))
    assert len(bench.boards) == 1, "a damaged checkpoint must not reach a board"


def test_checkpoint_that_the_board_refuses(interrupted: tuple[Bench, Path, Interrupted]) -> None:
    bench, run, _ = interrupted
    bench.faults = Faults(flip_upload=True)
    with pytest.raises(DamagedFileError, match="refuses the checkpoint: checkpoint refused: the"):
        bench.train(run, resume=str(run))
    is_valid(run)


def test_second_interrupt_quits_at_once(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def press_again() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    bench.options = {**PAUSED_BOARD, "on_pause": press_again}
    monkeypatch.setattr(train_command, "make_screen", interrupt_at(200))
    with pytest.raises(
        Interrupted, match=r"quit without a new checkpoint; .* up to step [2-9]\d0 is in"
    ):
        bench.train(tmp_path / "run", "report_every=10")
    metadata = is_valid(tmp_path / "run")
    assert metadata["state"] == "interrupted"
    assert not list((tmp_path / "run").glob("save-*"))
    assert len(metrics(tmp_path / "run", "progress")) >= 20


def test_termination_pauses_as_an_interrupt_does(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.options = PAUSED_BOARD
    monkeypatch.setattr(train_command, "make_screen", interrupt_at(200, number=signal.SIGTERM))
    with pytest.raises(Interrupted, match="checkpoint saved"):
        bench.train(tmp_path / "run")
    assert is_valid(tmp_path / "run")["state"] == "paused"


# -- accidents -------------------------------------------------------------------------------------


def test_pulled_cable_keeps_everything_received(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(unplug_at_step=437)
    run = tmp_path / "run"
    with pytest.raises(LinkLostError, match="what was received up to step 437 is in") as caught:
        bench.train(run, "report_every=1", "eval_every=100")
    assert "\n" not in str(caught.value)
    assert [row["step"] for row in metrics(run, "progress")] == list(range(1, 438))
    assert [row["step"] for row in metrics(run, "evaluation")] == [100, 200, 300, 400]
    metadata = is_valid(run)
    assert (metadata["state"], metadata["step"]) == ("link lost", 437)
    assert not list(run.glob("save-*"))
    with pytest.raises(UnknownNameError, match=r"holds no checkpoint.safetensors"):
        bench.train(run, resume=str(run))


def test_not_finite_is_a_fault(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(not_finite_at_step=250)
    with pytest.raises(TrainingFaultError, match="critic_1 loss is not finite at step 250"):
        bench.train(tmp_path / "run")
    assert is_valid(tmp_path / "run")["state"] == "fault"
    (event,) = metrics(tmp_path / "run", "event")
    assert event["text"] == "critic_1 loss is not finite at step 250"


def test_state_that_differs_from_its_hash(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(wrong_state_sha256=True)
    with pytest.raises(VerificationError, match="the board stated step 1000 and 0000000000000000"):
        bench.train(tmp_path / "run")
    assert is_valid(tmp_path / "run")["state"] == "failed"
    assert not list((tmp_path / "run").glob("save-*"))


def test_checkpoint_of_another_fingerprint_is_not_kept(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(wrong_fingerprint=1)
    sentence = f"has fingerprint {FINGERPRINT ^ 1:08x}, the experiment {FINGERPRINT:08x}: leave out"
    with pytest.raises(BoardMismatchError, match=sentence):
        bench.train(tmp_path / "run")
    assert is_valid(tmp_path / "run")["state"] == "failed"
    assert not list((tmp_path / "run").glob("save-*"))


@pytest.mark.parametrize("policy", [policy_of(b"another state"), b"RLTP", policy_of(b"")[:-1]])
def test_policy_of_another_state_is_not_kept(bench: Bench, tmp_path: Path, policy: bytes) -> None:
    bench.faults = Faults(other_policy=policy)
    with pytest.raises(VerificationError, match=r"policy from .* is not of the state with hash"):
        bench.train(tmp_path / "run")
    assert not list((tmp_path / "run").glob("save-*"))


def test_restored_state_that_differs_from_the_checkpoint(
    interrupted: tuple[Bench, Path, Interrupted],
) -> None:
    """What the board states of a checkpoint that it was sent is compared."""
    bench, run, _ = interrupted
    before = is_valid(run)
    bench.faults = Faults(wrong_state_sha256=True)
    step, state = before["checkpoint_step"], before["state_sha256"]
    sentence = f"holds step {step} with hash 0{{16}}… instead of .* step {step} with {state[:16]}…"
    with pytest.raises(VerificationError, match=sentence):
        bench.train(run, resume=str(run))
    assert DIALECT.MAV_CMD_RLT_RESUME not in bench.boards[-1].commands
    assert is_valid(run)["state_sha256"] == state


def test_wrong_crc32_of_a_file(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(wrong_crc32=True)
    with pytest.raises(VerificationError, match=r"/checkpoint.rltc arrived .* with CRC-32"):
        bench.train(tmp_path / "run")
    assert is_valid(tmp_path / "run")["state"] == "failed"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"experiment": "other-td3"},
            'runs experiment "other-td3", not "fake-td3": leave out --port',
        ),
        ({"fingerprint": FINGERPRINT + 1}, "another version of"),
        ({"board": "teensy41"}, 'is a "teensy41", not a "host"'),
        ({"protocol_version": 9}, "version 9 of the protocol"),
    ],
)
def test_board_with_other_firmware(
    bench: Bench, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    bench.options = options
    with pytest.raises(BoardMismatchError, match=sentence):
        bench.train(tmp_path / "run")
    assert not (tmp_path / "run").exists(), "a run that never began leaves no folder"


@pytest.mark.parametrize("room", [0, 100, 3000, 12000, 20000, 28000])
def test_full_disk_leaves_no_half_file(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """The disk fills up at the start, among the metrics, and while checkpoint and policy come."""
    left = room
    real_write = os.write

    def write(descriptor: int, data: Any) -> int:
        nonlocal left
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if not path.startswith(str(tmp_path)):
            return real_write(descriptor, data)
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = real_write(descriptor, bytes(data[:left]))
        left -= taken
        return taken

    monkeypatch.setattr(os, "write", write)
    run = tmp_path / "run"
    with pytest.raises(DiskError, match=r"cannot write .*: No space left on device; free some"):
        bench.train(run, "report_every=20")
    monkeypatch.undo()
    if run.exists():
        assert is_valid(run)["state"] in ("starting", "training", "failed")


# -- what is checked before anything is built ------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "settings", "kind", "sentence"),
    [
        (
            {"experiment": "fake-td4"},
            (),
            UnknownNameError,
            'unknown experiment "fake-td4": did you',
        ),
        ({"board": "tensy41"}, (), UnknownNameError, "did you mean teensy41"),
        ({}, ("learnign_rate=1",), UnknownNameError, "did you mean learning_rate"),
        ({}, ("learning_rate",), UsageError, "has no value: write --set name=value"),
        ({}, ("learning_rate=2",), UsageError, "choose a number from 0 to 1"),
        ({}, ("learning_rate=nan",), UsageError, "out of bounds"),
        ({}, ("learning_rate=fast",), UsageError, "out of bounds"),
        ({}, ("learning_rate=1e-300",), UsageError, "is 0 in a float of 32 bits: .* least 1e-45"),
        ({}, ("learning_rate=-1e-46",), UsageError, "is 0 in a float of 32 bits"),
        ({}, ("adam_beta=1",), UsageError, "choose a number from 0 to 0.99999994 "),
        ({"board": ""}, (), UnknownNameError, 'unknown board ""'),
        ({"experiment": ""}, (), UnknownNameError, 'unknown experiment ""'),
        ({}, ("learning_rate=1e99",), UsageError, "out of bounds"),
        ({}, ("adam_epsilon=0",), UsageError, "from 1e-30 to 1"),
        ({}, ("eval_every=0",), UsageError, "a whole number from 1 to 4294967295 steps"),
        ({}, ("eval_every=1.5",), UsageError, "whole number"),
        ({"steps": 0}, (), UsageError, "steps=0 is out of bounds"),
        ({"seed": -1}, (), UsageError, "seed=-1 is out of bounds"),
        ({"seed": 2**32}, (), UsageError, "out of bounds"),
        ({"seed": 1}, ("seed=2",), UsageError, "seed is given twice"),
        ({}, ("eval_every=5", "eval_every=5"), UsageError, "eval_every is given twice"),
        ({"experiment": None}, (), UsageError, "name an experiment"),
    ],
)
def test_mistakes_are_found_before_building(
    bench: Bench,
    tmp_path: Path,
    options: dict[str, Any],
    settings: tuple[str, ...],
    kind: type[RltError],
    sentence: str,
) -> None:
    with pytest.raises(kind, match=sentence):
        bench.train(tmp_path / "run", *settings, **options)
    assert (bench.built, bench.boards) == (0, [])
    assert not (tmp_path / "run").exists()


def test_folder_in_use_is_found_before_building(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        bench.train(tmp_path)
    assert bench.built == 0


def test_values_that_are_allowed() -> None:
    given = given_values(
        EXPERIMENT, 4294967295, 1, ["eval_every=1e3", "eval_episodes=1_000", "learning_rate = 1"]
    )
    assert given == {
        "seed": 4294967295,
        "steps": 1,
        "eval_every": 1000,
        "eval_episodes": 1000,
        "learning_rate": 1.0,
    }
    assert default_values(EXPERIMENT)["learning_rate"] == 0.001


def test_every_bound_that_a_refusal_names_is_accepted() -> None:
    for entry in EXPERIMENT.hyperparameters:
        with pytest.raises(UsageError, match="out of bounds") as caught:
            parse_value(entry, "-1e30" if entry.type == "F32" else "-1")
        bounds = re.search(r"from (\S+) to (\S+)", str(caught.value))
        assert bounds is not None
        for bound, exact in zip(bounds.groups(), (entry.minimum, entry.maximum), strict=True):
            assert as_float32(parse_value(entry, bound)) == as_float32(exact)


def test_smallest_positive_number_is_accepted() -> None:
    (rate,) = [entry for entry in EXPERIMENT.hyperparameters if entry.name == "learning_rate"]
    assert as_float32(float(parse_value(rate, "1e-45"))) == 2.0**-149
    assert parse_value(rate, "0") == 0
    assert parse_value(rate, "0e5") == 0


def test_shortest_is_the_same_float() -> None:
    for value in (0.001, 0.1, 1 / 3, 1e-30, 3.4028234e38, 0.0, 16777217.0, 1e-8, 0.9999999):
        assert as_float32(shortest(as_float32(value))) == as_float32(value)
    assert shortest(as_float32(0.005)) == 0.005


# -- finding the board -----------------------------------------------------------------------------


def teensy_plan(port: str | None = None) -> Plan:
    values = default_values(EXPERIMENT)
    return Plan(EXPERIMENT, load_board("teensy41"), values, port)


def test_no_board_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "find_connected", lambda _: [])
    with pytest.raises(PortError, match=r"no teensy41 is connected: plug it in .*rlt flash teen"):
        board_link.open_board(teensy_plan())


def test_several_boards_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = ["/dev/ttyACM0", "/dev/ttyACM1"]
    monkeypatch.setattr(discovery, "find_connected", lambda _: ports)
    with pytest.raises(PortError, match=r"\(/dev/ttyACM0, /dev/ttyACM1\): choose one with --port"):
        board_link.open_board(teensy_plan())


def test_port_that_does_not_exist() -> None:
    with pytest.raises(PortError, match="there is no port /dev/ttyACM99"):
        board_link.open_board(teensy_plan("/dev/ttyACM99"))


def test_board_on_a_pty_is_trained_as_on_a_serial_port(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(experiments, "describe", bench.describe)
    with FakeBoard(DIALECT, pty=True, board="teensy41") as board:
        document = train_here(
            "fake-td3", "teensy41", seed=3, out=tmp_path / "run", port=board.port, tensorboard=False
        )
        assert document["state_sha256"] == board.state_sha256
    assert saved_checkpoint(tmp_path / "run").step == 1000


# -- the screen ------------------------------------------------------------------------------------


def filled_view(steps: int = 10_000) -> TrainingView:
    now = 0.0
    view = TrainingView(
        "pendulum-td3", "qemu-cortex-m7", 1, steps, Path("runs/x"), clock=lambda: now
    )
    view.begin()
    for step in range(20, 6241, 20):
        now = step / 52.0
        loss = 0.1 + step / 1e4
        progress = TrainingProgress(
            step, step, steps, step, step // 200, -1500 + step / 5, -1.0, loss, loss, 3.0
        )
        view.take(progress)
        if step % 1000 == 0:
            view.take(Evaluation(step, step, 10, -1600 + step / 4, 20.0, -1700.0, -1.0))
    return view


def drawn(view: TrainingView, width: int, height: int) -> list[str]:
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream, width=width, height=height, force_terminal=True, color_system=None
    )
    console.print(picture(view, width, height))
    return stream.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize(("width", "height"), [(60, 24), (80, 24), (80, 40), (120, 30), (200, 60)])
def test_picture_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(filled_view(), width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) <= height
    text = "\n".join(lines)
    expected = ["pendulum-td3 on qemu-cortex-m7", "seed 1", "6,240 of 10,000 steps", "62 %"]
    if width >= 80:
        expected += [
            "52.0 steps/s",
            "elapsed 2:00",
            "left 1:12",
            "-100.0 ± 20.0",
            "best -1",
            "losses of critics",
        ]
    for part in expected:
        assert part in text


def test_picture_of_a_run_that_has_just_begun() -> None:
    view = TrainingView("a", "b", 1, 10, Path("runs/x"))
    waiting = "the learning curve begins with the first episode"
    assert waiting in "\n".join(drawn(view, 80, 24))
    view.take(Evaluation(1, 1, 10, 0.0, 0.0, 0.0, 0.0))
    assert waiting not in "\n".join(drawn(view, 80, 24))


def test_what_a_board_says_cannot_move_the_cursor() -> None:
    view, stream = filled_view(), io.StringIO()
    PlainScreen(view, stream).take(StatusText(6, "all \x1b[2J well\r"))
    for text in (stream.getvalue(), "\n".join(drawn(view, 120, 40))):
        assert "the board says: all ?[2J well?" in text


def test_pace_bounds_rate_and_share_of_time() -> None:
    pace = Pace(0.1, 0.01)
    assert pace.is_due(5.0), "the first time is due at once"
    pace.done(5.0, 0.0005)
    assert not pace.is_due(5.09)
    assert pace.is_due(5.1)
    pace.done(5.1, 0.004)  # four times as long as a hundredth of the interval
    assert not pace.is_due(5.49)
    assert pace.is_due(5.5)
    pace.done(5.5, 0.004)
    pace.hurry()
    assert pace.is_due(5.5)


class Terminal(io.StringIO):
    """As wide and high as the environment says."""

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def screen_after(
    stream: Terminal, seconds: float, act: Callable[[LiveScreen], None] = lambda _: None
) -> str:
    """What a live screen wrote in some seconds of training with a report each millisecond."""
    now = 0.0
    view = TrainingView("a", "b", 1, 10_000, Path("r"), clock=lambda: now)
    screen = make_screen(view, stream)
    assert isinstance(screen, LiveScreen)
    view.begin()
    for _ in range(round(1000 * seconds)):
        now += 0.001
        view.reach(view.step + 1)
        screen.refresh()
    act(screen)
    screen.close()
    return stream.getvalue()


def test_live_screen_draws_twice_a_second_at_most(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    threads = threading.active_count()
    drawings: list[int] = []
    original = LiveScreen._draw

    def draw(screen: LiveScreen) -> None:
        original(screen)
        drawings.append(screen.view.step)
        assert threading.active_count() == threads, "rich draws by itself"

    monkeypatch.setattr(LiveScreen, "_draw", draw)
    text = screen_after(terminal, 2.25)
    assert drawings == pytest.approx([1000, 1500, 2000, 2250], abs=5)
    assert text.endswith("\x1b[?25h"), "the cursor stays hidden"


def test_drawing_that_takes_long_is_done_less_often(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(step=0.03)  # of processor time, for each drawing
    monkeypatch.setattr(time, "thread_time", lambda: next(ticks))
    drawings: list[int] = []
    original = LiveScreen._draw
    monkeypatch.setattr(
        LiveScreen, "_draw", lambda s: (drawings.append(s.view.step), original(s))[1]
    )
    screen_after(terminal, 4.25)
    assert drawings == pytest.approx([1000, 2500, 4000, 4250], abs=5)


def test_a_short_run_shows_its_last_picture_only(terminal: Terminal) -> None:
    text = screen_after(terminal, 0.5)
    assert text.startswith("a on b, seed 1: steps 0 to 10,000, run r\n")
    assert "500 of 10,000 steps" in text
    assert not re.search(r" [1-4]\d\d of 10,000 steps", text)


def test_what_ends_before_training_shows_no_picture(terminal: Terminal) -> None:
    view = TrainingView("a", "b", 1, 10_000, Path("r"))
    make_screen(view, terminal).close()
    assert terminal.getvalue() == "a on b, seed 1: steps 0 to 10,000, run r\n"


def test_live_screen_shows_at_once_what_goes_on(terminal: Terminal) -> None:
    text = screen_after(terminal, 1.2, lambda screen: screen.activity("fetching the policy"))
    assert "fetching the policy" in text


def test_colours_can_be_switched_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[36m" in screen_after(terminal, 0.5)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in screen_after(Terminal(), 0.5)


@pytest.mark.parametrize(("term", "columns"), [("dumb", 100), ("xterm", 39)])
def test_terminals_that_cannot_show_it_get_lines(
    term: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Narrow(Terminal):
        def fileno(self) -> int:
            return 1

    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((columns, 30)))
    assert isinstance(make_screen(filled_view(), Narrow()), PlainScreen)


def test_view_of_a_resumed_run_shows_what_was_before() -> None:
    progress = TrainingProgress(1, 200, 1000, 100, 1, -900.0, -800.0, 0.5, 0.25, float("nan"))
    evaluation = Evaluation(1, 200, 10, -700.0, 1.0, -800.0, -600.0)
    live, resumed = filled_view(), filled_view()
    for event, kind in ((progress, "progress"), (evaluation, "evaluation")):
        live.take(event)
        resumed.take_row(json.loads(json.dumps(plain_json({"kind": kind, **asdict(event)}))))
    resumed.take_row({"kind": "event", "text": "x"})
    names = ["updates", "last_return", "critic_1_loss", "actor_loss", "evaluation_points"]
    for name in [*names, "episode_points", "evaluation"]:
        assert getattr(resumed, name) == getattr(live, name)


def test_no_terminal_no_live_screen() -> None:
    assert isinstance(make_screen(filled_view(), io.StringIO()), PlainScreen)


def test_reports_are_taken_in_together(bench: Bench, tmp_path: Path) -> None:
    """A board that reports each millisecond awakens the host a few times, and nothing is lost."""
    bench.options = {"seconds_per_step": 0.001}
    awakenings = 0
    original = training.TrainingClient.poll

    def poll(self: training.TrainingClient, timeout_s: float) -> list[Event]:
        nonlocal awakenings
        events = original(self, timeout_s)
        awakenings += bool(events)
        return events

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training.TrainingClient, "poll", poll)
        bench.train(tmp_path / "run", "report_every=2", steps=600, tensorboard=False)
    rows = metrics(tmp_path / "run", "progress")
    assert [row["step"] for row in rows] == list(range(2, 601, 2))
    assert awakenings < len(rows) / 2


def test_rate_is_that_of_the_last_seconds() -> None:
    now = 0.0
    view = TrainingView("a", "b", 1, 10_000, Path("r"), first_step=500, clock=lambda: now)
    for second, step in ((10, 600), (20, 2000), (22, 2200), (24, 2400), (26, 2600)):
        now = float(second)
        view.reach(step)
    assert view.steps_per_s == 100.0
    assert view.left_s == 74.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(-1606, -147, (-2000, 0, 500)), (0.0, 1.0, (0, 1.0, 0.5)), (3, 97, (0, 100, 50))],
)
def test_nice_range(low: float, high: float, expected: tuple[float, float, float]) -> None:
    assert nice_range(low, high) == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.0, -1000.0, 1e-9, 1e12])
def test_nice_range_of_one_value(value: float) -> None:
    low, high, tick = nice_range(value, value)
    assert low <= value <= high
    assert low < high
    assert tick > 0


def test_line_of_the_chart_is_unbroken() -> None:
    canvas = Canvas(20, 5, (0, 10), (0, 1))
    canvas.draw_line([(0, 0), (10, 1)])
    dots = {
        (2 * column + x, 4 * row + y)
        for row, cells in enumerate(canvas.bits)
        for column, bits in enumerate(cells)
        for y, pair in enumerate(((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)))
        for x, bit in enumerate(pair)
        if bits & bit
    }
    assert {(0, 19), (39, 0)} <= dots
    assert {x for x, _ in dots} == set(range(40))
    assert {y for _, y in dots} == set(range(20))


def test_words_for_numbers_and_times() -> None:
    assert [number(v) for v in (float("nan"), 12345.6, 52.345, 0.012345)] == [
        "-",
        "12,346",
        "52.3",
        "0.0123",
    ]
    assert [duration(v) for v in (7, 760, 7380, float("nan"))] == ["0:07", "12:40", "2:03:00", "-"]


# -- the real programs of this machine -------------------------------------------------------------


def train_pendulum(out: Path | None = None, **options: Any) -> dict[str, Any]:
    return train_here(None if "resume" in options else "pendulum-td3", "host", out=out, **options)


def test_host_program_pauses_and_resumes_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paused on the way to a total that it does not reach before, however late the pause comes."""
    settings = ["eval_every=100", "report_every=10"]
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(200))
        with pytest.raises(Interrupted, match="checkpoint saved"):
            train_pendulum(tmp_path / "run", seed=7, steps=10_000_000, settings=settings)
    paused = RunFolder.open(tmp_path / "run").metadata
    assert paused["checkpoint_step"] >= 200
    steps = paused["checkpoint_step"] // 100 * 100 + 400
    resumed = train_pendulum(resume=str(tmp_path / "run"), steps=steps)
    whole = train_pendulum(tmp_path / "whole", seed=7, steps=steps, settings=settings)
    assert paused["state_sha256"] != whole["state_sha256"]
    assert resumed["state_sha256"] == whole["state_sha256"]
    assert resumed["return_mean"] == whole["return_mean"]
    rows = [(r["step"], r["return_mean"]) for r in metrics(tmp_path / "run", "evaluation")]
    assert rows == [
        (r["step"], r["return_mean"]) for r in metrics(tmp_path / "whole", "evaluation")
    ]
    assert [row[0] for row in rows] == list(range(100, steps + 1, 100))


@pytest.mark.parametrize("experiment", ["pendulum-td3", "pendulum-sac"])
def test_two_threads_train_to_the_same_bits(experiment: str, tmp_path: Path) -> None:
    settings = ["eval_every=100"]
    one, two = (
        train_here(experiment, board, seed=3, steps=300, settings=settings, out=tmp_path / board)
        for board in ("host", "host-threads")
    )
    assert two["board"] == "host-threads"
    assert two["state_sha256"] == one["state_sha256"]
    assert two["return_mean"] == one["return_mean"]


def test_host_program_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links: list[Any] = []
    real_open = training_run.open_board

    def open_and_remember(plan: Plan) -> Link:
        links.append(real_open(plan))
        return links[0]

    class KillingScreen(PlainScreen):
        def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
            super().take(event)
            if self.view.step == 200:
                os.kill(links[0].process_id, signal.SIGKILL)

    monkeypatch.setattr(training_run, "open_board", open_and_remember)
    monkeypatch.setattr(train_command, "make_screen", KillingScreen)
    with pytest.raises(
        LinkLostError, match="lost the program of board host: it was ended by SIGKILL"
    ):
        train_pendulum(tmp_path / "run", steps=100_000, settings=["report_every=100"])
    folder = RunFolder.open(tmp_path / "run")
    assert folder.metadata["state"] == "link lost"
    steps = [row["step"] for row in metrics(tmp_path / "run", "progress")]
    assert steps == list(range(100, steps[-1] + 1, 100))
    assert steps[-1] >= 200


def test_host_program_refuses_what_the_host_refuses(tmp_path: Path) -> None:
    """The board's own bounds agree with the description's: each bound is accepted."""
    description = experiments.describe("pendulum-td3")
    for end in ("minimum", "maximum"):
        settings = [
            f"{entry.name}={getattr(entry, end)!r}"
            for entry in description.hyperparameters
            if entry.name not in ("seed", "steps", "eval_every", "eval_episodes", "learning_starts")
        ]
        path = tmp_path / end
        try:
            train_pendulum(path, steps=20, settings=settings)
        finally:
            shutil.rmtree(path, ignore_errors=True)
