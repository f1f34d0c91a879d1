"""The best policy of a run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import rlt
from fake_board import policy_of
from rltools_host.commands import cli
from rltools_host.errors import DamagedFileError, RefusedError, UsageError
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from training_bench import installed_bench, is_valid, metrics
from training_calls import train_here

SETTINGS = ["eval_freq=100", "learning_starts=200", "report_every=10"]
SEED, BEST_AT, STEPS = 1, 300, 1200  # evaluated best long before the end


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
