"""A run is saved while it trains, so that a failure of the power costs its last minutes only."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_board import next_state
from fake_faults import Faults
from rltools_host.boards.session import value_bits
from rltools_host.boards.transport import Link
from rltools_host.commands import train as train_command
from rltools_host.errors import Interrupted, LinkLostError, TrainingFaultError, UsageError
from rltools_host.runs import saves
from rltools_host.runs.folder import RunFolder
from rltools_host.screen.training_screen import PlainScreen
from rltools_host.training import run as training_run
from rltools_host.training.plan import Plan
from run_folders import change
from training_bench import (
    DIALECT,
    Bench,
    final_state,
    installed_bench,
    is_valid,
    metrics,
    saved_checkpoint,
)

STEPS = 1000


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Its runs are saved as often as they can be, at step 500 at the latest."""
    bench = installed_bench(monkeypatch)
    monkeypatch.setattr(training_run, "SAVE_EVERY_S", 0.01)
    bench.options = {"seconds_per_step": 0.0005, "waits_for_pause_at": 500}
    yield bench
    bench.close()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str, str]]:
    """Of each save: its step, the state that run.json names then, and that of the run."""
    saves: list[tuple[int, str, str]] = []
    commit = RunFolder.commit

    def watched(self: RunFolder, step: int, *arguments: Any) -> None:
        commit(self, step, *arguments)
        metadata = is_valid(self.path)
        assert [path.name for path in self.path.glob("save-*")] == [metadata["save"]]
        assert saved_checkpoint(self.path).payload == final_state(3, step)
        saves.append((step, metadata["save"], metadata["state"]))

    monkeypatch.setattr(RunFolder, "commit", watched)
    return saves


def test_saved_run_ends_with_the_same_bits(
    bench: Bench, tmp_path: Path, seen: list[tuple[int, str, str]]
) -> None:
    document = bench.train(tmp_path / "run")
    metadata = is_valid(tmp_path / "run")
    steps = [step for step, _, _ in seen]
    assert len(steps) > 1
    assert steps == sorted(set(steps))
    assert steps[0] <= 500
    assert steps[-1] == STEPS
    assert {state for _, _, state in seen[:-1]} == {"training"}
    assert (metadata["state"], seen[-1][2]) == ("finished", "finished")
    assert saved_checkpoint(tmp_path / "run").payload == final_state(3, STEPS)
    assert [row["step"] for row in metrics(tmp_path / "run", "evaluation")] == list(
        range(100, STEPS + 1, 100)
    )
    assert len(metadata["sessions"]) == 1
    commands = Counter(bench.boards[0].commands)
    assert commands[DIALECT.MAV_CMD_RLT_START] == 1
    assert commands[DIALECT.MAV_CMD_RLT_RESUME] == len(seen) - 1
    # The last one may come when the board has finished.
    assert commands[DIALECT.MAV_CMD_RLT_PAUSE] - commands[DIALECT.MAV_CMD_RLT_RESUME] in (0, 1)
    assert document["state_sha256"] == metadata["state_sha256"]


def test_run_that_another_command_has_gone_on_with(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its checkpoint and the lock."""
    run = tmp_path / "run"
    bench.options = {}
    bench.train(run, steps=100)
    open_board = bench.open_board

    def open_later(plan: Plan) -> Link:
        change(RunFolder.open(run), checkpoint_train_s=12.5)
        return open_board(plan)

    monkeypatch.setattr(training_run, "open_board", open_later)
    with pytest.raises(UsageError, match=r"another rlt has trained in .* meanwhile: run the comm"):
        bench.train(run, resume=str(run), steps=200)
    assert is_valid(run)["checkpoint_step"] == 100


def test_run_that_is_lost_goes_on_from_its_save(bench: Bench, tmp_path: Path) -> None:
    run = tmp_path / "run"
    bench.faults = Faults(unplug_at_step=900)
    with pytest.raises(LinkLostError, match=r"go on from step [\d,]+ with `"):
        bench.train(run)
    metadata = is_valid(run)
    assert (metadata["state"], metadata["step"]) == ("link lost", 900)
    step = metadata["checkpoint_step"]
    assert 0 < step < 900
    bench.options = {}
    bench.faults = Faults(unplug_at_step=step + 1)
    with pytest.raises(LinkLostError):
        bench.train(run, resume=str(run))
    returned = [row["return_mean"] for row in metrics(run, "evaluation")]
    assert is_valid(run)["return_mean"] == (returned[-1] if returned else metadata["return_mean"])
    bench.faults = Faults()
    bench.train(run, resume=str(run))
    assert saved_checkpoint(run).payload == final_state(3, STEPS)
    assert [session["first_step"] for session in is_valid(run)["sessions"]] == [0, step, step]
    assert DIALECT.MAV_CMD_RLT_START not in bench.boards[1].commands


@pytest.mark.parametrize(
    "moment",
    [
        "fetching the checkpoint",
        pytest.param("fetching the policy", marks=pytest.mark.all),
        pytest.param("", marks=pytest.mark.all),
    ],
)
def test_interrupt_while_saving_pauses(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The empty text comes when the files have arrived and are about to be saved."""

    class PressingScreen(PlainScreen):
        pressed = False

        def activity(self, text: str, share: float | None = None) -> None:
            super().activity(text, share)
            if text == moment and self.view.step and not self.pressed:
                self.pressed = True
                os.kill(os.getpid(), signal.SIGINT)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", PressingScreen)
        with pytest.raises(Interrupted, match=r"paused at step .* checkpoint saved; go on with"):
            bench.train(run)
    assert is_valid(run)["state"] == "paused"
    bench.train(run, resume=str(run))
    assert saved_checkpoint(run).payload == final_state(3, STEPS)


def test_interrupt_while_the_board_pauses_to_be_saved(
    bench: Bench, tmp_path: Path, seen: list[tuple[int, str, str]]
) -> None:
    """One pause serves both, and the state is fetched once."""
    bench.options["on_pause"] = lambda: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Interrupted, match="checkpoint saved"):
        bench.train(tmp_path / "run")
    assert [state for _, _, state in seen] == ["paused"]
    assert bench.boards[0].commands.count(DIALECT.MAV_CMD_RLT_RESUME) == 0


def test_run_that_ends_before_it_pauses_to_be_saved(
    bench: Bench, tmp_path: Path, seen: list[tuple[int, str, str]]
) -> None:
    bench.options["on_pause"] = lambda: bench.boards[-1].finish()
    bench.train(tmp_path / "run")
    assert [(step, state) for step, _, state in seen] == [(STEPS, "finished")]
    assert saved_checkpoint(tmp_path / "run").payload == final_state(3, STEPS)


def test_a_save_is_due_also_while_no_report_comes(
    bench: Bench,
    tmp_path: Path,
    seen: list[tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reports up to step 500 arrive at once, and the next one after the save."""
    monkeypatch.setattr(training_run, "SAVE_EVERY_S", 0.3)
    bench.options["seconds_per_step"] = 0.0
    bench.train(tmp_path / "run")
    assert seen[0][0] == 500


def test_board_that_fails_before_it_pauses_to_be_saved(bench: Bench, tmp_path: Path) -> None:
    """The error is that of the board, and not that it refuses to pause."""
    bench.options["on_pause"] = lambda: bench.boards[-1].fail("a loss is not finite")
    with pytest.raises(TrainingFaultError, match=r"training stopped on .*: a loss is not finite; "):
        bench.train(tmp_path / "run")
    assert is_valid(tmp_path / "run")["state"] == "fault"


def test_a_fault_costs_what_came_after_an_evaluation(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run goes on from there, with smaller steps if they are asked for, and says so."""
    monkeypatch.setattr(training_run, "SAVE_EVERY_S", 600.0)
    monkeypatch.setattr(saves, "LARGEST_SHARE", 1000.0)
    run = tmp_path / "run"
    bench.faults = Faults(not_finite_at_step=900)
    sentence = (
        r"a loss is not finite at step 900; .*`\S*rlt check \S+` says whether the environment .*"
        r"; go on from step ([\d,]+) with `.* --set learning_rate=0.0005 --resume \S+`$"
    )
    with pytest.raises(TrainingFaultError, match=sentence):
        bench.train(run)
    assert [row["text"] for row in metrics(run, "event")] == ["a loss is not finite at step 900"]
    metadata = is_valid(run)
    step = metadata["checkpoint_step"]
    assert 100 <= step < 900
    assert metadata["state"] == "fault"
    assert metadata["sessions"][-1]["fault"] == "a loss is not finite at step 900"
    with pytest.raises(UsageError, match="a resumed run keeps its adam_beta: only steps, report_e"):
        bench.train(run, "adam_beta=0.25", resume=str(run))
    bench.options = {}
    with pytest.raises(TrainingFaultError, match=r"--set learning_rate=0.00025 --resume"):
        bench.train(run, "learning_rate=0.0005", resume=str(run))
    (note,) = [row["text"] for row in metrics(run, "event") if row["text"].startswith("resumes")]
    assert "with learning_rate 0.0005 in place of 0.001" in note
    second = is_valid(run)["checkpoint_step"]  # of the second session, if it saved behind `step`
    rate = 0.001 if second == step else 0.0005
    bench.faults = Faults()
    bench.train(run, "learning_rate=0.0001", resume=str(run))
    metadata = is_valid(run)
    assert metadata["state"] == "finished"
    assert metadata["hyperparameters"]["learning_rate"] == 0.0001
    changed = [session.get("changed") for session in metadata["sessions"]]
    assert changed == [
        {},
        {"learning_rate": (0.001, 0.0005)},
        {"learning_rate": (rate, 0.0001)},
    ]
    payload = final_state(3, step)
    for number in range(step + 1, STEPS + 1):
        payload = next_state(payload, number, value_bits("F32", 5e-4 if number <= second else 1e-4))
    assert saved_checkpoint(run).payload == payload
