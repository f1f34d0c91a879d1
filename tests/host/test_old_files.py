"""What the tools of commit 3aee050 left on disk (tests/data/3aee050): a policy is read, as boards
hold such, and of a run, a group and a checkpoint the format is named that this host does not read.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import experiments
from rltools_host.commands import cli
from rltools_host.errors import DamagedFileError
from rltools_host.policies.image import parse_policy
from rltools_host.runs.checkpoint import load_checkpoint
from rltools_host.tree import TREE

ARCHIVE = TREE.root / "tests" / "data" / "3aee050" / "files.tar.xz"
STATE = "b4faca7fb405b5a438c808fd7bcb645b4dee963afed521bb68226b1cced9c633"
POLICY = "7f8e7ea4091f725978745edf9a1633c40068c18484f8b60d43a8a196b257eb76"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path)  # filters came with Python 3.11.4
    return tmp_path


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    assert cli.run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["report", "finished"], "run.json has format 2, this host reads 4"),
        (["train", "--resume", "paused"], "run.json has format 2, this host reads 4"),
        (["evaluate", "group"], "group.json has format 1, this host reads 3"),
    ],
)
def test_a_run_of_another_format_is_refused(
    old: Path, capsys: pytest.CaptureFixture[str], words: list[str], file: str
) -> None:
    *before, name = words
    assert cli.run([*before, str(old / name)]) == 5
    assert f"{file}: use the host tools that wrote it" in capsys.readouterr().err


def test_a_checkpoint_of_another_format_is_refused(old: Path) -> None:
    (path,) = (old / "finished").glob("save-*/checkpoint.safetensors")
    with pytest.raises(DamagedFileError, match="has format rltools-checkpoint-1, this host reads"):
        load_checkpoint(path, experiments.describe("pendulum-td3"))


def test_an_exported_image(old: Path) -> None:
    image = parse_policy((old / "pendulum.rltp").read_bytes())
    assert (image.sha256, image.state_sha256) == (POLICY, STATE)
    assert image.experiment == "pendulum-td3"


def test_a_boards_storage(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = old / "policies"
    folder.mkdir()
    checksum = parse_policy((old / "pendulum.rltp").read_bytes()).contract.checksum
    shutil.copy(old / "storage.bin", folder / f"{checksum:08x}.bin")
    slots = said(["policies", "--board", "host"], capsys)["slots"]
    assert [slot["sha256"] for slot in slots if slot.get("sha256")] == [POLICY]
