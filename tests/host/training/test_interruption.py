"""Ctrl-C, SIGTERM and resumption, with the fake board."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fake_faults import Faults
from rltools_host.commands import train as train_command
from rltools_host.errors import (
    DamagedFileError,
    Interrupted,
    LinkLostError,
    UsageError,
)
from rltools_host.runs.folder import RunFolder
from training_bench import (
    DIALECT,
    PAUSED_BOARD,
    Bench,
    final_state,
    interrupt_at,
    is_valid,
    metrics,
    saved_checkpoint,
)

# -- Ctrl-C and resumption -------------------------------------------------------------------------


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
    step = RunFolder.open(run).content.checkpoint_step
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
    step = RunFolder.open(run).content.checkpoint_step
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


def test_what_a_resumed_run_keeps(interrupted: tuple[Bench, Path, Interrupted]) -> None:
    bench, run, _ = interrupted
    built = bench.built
    with pytest.raises(UsageError, match="keeps its learning_rate: only steps and report"):
        bench.train(run, "learning_rate=0.01", resume=str(run))
    with pytest.raises(UsageError, match="has done its"):
        bench.train(run, resume=str(run), steps=100)
    assert bench.built == built
    is_valid(run)


def test_damaged_checkpoint_is_not_resumed(interrupted: tuple[Bench, Path, Interrupted]) -> None:
    bench, run, _ = interrupted
    path = RunFolder.open(run).checkpoint_path
    content = bytearray(path.read_bytes())
    content[-1] ^= 4
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="its training state does not match its SHA-256"):
        bench.train(run, resume=str(run))
    assert len(bench.boards) == 1, "a damaged checkpoint must not reach a board"


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
