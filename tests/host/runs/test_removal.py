"""Which names a run may be given, and which files are a run's."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.errors import UsageError
from rltools_host.runs.inventory import is_of_run, names_of, remove_files, rename


@pytest.mark.parametrize("name", ["", "latest", ".a", "a/b", "a\0"])
def test_names_that_a_run_may_not_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f'"{name}" is not a name for a run: '):
        rename(tmp_path / "run", name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("run.json", "policy.rltp", "checkpoint.safetensors")),
        *((name, True) for name in ("metrics.jsonl", "gate-hover.json", "flight-a.html")),
        *((name, True) for name in ("hil-host.json", ".run.json.17.partial")),
        *((name, False) for name in ("notes.txt", "gate-.json", "hil-host.html", "agate-a.json")),
        *((name, False) for name in ("gate-hover.json.bak", "policy.rltp2", "group.json")),
    ],
)
def test_which_files_are_a_runs(name: str, expected: bool) -> None:
    assert is_of_run(name) is expected


def test_files_of_a_folder_itself_are_removed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    (folder / "sub").mkdir(parents=True)
    elsewhere.mkdir()
    for file in (folder / "b", folder / "a", elsewhere / "a"):
        file.touch()
    (folder / "link").symlink_to(elsewhere)
    remove_files(folder / "link", lambda _: True)
    remove_files(folder / "a", lambda _: True)  # no folder
    remove_files(folder / "nothing", lambda _: True)
    assert names_of(folder) == ["a", "b", "link", "sub"]
    remove_files(folder, lambda name: name != "b")
    assert names_of(folder) == ["b", "sub"]
    assert names_of(elsewhere) == ["a"]
    assert names_of(folder / "b") == names_of(folder / "nothing") == []
