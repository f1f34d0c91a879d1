"""What tests of tunings share."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from rltools_host.training.trials import Trial, Trials


def new_project(path: Path) -> Path:
    (path / "rlt.toml").touch()
    return path


def prune_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the second trial hopeless from its first evaluation on."""
    report = Trials.report

    def hopeless(self: Trials, trial: Trial, values: Mapping[int, float]) -> bool:
        report(self, trial, values)
        return trial.number == 1 and len(values) > 0

    monkeypatch.setattr(Trials, "report", hopeless)


def stored(path: Path) -> dict[int, tuple[str, float | None]]:
    """What SQLite has of each trial, read without Optuna: state and value."""
    with sqlite3.connect(path / "study.db") as database:
        tables = {name for (name,) in database.execute("select name from sqlite_master")}
        if not {"trials", "trial_values"} <= tables:  # killed while it was made
            return {}
        rows = database.execute(
            "select number, state, value from trials left join trial_values using (trial_id)"
        )
        return {number: (state, value) for number, state, value in rows}
