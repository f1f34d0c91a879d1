"""The tree and the project: which folder is the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.errors import UsageError
from rltools_host.project import MARKER, VARIABLE, find_project
from rltools_host.tree import TREE


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in no project, from where the tests begin."""
    folder = tmp_path / "out side"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def made_project(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    return folder


def test_a_checkout_is_the_project_of_whoever_is_in_no_other(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_project() == TREE.root
    monkeypatch.chdir(TREE.root / "host")
    (outside / MARKER).touch()
    assert find_project() == TREE.root


def test_the_nearest_project_around_the_present_folder_is_meant(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = made_project(outside / "outer")
    inner = made_project(outer / "inner")
    (inner / "experiments").mkdir()
    for folder, found in ((outer, outer), (inner, inner), (inner / "experiments", inner)):
        monkeypatch.chdir(folder)
        assert find_project() == found
    (outside / "link").symlink_to(outer)
    monkeypatch.chdir(outside / "link")
    assert find_project() == outer


def test_a_checkout_within_a_project_is_its_own(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = made_project(outside / "mine")
    checkout = project / "rltools"
    checkout.mkdir()
    (checkout / "rlt").touch()
    monkeypatch.setattr(TREE, "root", checkout)
    monkeypatch.chdir(checkout)
    assert find_project() == checkout
    monkeypatch.chdir(project)
    assert find_project() == project


def test_a_variable_names_the_project_before_the_present_folder(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, other = made_project(outside / "mine"), made_project(outside / "other")
    monkeypatch.chdir(other)
    for named in (str(project), "../mine"):
        monkeypatch.setenv(VARIABLE, named)
        assert find_project() == project
    monkeypatch.setenv(VARIABLE, str(TREE.root))
    assert find_project() == TREE.root
    monkeypatch.setenv(VARIABLE, "")
    assert find_project() == other
    monkeypatch.setenv(VARIABLE, "nowhere")
    with pytest.raises(UsageError, match=r"^RLT_PROJECT=nowhere is no project: a file rlt\.toml "):
        find_project()


def test_without_a_checkout_there_must_be_a_project(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TREE, "root", outside / "installed")
    with pytest.raises(UsageError, match=r"out side is in no project: a file rlt\.toml in a "):
        find_project()


def test_a_present_folder_that_was_removed_is_in_no_project(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = outside / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find_project() == TREE.root
