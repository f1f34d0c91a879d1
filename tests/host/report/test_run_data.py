"""What a report is made of: which episodes are run, and what is known here of a run."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from msgspec import structs

from foreign_runs import make_evil_file, make_foreign_run, pendulum_task
from policy_run import make_policy_run
from rltools_host.build.description import ExperimentDescription
from rltools_host.policies.episodes import Episode
from rltools_host.policies.evaluation import CORE, GYMNASIUM
from rltools_host.policies.image import read_run_policy
from rltools_host.report import run_data
from rltools_host.report.run_data import RunData, evaluate_here, typical, values_of
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


@pytest.mark.parametrize("is_there", [False, True])
def test_where_a_policy_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """In Gymnasium by its own number of episodes, else in the core's simulator, with the run's
    hyperparameters; from seed 0 on."""
    asked: list[tuple[Any, ...]] = []

    def play(_: Any, *words: Any, **named: Any) -> list[Episode]:
        asked.append((*words, *named.items()))
        return [episode(3.0), episode(1.0), episode(2.0)]

    outcome = SimpleNamespace(of_task=lambda task: ("of", task))
    monkeypatch.setattr(run_data, "gymnasium_has", lambda _: is_there)
    monkeypatch.setattr(run_data.evaluation, "play", play)
    monkeypatch.setattr(run_data.evaluation, "evaluation_of", lambda *_: outcome)
    changes = {"hyperparameters": {"gamma": 0.5}}
    folder = RunFolder.open(make_foreign_run(tmp_path / "run", None, changes))
    told, shown = evaluate_here(read_run_policy(folder), folder)
    assert shown == episode(2.0)
    if is_there:
        assert asked == [(100, 0, GYMNASIUM, None)]
        assert told == ("of", None)
    else:
        assert asked == [(100, 0, CORE, ("hyperparameters", {"gamma": 0.5}))]
        assert cast(Any, told) is outcome


@pytest.mark.parametrize(
    ("steps", "count"), [(1, 100), (200, 100), (201, 99), (1999, 10), (2000, 10), (5000, 10)]
)
def test_fewer_long_episodes_are_run(steps: int, count: int) -> None:
    """20,000 steps in all, in 10 to 100 episodes."""
    task = structs.replace(pendulum_task("gym:Pendulum-v1"), episode_steps=steps)
    assert run_data.episodes_of("Pendulum-v1", task) == count


@pytest.mark.parametrize(
    ("returns", "expected"), [([4.0], 4.0), ([4.0, 1.0], 1.0), ([9.0, 1.0, 5.0, 7.0], 5.0)]
)
def test_the_typical_episode(returns: list[float], expected: float) -> None:
    assert typical([episode(each) for each in returns]).episode_return == expected


def run_of(path: Path, **changes: Any) -> RunFolder:
    return RunFolder.open(make_foreign_run(path, None, changes))


def test_what_an_experiment_says_counts_where_it_still_is_the_runs(tmp_path: Path) -> None:
    def described(*names: str, algorithm: str = "TD3") -> ExperimentDescription:
        entries = [SimpleNamespace(name=name) for name in names]
        stated = SimpleNamespace(hyperparameters=entries, algorithm=algorithm, metrics=["loss"])
        return cast(ExperimentDescription, stated)

    folder = run_of(tmp_path / "run", hyperparameters={"gamma": 0.9, "tau": 0.1}, algorithm="TD3")

    def known(description: ExperimentDescription | None) -> list[str]:
        return [each.name for each in run_data.described_hyperparameters(folder, description)]

    assert known(described("tau", "gamma", "new")) == ["tau", "gamma"]
    assert known(described("tau")) == []
    assert known(None) == []
    assert run_data.described_metrics(folder, described()) == ["loss"]
    assert run_data.described_metrics(folder, described(algorithm="SAC")) == ()
    assert run_data.described_metrics(folder, None) == ()


def test_what_is_not_here_is_none(tmp_path: Path) -> None:
    folder = run_of(tmp_path / "run", board="no-such-board", experiment="no-such-experiment")
    assert run_data.known_board(folder.content) is None
    assert run_data.experiment_here(folder) is None
    assert run_data.shapes_of(folder, None) == ()
    task = RunFolder.open(make_foreign_run(tmp_path / "task", "gym:Pendulum-v1"))
    assert run_data.shapes_of(task, None) == ()


def test_a_column_of_metrics() -> None:
    rows = [{"a": 1}, {"a": None}, {}, {"a": -2.5}]
    assert np.array_equal(values_of(rows, "a"), [1, math.nan, math.nan, -2.5], equal_nan=True)


def test_figures_of_a_run_without_a_seed_a_board_or_an_image(tmp_path: Path) -> None:
    def data(folder: RunFolder, rows: list[dict[str, Any]], image: Any = None) -> RunData:
        return RunData(folder, rows, image, None, None, None, (), ())

    folder = run_of(tmp_path / "run", seed=None, board="my-board")
    rows = [{"kind": "progress", "step": 30}, {"kind": "evaluation", "step": 50}]
    rows += [{"kind": "progress", "step": None}, {"kind": "progress", "step": 40}]
    found = data(folder, rows)
    assert (found.steps_done, found.seed, found.board_title) == (40, "\N{EN DASH}", "my-board")
    assert found.goal is None
    assert len(found.rows("progress")) == 3
    image = SimpleNamespace(step=60, seed=9)
    assert (data(folder, rows, image).steps_done, data(folder, rows, image).seed) == (60, 9)
    assert data(run_of(tmp_path / "other", seed=0), [], image).seed == 0
    assert data(folder, []).steps_done == 0


@pytest.mark.parametrize("which", ["last", "best"])
def test_a_run_without_a_policy_is_read_all_the_same(tmp_path: Path, which: str) -> None:
    """But of a policy that is asked for by name it is said that it is not there."""
    path = make_policy_run(tmp_path / "run")
    (path / "policy.rltp").unlink()
    if which == "last":
        assert run_data.collect(RunFolder.open(path)).image is None
    else:
        with pytest.raises(run_data.RltError):
            run_data.collect(RunFolder.open(path), which)
