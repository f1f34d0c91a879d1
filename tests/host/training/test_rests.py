"""The best policy of a board that has no memory for a second one: it rests after each evaluation
that is the best so far, and the run keeps its policy."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_board import policy_of
from fake_faults import Faults
from rltools_host.boards import connection
from rltools_host.boards.file_transfer import FileClient
from rltools_host.commands import train as train_command
from rltools_host.errors import DiskError, Interrupted, LinkLostError
from rltools_host.runs.folder import RunFolder
from rltools_host.training import run as training_run
from rltools_host.training.board import BestPolicy
from training_bench import (
    DIALECT,
    Bench,
    final_state,
    installed_bench,
    interrupt_at,
    is_valid,
    metrics,
    saved_checkpoint,
)

STEPS = 600
RETURNS = {100: -9.0, 200: -5.0, 300: -7.0, 400: -1.0, 500: -1.0, 600: -3.0}
BETTER = (100, 200, 400)  # than all before


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = installed_bench(monkeypatch)
    bench.options = {"return_of": RETURNS.__getitem__, "rests": True}
    yield bench
    bench.close()


def train(bench: Bench, path: Path, **options: Any) -> dict[str, Any]:
    return bench.train(path, steps=STEPS, **options)


def resumptions(bench: Bench) -> int:
    return bench.boards[-1].commands.count(DIALECT.MAV_CMD_RLT_RESUME)


def check_best(run: Path, step: int) -> None:
    """The run's best policy is that of this step, and is what run.json says."""
    best = RunFolder.open(run).content.best
    assert best is not None
    assert (best.step, best.return_mean) == (step, RETURNS[step])
    image = policy_of(final_state(3, step), step)
    assert RunFolder.open(run).best_path.read_bytes() == image
    RunFolder.open(run).require_state(best.state_sha256, "best")


def check_end(run: Path) -> None:
    """As that of a run without rests."""
    assert saved_checkpoint(run).payload == final_state(3, STEPS)
    assert is_valid(run)["state"] == "finished"
    check_best(run, 400)


def test_the_best_policy_is_kept_and_the_run_is_the_same(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = train(bench, tmp_path / "run")
    shown = capsys.readouterr()
    check_end(tmp_path / "run")
    assert resumptions(bench) == len(BETTER), "no rest is needless"
    assert document["best"]["step"] == 400
    metadata = is_valid(tmp_path / "run")
    assert len(metadata["sessions"]) == 1
    assert "paus" not in shown.err
    bench.options["rests"] = False
    train(bench, tmp_path / "plain")
    assert metadata["state_sha256"] == is_valid(tmp_path / "plain")["state_sha256"]
    for kind in ("progress", "evaluation", "event"):
        rows, plain = (metrics(tmp_path / name, kind) for name in ("run", "plain"))
        assert [row | {"time_s": 0} for row in rows] == [row | {"time_s": 0} for row in plain]


def test_a_rest_that_is_a_save_as_well(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board pauses once for both, at the end of the evaluation."""
    monkeypatch.setattr(training_run, "SAVE_EVERY_S", 0.01)
    bench.options |= {"seconds_per_step": 0.0002, "waits_for_pause_at": 400}
    train(bench, tmp_path / "run")
    check_end(tmp_path / "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["evaluation", "fetched"])
def test_interrupted_at_a_rest(
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    moment: str,
) -> None:
    """The run pauses as ever, with the best so far, and goes on to the same end."""
    fetch, pressed = BestPolicy.fetch, []

    def interrupted(self: BestPolicy, *arguments: Any) -> None:
        fetch(self, *arguments)
        if self.largest == RETURNS[200] and not pressed:
            pressed.append(number)
            os.kill(os.getpid(), number)

    run = tmp_path / "run"
    bench.options["seconds_per_step"] = 0.0005
    with monkeypatch.context() as patch:
        if moment == "evaluation":
            patch.setattr(train_command, "make_screen", interrupt_at(200, number))
        else:
            patch.setattr(BestPolicy, "fetch", interrupted)
        with pytest.raises(Interrupted, match="checkpoint saved"):
            train(bench, run)
    assert is_valid(run)["state"] == "paused"
    check_best(run, 200)
    bench.options["seconds_per_step"] = 0.0
    train(bench, run, resume=str(run))
    check_end(run)
    assert resumptions(bench) == 2, "the save was gone on with, and one evaluation was better"


def test_link_lost_at_a_rest(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on from its save, comes to the same evaluation, and rests again."""
    run = paused_at_100(bench, tmp_path / "run", monkeypatch)
    fetch = BestPolicy.fetch

    def unplugged(self: BestPolicy, *arguments: Any) -> None:
        bench.boards[-1].unplug()
        fetch(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(BestPolicy, "fetch", unplugged)
        with pytest.raises(LinkLostError, match=r"go on from step 100 with"):
            train(bench, run, resume=str(run))
    check_best(run, 100)
    train(bench, run, resume=str(run))
    check_end(run)


def test_killed_at_a_rest(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and behind the transfer the folder is that of the save before."""
    run = paused_at_100(bench, tmp_path / "run", monkeypatch)
    copies: list[Path] = []
    fetch = BestPolicy.fetch

    def watched(self: BestPolicy, *arguments: Any) -> None:
        for step in (lambda: None, lambda: fetch(self, *arguments)):
            step()
            copies.append(Path(shutil.copytree(run, tmp_path / f"copy{len(copies)}")))

    with monkeypatch.context() as patch:
        patch.setattr(BestPolicy, "fetch", watched)
        train(bench, run, resume=str(run))
    check_end(run)
    assert len(copies) == 6, "at steps 200 and 400, and at the end"
    for copy in copies:
        check_best(copy, 100)
        train(bench, copy, resume=str(copy))
        check_end(copy)


def test_disk_full_at_a_rest(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is full at any report: the run pauses."""
    append = RunFolder.append_metrics

    def refuse(self: RunFolder, rows: Any) -> None:
        if any(row["kind"] == "evaluation" and row["step"] == 200 for row in rows):
            raise DiskError("cannot write: no space")
        append(self, rows)

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "append_metrics", refuse)
        with pytest.raises(DiskError, match="paused at step 200 of 600, checkpoint saved"):
            train(bench, run)
    check_best(run, 200)
    assert resumptions(bench) == 1


def paused_at_100(bench: Bench, run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(100))
        with pytest.raises(Interrupted):
            train(bench, run)
    check_best(run, 100)
    return run


# -- over bad links --------------------------------------------------------------------------------


def test_a_rest_whose_evaluation_is_not_known_is_gone_on_from(bench: Bench, tmp_path: Path) -> None:
    """Without the report nobody knows how good the policy was; the next better one counts."""
    bench.faults = Faults(lose_messages={"RLT_EVALUATION"})
    train(bench, tmp_path / "run")
    check_end(tmp_path / "run")
    assert next(row["step"] for row in metrics(tmp_path / "run", "evaluation")) == 200
    assert resumptions(bench) == len(BETTER)


@pytest.mark.parametrize("lost", ["RLT_RESULT", "COMMAND_ACK"])
def test_a_lost_answer_costs_no_rest(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """The board has gone on and rests again when the command comes a second time."""
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT_S", 0.1)
    fetch = BestPolicy.fetch

    def losing(self: BestPolicy, *arguments: Any) -> None:
        fetch(self, *arguments)
        bench.faults.lose_messages.add(lost)

    monkeypatch.setattr(BestPolicy, "fetch", losing)
    bench.faults = Faults()
    train(bench, tmp_path / "run")
    check_end(tmp_path / "run")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.all)])
def test_over_a_bad_link(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The best of those evaluations whose report came."""
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT_S", 0.1)
    monkeypatch.setattr(FileClient.__init__, "__defaults__", (0.1,))
    bench.faults = Faults(drop=0.1, flip=0.1, repeat=0.2, noise=0.2, drop_from_host=0.2, seed=seed)
    train(bench, tmp_path / "run")
    assert saved_checkpoint(tmp_path / "run").payload == final_state(3, STEPS)
    rows = metrics(tmp_path / "run", "evaluation")
    largest = max(row["return_mean"] for row in rows)
    check_best(tmp_path / "run", next(row["step"] for row in rows if row["return_mean"] == largest))
