"""What a report is made of: which episodes are run, and what is known here of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from foreign_runs import make_evil_file, make_foreign_run
from policy_run import make_policy_run
from rltools_host.policies.episodes import Episode
from rltools_host.policies.image import read_run_policy
from rltools_host.report import run_data
from rltools_host.report.run_data import evaluate_here, typical
from rltools_host.runs.folder import RunFolder
from rltools_host.tree import Project


@pytest.fixture(autouse=True)
def nothing_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Project, "named_tasks", tmp_path / "named")


def episode(returned: float) -> Episode:
    return cast(Episode, SimpleNamespace(episode_return=returned))


def test_a_task_that_must_not_be_imported_leaves_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = make_evil_file(tmp_path)
    folder = RunFolder.open(make_foreign_run(tmp_path / "run", f"gym:{evil}:Make"))
    image = read_run_policy(folder)
    capsys.readouterr()  # of what is built for the first policy that is read
    assert evaluate_here(image, folder) == (None, None)
    note = capsys.readouterr().err
    assert note.startswith("note: the report is without episodes: ")
    assert "is Python code that a run names, and that you have not named here" in note
    assert not evil.with_name("executed").exists()


def test_a_function_s_environment_is_played_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder.open(make_foreign_run(tmp_path / "run", "make"))
    image = read_run_policy(folder)
    capsys.readouterr()
    assert evaluate_here(image, folder) == (None, None)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("returns", "expected"), [([4.0], 4.0), ([4.0, 1.0], 1.0), ([9.0, 1.0, 5.0, 7.0], 5.0)]
)
def test_the_typical_episode(returns: list[float], expected: float) -> None:
    assert typical([episode(each) for each in returns]).episode_return == expected


def test_a_run_without_a_policy_is_read_all_the_same(tmp_path: Path) -> None:
    """But of a policy that is asked for by name it is said that it is not there."""
    path = make_policy_run(tmp_path / "run")
    (path / "policy.rltp").unlink()
    assert run_data.collect(RunFolder.open(path)).image is None
    with pytest.raises(run_data.RltError):
        run_data.collect(RunFolder.open(path), "best")
