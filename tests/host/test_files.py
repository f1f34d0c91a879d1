"""What is no JSON of ours, and the remedy that goes with what a disk says."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from rltools_host.files import MAX_NESTING, disk_error, parse_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, "b"]}', {"a": [1, "b"]}),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("[" * (MAX_NESTING - 1) + "]" * (MAX_NESTING - 1), ...),
    ],
)
def test_json_is_parsed(text: str, value: Any) -> None:
    parsed = parse_json(text)
    assert value is ... or parsed == value


@pytest.mark.parametrize(
    "text",
    [
        "[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1),
        '{"a":' * (MAX_NESTING + 1) + "1" + "}" * (MAX_NESTING + 1),
        "[" * 99_999,
        '{"a":' * 99_999,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it is nested too deeply"):
        parse_json(text)


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udfff": 1}', '["a", {"b": "\\ud800"}]'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    """It cannot be written or shown."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        parse_json(text)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space, then run the command again"),
        (errno.EDQUOT, "free some space, then run the command again"),
        (errno.EACCES, "choose another folder"),
        (errno.EPERM, "choose another folder"),
        (errno.EROFS, "choose another folder"),
        (errno.EIO, "check the disk, or choose another folder"),
    ],
)
def test_remedy_fits_the_disks_error(number: int, remedy: str) -> None:
    error = disk_error(Path("/a/file"), OSError(number, os.strerror(number)))
    assert str(error) == f"cannot write /a/file: {os.strerror(number)}; {remedy}"


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    """The outermost of those that are."""
    path = tmp_path / "project" / "runs" / "x" / "run.json"
    missing = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    assert str(disk_error(path, missing)) == (
        f"cannot write {path}: there is no folder {tmp_path / 'project'}; see that it is "
        "there, and run the command again"
    )
    path.parent.mkdir(parents=True)
    assert "No such file or directory; check the disk" in str(disk_error(path, missing))
