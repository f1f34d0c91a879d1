"""What run.json says of a run, and of its best policy."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

import rlt
from fake_board import policy_of
from rltools_host.boards.messages import Result
from rltools_host.commands import cli
from rltools_host.commands import train as train_command
from rltools_host.errors import DamagedFileError, Interrupted, RefusedError, UsageError
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.contents import Run, Session
from rltools_host.runs.folder import RunFolder
from rltools_host.training.board import (
    BestPolicy,
    guest_instructions,
    run_in_state,
)
from rltools_host.training.training_time import (
    TimeInTraining,
    share_of_evaluations,
    train_s_before,
)
from training_bench import installed_bench, interrupt_at, is_valid, metrics
from training_calls import train_here

EARLIER = Session(evaluation_s=2.0, messages_lost=3, guest_instructions=100, ended="then")
SETTINGS = ["eval_freq=100", "learning_starts=200", "report_every=10"]
SEED, BEST_AT, STEPS = 1, 300, 1200  # evaluated best long before the end


def test_sessions_add_up() -> None:
    run = Run(sessions=[EARLIER, Session(board="host")])
    session = Session(board="host", evaluation_s=0.5, messages_lost=4, guest_instructions=11)
    new = run_in_state(run, "paused", 30, 12.5, None, session)
    assert (new.evaluation_s, new.messages_lost) == (2.5, 7)
    assert (new.guest_instructions, new.steps_per_s) == (111, 3.0)
    assert new.sessions[0] == EARLIER
    assert new.sessions[1].board == "host"
    assert new.sessions[1].ended == new.ended != ""
    training = run_in_state(run, "training", 0, 0.0, None, session)
    assert (training.ended, training.sessions[1].ended, training.steps_per_s) == ("", "", None)


def test_time_goes_on_where_it_rested(monkeypatch: pytest.MonkeyPatch) -> None:
    now, cpu = [0.0], [0.0]
    monkeypatch.setattr(time, "process_time", lambda: cpu[0])
    measured = TimeInTraining(lambda: now[0])
    for began, cpu_began in ((10.0, 1.0), (100.0, 50.0)):
        now[0], cpu[0] = began, cpu_began
        measured.start()
        now[0], cpu[0] = began + 3.0, cpu_began + 2.0
        measured.stop()
    assert (measured.seconds, measured.cpu_s) == (6.0, 4.0)


@pytest.mark.parametrize(
    ("counter", "of_evaluations", "expected"), [(0, 5, 0.0), (8, 2, 0.25), (4, 4, 1), (4, 9, 1)]
)
def test_share_of_evaluations(counter: int, of_evaluations: int, expected: float) -> None:
    result = Result(counter, of_evaluations, 0, 0, 0, True, "")
    assert share_of_evaluations(result) == expected


def test_time_before_is_the_checkpoints_or_that_of_the_last_row() -> None:
    rows = [{"time_s": 3.0}, {"time_s": 7}, {"time_s": 5.0}]
    run = Run(checkpoint_step=40, checkpoint_train_s=2.5)
    assert train_s_before(run, 40, rows) == 2.5
    assert train_s_before(run, 41, rows) == 7.0
    assert train_s_before(run, 41, []) == 0.0
    assert train_s_before(Run(checkpoint_step=40), 40, rows) == 0.0


def test_instructions_are_those_of_sessions_that_all_count_them() -> None:
    five, none, zero = Session(guest_instructions=5), Session(), Session(guest_instructions=0)
    assert guest_instructions([]) is None
    assert guest_instructions([five, none]) is None
    assert guest_instructions([five, zero]) == 5


def train(out: Path, steps: int = STEPS, seed: int = SEED) -> dict[str, Any]:
    return train_here("pendulum-td3", "host", out=out, seed=seed, steps=steps, settings=SETTINGS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("best") / "whole"
    train(path)
    return path


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def test_the_best_policy_is_that_of_a_run_which_ends_there(whole: Path, tmp_path: Path) -> None:
    rows = metrics(whole, "evaluation")
    best = RunFolder.open(whole).content.best
    assert best is not None
    assert best.return_mean == max(row["return_mean"] for row in rows)
    assert best.step == BEST_AT
    ended = train(tmp_path / "ended", BEST_AT)
    folder = RunFolder.open(tmp_path / "ended")
    assert best.state_sha256 == ended["state_sha256"]
    assert RunFolder.open(whole).best_path.read_bytes() == folder.policy_path.read_bytes()
    image = read_run_policy(whole, "best")
    assert (image.step, image.state_sha256) == (BEST_AT, best.state_sha256)
    assert read_run_policy(whole).step == STEPS
    # Where the last one is the best, both are the same.
    assert ended["best"]["step"] == BEST_AT
    assert folder.best_path.read_bytes() == folder.policy_path.read_bytes()


def test_a_resumed_run_goes_on_with_the_best_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board that goes on does not know of it."""
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(400))
        with pytest.raises(Interrupted, match="checkpoint saved"):
            train(tmp_path / "run", steps=10_000_000)
    paused = RunFolder.open(tmp_path / "run").content
    assert paused.best is not None
    steps = (paused.checkpoint_step or 0) // 100 * 100 + 300
    resumed = train_here(None, "host", resume=str(tmp_path / "run"), steps=steps)
    assert resumed["best"] == train(tmp_path / "whole", steps)["best"]
    assert [path.name for path in sorted(RunFolder.open(tmp_path / "run").save_path.iterdir())] == [
        "best.rltp",
        "checkpoint.safetensors",
        "policy.rltp",
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "it is not a policy image"), (policy_of(b"", 77), "no evaluation was at step 77")],
)
def test_a_best_policy_that_is_damaged_is_not_dropped_in_silence(
    copy: Path, content: bytes, reason: str
) -> None:
    best = RunFolder.open(copy).best_path
    best.write_bytes(content)
    before = (copy / "metrics.jsonl").read_bytes(), (copy / "run.json").read_bytes()
    with pytest.raises(DamagedFileError, match=f"best.rltp is damaged: {reason}"):
        train_here(None, "host", resume=str(copy), steps=STEPS + 100)
    assert before == ((copy / "metrics.jsonl").read_bytes(), (copy / "run.json").read_bytes())
    with pytest.raises(DamagedFileError):
        read_run_policy(copy, "best")
    best.unlink()
    document = train_here(None, "host", resume=str(copy), steps=STEPS + 100)
    assert document["best"]["step"] == STEPS + 100  # the only one whose policy was kept since


def test_a_best_policy_of_another_state_is_refused(copy: Path) -> None:
    folder = RunFolder.open(copy)
    shutil.copy(folder.policy_path, folder.best_path)
    with pytest.raises(RefusedError, match=r"another training state than .*run\.json names"):
        read_run_policy(copy, "best")


def test_a_run_on_a_board_that_keeps_none_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is asked for its file, which is not there; the run is whole, and says so when asked."""
    bench = installed_bench(monkeypatch)
    try:
        document = bench.train(tmp_path / "run")
    finally:
        bench.close()
    assert metrics(tmp_path / "run", "evaluation")
    assert is_valid(tmp_path / "run")["best"] is None
    assert document["best"] is None
    assert not RunFolder.open(tmp_path / "run").best_path.exists()
    sentence = r"has no best policy: .* yet, or its board had no memory for"
    with pytest.raises(UsageError, match=sentence):
        read_run_policy(tmp_path / "run", "best")


def test_what_is_not_known_is_not_taken(tmp_path: Path) -> None:
    """An earlier save has none; nothing was evaluated in this session."""
    best = BestPolicy()
    best.restore(tmp_path, [])
    best.fetch(None, None)  # type: ignore[arg-type]  # the board is not asked
    assert (best.files, best.best) == ({}, None)


# -- asking for it ---------------------------------------------------------------------------------


def said(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.run(words.split()) == 0
    return capsys.readouterr().out


def test_commands_take_the_best_policy(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best, last = tmp_path / "best.rltp", tmp_path / "last.rltp"
    folder = RunFolder.open(whole)
    said(f"export {whole} --which best -o {best}", capsys)
    said(f"export {whole} -o {last}", capsys)
    assert best.read_bytes() == folder.best_path.read_bytes()
    assert last.read_bytes() == folder.policy_path.read_bytes()
    words = f"evaluate {whole} --episodes 5"
    assert cli.run([*words.split(), "--which", "best"]) == 0
    shown = capsys.readouterr()
    assert shown.out != said(words, capsys)
    assert "the policy is of step 300 of 1,200, evaluated best in training" in shown.err
    page = tmp_path / "page.html"
    said(f"report {whole} --which best -o {page}", capsys)
    assert "the policy of step 300, evaluated best in training, earns" in page.read_text()
    assert "of step 300, 3-64-64-1" in said(f"push {whole} --which best --board host", capsys)
    words = f"hil --run {whole} --board host --inputs 9 --samples 9"
    assert "18 of 18 inputs" in said(words, capsys)
    assert rlt.Run(whole, {}).best_policy.step == BEST_AT
    assert rlt.Policy.load(whole, which="best").step == BEST_AT
