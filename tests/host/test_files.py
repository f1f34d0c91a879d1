"""JSON that is refused, and the remedy that goes with what a disk says."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path

import pytest

from rltools_host.errors import DiskError
from rltools_host.files import (
    MAX_JSON_BYTES,
    MAX_NESTING,
    disk_error,
    load_json,
    parse_json,
    write_changed,
)


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


@pytest.mark.parametrize("value", ["[],", '{"":1},', "1,"])
def test_many_values_are_refused_before_there_is_memory_for_them(
    value: str, tmp_path: Path
) -> None:
    """A run.json of 100 MB could take 2 GB."""
    count = MAX_JSON_BYTES // len(value) - 2
    (tmp_path / "run.json").write_text(f"[{value * count}0]")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="it has more than 2,000,000 commas"):
            load_json(tmp_path / "run.json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * MAX_JSON_BYTES


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udfff": 1}', '["a", {"b": "\\ud800"}]'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    """It cannot be written or shown."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        parse_json(text)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space, then run the command again"),
        (errno.EACCES, "make its folder writable, or choose another"),
    ],
)
def test_remedy_fits_the_disks_error(number: int, remedy: str) -> None:
    error = disk_error(Path("/a/file"), OSError(number, os.strerror(number)))
    assert str(error) == f"cannot write /a/file: {os.strerror(number)}; {remedy}"


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "build").touch()
    with pytest.raises(DiskError) as refused:
        write_changed(tmp_path / "build" / "protocol" / "x.h", "")
    assert f"{tmp_path}/build is a file and no folder; move {tmp_path}/build" in str(refused.value)
