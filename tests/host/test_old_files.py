"""What the tools of commit 3aee050 left on disk (tests/data/3aee050): a policy is read, as boards
hold such."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from rltools_host.commands import cli
from rltools_host.policies.image import parse_policy
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
