"""Which trials end early: Optuna's pruner decides, by what is reported of each."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rltools_host.errors import DamagedFileError
from rltools_host.training.search import Dimension
from rltools_host.training.trials import COMPLETE, PRUNED, STARTUP_TRIALS, Trials

pytestmark = pytest.mark.all  # Optuna is installed

GAMMA = Dimension("gamma", 0.9, 0.999)
STEPS = (100, 200, 300)


def trials(folder: Path, prunes: bool = True) -> Trials:
    return Trials(folder / "study.db", "s", "mark", [GAMMA], prunes)


def reported(study: Trials, *values: float) -> tuple[int, bool]:
    """What a trial with these evaluations is told as; how many were asked for, and whether it was
    pruned then."""
    trial = study.ask()
    for count in range(1, len(values) + 1):
        so_far = dict(zip(STEPS, values[:count], strict=False))
        if study.report(trial, so_far):
            study.tell(trial, PRUNED)
            return count, True
    study.tell(trial, COMPLETE, values[-1])
    return len(values), False


def test_a_trial_below_the_median_of_those_before_is_pruned(tmp_path: Path) -> None:
    study = trials(tmp_path)
    for value in range(STARTUP_TRIALS):  # the first are never pruned, however bad
        assert reported(study, -300.0 - value, -200.0 - value, -100.0 - value) == (3, False)
    assert reported(study, -301.0, -201.0, -101.0) == (3, False), "better than the median"
    assert reported(study, -900.0, -100.0, -50.0) == (1, True), "worse at its first evaluation"
    assert reported(study, -300.0, -900.0, -50.0) == (2, True), (
        "worse at its second, though not before"
    )


def test_a_head_that_begins_anew_prunes_by_what_the_storage_has(tmp_path: Path) -> None:
    study = trials(tmp_path)
    for _ in range(STARTUP_TRIALS):
        reported(study, -300.0, -200.0, -100.0)
    trial = study.ask()
    assert not study.report(trial, {100: -250.0})
    again = trials(tmp_path)
    (left,) = again.unfinished()
    assert (left.number, left.settings) == (trial.number, trial.settings)
    assert not again.report(left, {100: -250.0})
    assert reported(again, -900.0) == (1, True)
    assert [state for state, _ in again.finished().values()].count(PRUNED) == 1


def test_what_a_database_says_is_the_reason(tmp_path: Path) -> None:
    """And not what Optuna guesses."""
    study = trials(tmp_path)
    trial = study.ask()
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.execute("drop table trial_intermediate_values")
    with pytest.raises(DamagedFileError, match=r"cannot be used \(no such table: "):
        study.report(trial, {100: 1.0})


def test_without_pruning_none_ends_early(tmp_path: Path) -> None:
    study = trials(tmp_path, prunes=False)
    for value in (-1.0,) * STARTUP_TRIALS + (-900.0,):
        assert reported(study, value, value) == (2, False)
