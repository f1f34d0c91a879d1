"""What tests of tunings share."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def new_project(path: Path) -> Path:
    (path / "rlt.toml").touch()
    return path


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
