"""The folder of a group of runs, and which group a name means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policy_run import GROUP
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.runs.group import GroupFolder
from run_folders import new_group

VARIANTS = [
    {"name": "a", "label": "with", "settings": []},
    {"name": "b", "label": "without", "settings": ["adaptive_lr=0"]},
]
ASKED = {**GROUP, "kind": "study", "seeds": [0, 7], "variants": VARIANTS}


def made(path: Path, **changes: Any) -> Path:
    new_group(path, {**ASKED, **changes})
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"seeds": "0-3"}, "seeds: Expected `array`, got `str`"),
        (
            {"variants": [{"name": "../x", "label": "", "settings": []}]},
            "variants[0].name: Expected `str` matching regex",
        ),
    ],
)
def test_damaged(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    path = made(tmp_path / "g") / "group.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(DamagedFileError) as caught:
        GroupFolder.open(tmp_path / "g")
    assert f"{path} is damaged ({reason}" in str(caught.value)


def test_format_of_a_later_version(tmp_path: Path) -> None:
    path = made(tmp_path / "g") / "group.json"
    path.write_text(path.read_text().replace('"format": 3', '"format": 4'))
    with pytest.raises(DamagedFileError, match="has format 4, this host reads 3"):
        GroupFolder.open(tmp_path / "g")


def test_one_at_a_time(tmp_path: Path) -> None:
    one = GroupFolder.open(made(tmp_path / "g"))
    second = GroupFolder.open(tmp_path / "g")
    one.lock()
    with pytest.raises(UsageError, match="another rlt is training in"):
        second.lock()
    one.close()
    second.lock()
    second.close()
