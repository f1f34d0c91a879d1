"""What the tools of commit 3aee050 left on disk (tests/data/3aee050): today's read it, evaluate it
and go on with it, to the bits that those came to."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from rltools_host import cli
from rltools_host.build import experiments
from rltools_host.policies.image import parse_policy
from rltools_host.runs.checkpoint import load_checkpoint
from rltools_host.runs.folder import FORMAT, RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.tree import TREE

ARCHIVE = TREE.root / "tests" / "data" / "3aee050" / "files.tar.xz"
STATE = "b4faca7fb405b5a438c808fd7bcb645b4dee963afed521bb68226b1cced9c633"
POLICY = "7f8e7ea4091f725978745edf9a1633c40068c18484f8b60d43a8a196b257eb76"
# Of `paused` at step 700, and of two episodes of `finished`, by the tools of then.
STATE_AT_700 = "32d289fd39f02fe7a3e23dc79a6620201f9d6782133ba115c4ca52208efed5c5"
RETURNS = [-1041.715848669654, -1074.2974741752912]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path)  # filters came with Python 3.11.4
    return tmp_path


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert cli.run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_finished_run(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder.open(old / "finished")
    content = folder.content
    assert (content.state, content.steps, content.step) == ("finished", 100, 100)
    assert (content.experiment, content.seed, content.state_sha256) == ("pendulum-td3", 0, STATE)
    assert [session.last_step for session in content.sessions] == [100]
    assert [row["kind"] for row in folder.read_metrics()].count("evaluation") >= 1
    evaluate = ["evaluate", str(folder.path), "--episodes", "2", "--in", "gymnasium"]
    assert said(evaluate, capsys)["returns"] == pytest.approx(RETURNS, rel=1e-6)
    assert cli.run(["report", str(folder.path)]) == 0
    assert STATE in folder.report_path.read_text(encoding="utf-8")


def test_a_checkpoint(old: Path) -> None:
    (path,) = (old / "finished").glob("save-*/checkpoint.safetensors")
    checkpoint = load_checkpoint(path, experiments.describe("pendulum-td3"))
    assert (checkpoint.step, checkpoint.state_sha256) == (100, STATE)
    assert checkpoint.hyperparameters["learning_starts"] == 100


def test_a_paused_run_goes_on_to_the_same_bits(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--resume", str(old / "paused"), "--steps", "700", "--no-tensorboard"]
    assert said(words, capsys)["state_sha256"] == STATE_AT_700
    content = RunFolder.open(old / "paused").content
    assert [session.first_step for session in content.sessions] == [0, 465]
    assert content.format == FORMAT, "which the tools of then refuse: they drop the best policy"
    assert content.format > 2


def test_a_group(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = GroupFolder.open(old / "group")
    assert [str(name.folder) for name in group.run_names()] == ["s0", "s1"]
    found = said(["evaluate", str(group.path), "--episodes", "2", "--in", "gymnasium"], capsys)
    assert found["evaluations"][0]["returns"] == pytest.approx(RETURNS, rel=1e-6)
    assert cli.run(["report", str(group.path)]) == 0
    assert cli.run(["train", "--resume", str(group.path)]) == 2
    assert "all 2 runs of " in capsys.readouterr().err


def test_an_exported_image(old: Path) -> None:
    image = parse_policy((old / "pendulum.rltp").read_bytes())
    assert (image.sha256, image.state_sha256) == (POLICY, STATE)
    assert image.experiment == "pendulum-td3"


def test_a_boards_storage(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under the name that it had then, by the contract's."""
    folder = old / "policies"
    folder.mkdir()
    shutil.copy(old / "storage.bin", folder / "pendulum.bin")
    slots = said(["policies", "--board", "host"], capsys)["slots"]
    assert [slot["sha256"] for slot in slots if slot.get("sha256")] == [POLICY]
