"""Training runs with the fake board: files, ends, accidents."""

from __future__ import annotations

import errno
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from disk_calls import SmallDisk
from fake_board import policy_of
from fake_experiment import FINGERPRINT
from fake_faults import Faults
from rltools_host.errors import (
    BoardMismatchError,
    DiskError,
    Interrupted,
    LinkLostError,
    RefusedError,
    UsageError,
)
from rltools_host.files import disk_error
from rltools_host.runs.checkpoint import load_checkpoint
from rltools_host.runs.folder import RunFolder
from training_bench import (
    DIALECT,
    EXPERIMENT,
    PAUSED_BOARD,
    Bench,
    final_state,
    is_valid,
    metrics,
    saved_checkpoint,
)

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
    # The board says that a quarter of its time went into evaluations.
    assert document["evaluation_s"] == pytest.approx(0.25 * document["train_s"])
    assert document["steps_per_s"] == pytest.approx(1000 / (0.75 * document["train_s"]))
    assert [row["step"] for row in metrics(run, "progress")] == list(range(50, 1001, 50))
    assert [row["step"] for row in metrics(run, "evaluation")] == list(range(100, 1001, 100))
    assert {"value_loss", "entropy", "kl"} <= set(metrics(run, "progress")[0])
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
    (events,) = (path.read_bytes() for path in run.glob("events*"))
    table = events.partition(b"_hparams_/session_start_info")[2]
    assert all(name.encode() in table for name in metadata["hyperparameters"])
    assert sorted(path.name for path in folder.save_path.iterdir()) == [
        "checkpoint.safetensors",
        "policy.rltp",
    ]


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


# -- accidents -------------------------------------------------------------------------------------


def test_pulled_cable_keeps_everything_received(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(unplug_at_step=437)
    run = tmp_path / "run"
    with pytest.raises(LinkLostError, match="the data received up to step 437 is in") as caught:
        bench.train(run, "report_every=1", "eval_freq=100")
    assert "\n" not in str(caught.value)
    assert [row["step"] for row in metrics(run, "progress")] == list(range(1, 438))
    assert [row["step"] for row in metrics(run, "evaluation")] == [100, 200, 300, 400]
    metadata = is_valid(run)
    assert (metadata["state"], metadata["step"]) == ("link lost", 437)
    assert not list(run.glob("save-*"))
    with pytest.raises(UsageError, match=r"holds no checkpoint.safetensors"):
        bench.train(run, resume=str(run))


def test_many_environments_step_at_once(bench: Bench, tmp_path: Path) -> None:
    """Reports fall due when a multiple is crossed, and the last steps may go past the end."""
    bench.options = {"environments": 32}
    run = tmp_path / "run"
    settings = ("report_every=50", "eval_freq=100")
    document = bench.train(run, *settings, steps=200)
    assert document["step"] == 224
    assert [row["step"] for row in metrics(run, "progress")] == [64, 128, 160, 224]
    assert [row["step"] for row in metrics(run, "evaluation")] == [128, 224]
    assert is_valid(run)["state"] == "finished"
    with pytest.raises(UsageError, match="has done its 224 steps"):
        bench.train(run, resume=str(run))
    assert bench.train(run, resume=str(run), steps=300)["step"] == 320


def test_past_the_last_step_a_policy_that_is_missing_is_fetched(
    bench: Bench, tmp_path: Path
) -> None:
    bench.options = {"environments": 32}
    run = tmp_path / "run"
    bench.train(run, steps=200)
    (RunFolder.open(run).policy_path).unlink()
    assert bench.train(run, resume=str(run))["step"] == 224
    assert is_valid(run)["state"] == "finished"
    (RunFolder.open(run).policy_path).unlink()
    with pytest.raises(UsageError, match="has done its 224 steps"):
        bench.train(run, resume=str(run), steps=192)
    assert bench.train(run, resume=str(run), steps=200)["step"] == 224


def test_state_that_differs_from_its_hash(bench: Bench, tmp_path: Path) -> None:
    bench.faults = Faults(wrong_state_sha256=True)
    with pytest.raises(RefusedError, match="the board stated step 1000 and 0000000000000000"):
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
    with pytest.raises(RefusedError, match=r"policy from .* is not of the state with hash"):
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
    with pytest.raises(RefusedError, match=sentence):
        bench.train(run, resume=str(run))
    assert DIALECT.MAV_CMD_RLT_RESUME not in bench.boards[-1].commands
    assert is_valid(run)["state_sha256"] == state


def test_board_with_other_firmware(bench: Bench, tmp_path: Path) -> None:
    bench.options = {"experiment": "other-td3"}
    sentence = 'runs experiment "other-td3", not "fake-td3": leave out --port'
    with pytest.raises(BoardMismatchError, match=sentence):
        bench.train(tmp_path / "run")
    assert not (tmp_path / "run").exists(), "a run that never began leaves no folder"


@pytest.mark.parametrize("room", [0, 3000, 20000, 28000])
def test_full_disk_leaves_no_half_file(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """The disk fills up at the start, among the metrics, and while checkpoint and policy come."""
    monkeypatch.setattr(os, "write", SmallDisk(room, tmp_path))
    run = tmp_path / "run"
    with pytest.raises(DiskError, match=r"cannot write .*: No space left on device; free some"):
        bench.train(run, "report_every=20")
    monkeypatch.undo()
    if run.exists():
        assert is_valid(run)["state"] in ("starting", "training", "failed")


def refuse_reports(
    monkeypatch: pytest.MonkeyPatch, step: int, while_: Callable[[Path], bool] = lambda _: True
) -> None:
    """The disk is full for reports from a step on, for some time."""
    append = RunFolder.append_metrics

    def refuse(self: RunFolder, rows: Any) -> None:
        if any(row["step"] >= step for row in rows) and while_(self.path):
            raise disk_error(self.metrics_path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        append(self, rows)

    monkeypatch.setattr(RunFolder, "append_metrics", refuse)


def test_full_disk_on_the_way_pauses_and_saves(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    bench.options = PAUSED_BOARD
    with monkeypatch.context() as patch:
        refuse_reports(patch, 300)
        with pytest.raises(DiskError) as caught:
            bench.train(run, "report_every=20")
    sentence = str(caught.value)
    assert sentence.startswith(f"cannot write {run / 'metrics.jsonl'}: No space left on device; ")
    assert "checkpoint saved; free some space, then go on with `" in sentence
    metadata = is_valid(run)
    assert metadata["state"] == "paused"
    assert 0 < metadata["checkpoint_step"] < 1000
    assert saved_checkpoint(run).payload == final_state(3, metadata["checkpoint_step"])
    bench.options = {}
    words = shlex.split(sentence.split("`")[1])
    assert words[-2:] == ["--resume", str(run)]
    bench.train(run, resume=str(run))
    assert saved_checkpoint(run).payload == final_state(3, 1000)


def test_full_disk_at_the_end_saves_and_says_what_is_missing(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    refuse_reports(monkeypatch, 1000)
    with pytest.raises(DiskError, match=r"the run has finished and is saved without its reports$"):
        bench.train(run)
    assert is_valid(run)["state"] == "finished"
    assert saved_checkpoint(run).payload == final_state(3, 1000)
