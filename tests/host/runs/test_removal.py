"""Which names a run may be given, and which files are a run's."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.runs.inventory import find_named, held, is_of_run, names_of, remove_files, rename


@pytest.mark.parametrize("name", ["a", "7", "Ä b", "a" * 200, "a.b_c-d", "latest2"])
def test_names_that_a_run_may_have(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text('{"format": 4, "experiment": "pendulum-td3"}')
    assert rename(run, name) == tmp_path / name
    assert [each.name for each in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["", "latest", "_a", ".a", "-a", "a/b", "a\0", "a\n", "a" * 201])
def test_names_that_a_run_may_not_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        rename(tmp_path / "run", name)
    assert str(refused.value) == (
        f'"{name}" is not a name for a run: begin with a letter or digit, write no slash, and '
        "choose another than latest"
    )


@pytest.mark.parametrize("place", ["s0", "with/s0"])
def test_a_groups_run_keeps_its_name(tmp_path: Path, place: str) -> None:
    (tmp_path / "g" / place).mkdir(parents=True)
    (tmp_path / "g" / "group.json").write_text("{}")
    with pytest.raises(UsageError) as refused:
        rename(tmp_path / "g" / place, "other")
    assert str(refused.value) == (
        f"{tmp_path}/g/{place} is a run of the group {tmp_path}/g: rename the group"
    )


@pytest.mark.parametrize("text", ['{"format": 4}', '{"experiment": "pendulum-td3"}'])
def test_a_run_that_names_neither_is_not_held(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(DamagedFileError) as refused, held([tmp_path]):
        pass
    assert str(refused.value) == (
        f"{tmp_path}/run.json does not name format and experiment as a run's does: "
        "remove that folder by hand"
    )


def test_a_link_is_no_run_to_delete(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "run")
    assert find_named(str(tmp_path / "run")) == (tmp_path / "run").resolve()
    with pytest.raises(UsageError) as refused:
        find_named(str(link))
    assert str(refused.value) == f"{link} is a symbolic link: name the folder that it leads to"


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
