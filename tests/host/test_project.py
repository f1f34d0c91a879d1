"""The tree and the project: which folder is the user's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rltools_host.build import experiments
from rltools_host.build.boards import board_names, load_board
from rltools_host.build.catalog import environments_in, find_environment
from rltools_host.drones.flight.gate import gate_files
from rltools_host.errors import UsageError
from rltools_host.training.study import load_study
from rltools_host.tree import MARKER, TREE, VARIABLE, find_project


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
    assert Path.cwd() == outside
    assert find_project() == TREE.root
    monkeypatch.chdir(TREE.root / "host")
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
    with pytest.raises(UsageError, match=r"^RLT_PROJECT=nowhere is not a project: .* rlt\.toml "):
        find_project()


def test_without_a_checkout_there_must_be_a_project(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TREE, "root", outside / "installed")
    with pytest.raises(UsageError, match=r"out side is in no project: .* file rlt\.toml"):
        find_project()


# -- what is found in a project, and in the tree where the project has none of its name ------------

OWN = Path(__file__).parent / "own_project"  # an experiment, environment, contract and board


@pytest.fixture
def own_project(project: Path) -> Path:
    shutil.copytree(OWN, project, dirs_exist_ok=True)
    return project


def test_a_name_is_looked_for_in_the_project_first(own_project: Path) -> None:
    assert {"mover-td3", "pendulum-td3"} <= set(experiments.names(experiments.EXPERIMENT))
    assert {"mover", "pendulum"} <= set(experiments.names(experiments.CONTRACT))
    assert experiments.header_of("mover", experiments.CONTRACT) == own_project / "contracts/mover.h"
    assert find_environment("Mover-v0").header == own_project / "environments/mover.h"
    assert load_board("bench").file == own_project / "boards/bench.json"
    assert {"hover", "push"} < gate_files().keys()
    for folder, name in (
        ("experiments", "pendulum_td3.h"),
        ("environments", "pendulum.h"),
        ("boards", "host.json"),
    ):
        text = (OWN / "environments/mover.h").read_text().replace("Mover-v0", "Pendulum-v1")
        board = (OWN / "boards/bench.json").read_text()
        (own_project / folder / name).write_text(board if name == "host.json" else text)
    environments_in.cache_clear()
    assert experiments.header_of("pendulum-td3") == own_project / "experiments/pendulum_td3.h"
    assert find_environment("Pendulum-v1").header == own_project / "environments/pendulum.h"
    assert load_board("host").file == own_project / "boards/host.json"
    assert len(board_names()) == len(set(board_names()))


@pytest.mark.parametrize("name", ["../mover-td3", "/etc/passwd", "..", "a/b", ""])
def test_no_name_leads_out_of_the_folders(own_project: Path, name: str) -> None:
    (own_project / "mover_td3.h").touch()
    (own_project / "passwd.json").touch()
    with pytest.raises(UsageError):
        load_board(name)
    with pytest.raises(UsageError):
        load_study(name)
    with pytest.raises(UsageError):
        experiments.require_subject(experiments.EXPERIMENT, name)
    with pytest.raises(UsageError):
        find_environment(name)
