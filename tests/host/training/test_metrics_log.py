"""Reports as rows and back, and what a run says of environments in Python."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.environments.environment_server import FAULT, OUTSIDE, EnvironmentServer
from rltools_host.errors import DiskError
from rltools_host.runs.contents import Session
from rltools_host.runs.folder import RunFolder
from rltools_host.training.metrics_log import (
    NEW_EPISODES,
    EpisodeNotes,
    ReportLog,
    Scalars,
    progress_of,
    row_of,
    tag,
    words,
)

NAMES = ("actor_loss", "kl")
PROGRESS = TrainingProgress(3, 100, 1000, 50, 1, -9.0, -8.0, (0.5, 0.25, 0.0, 0.0))
EVALUATION = Evaluation(4, 200, 2, -5.0, 1.0, -6.0, -4.0, 150.5)


def test_rows_have_metrics_by_name() -> None:
    row = row_of(PROGRESS, NAMES)
    assert row == {
        "kind": "progress",
        "counter": 3,
        "step": 100,
        "steps": 1000,
        "updates": 50,
        "episodes": 1,
        "last_return": -9.0,
        "best_return": -8.0,
        "actor_loss": 0.5,
        "kl": 0.25,
    }
    assert (words("critic_1_loss"), tag("kl"), tag("entropy")) == (
        "critic 1 loss",
        "train/approx_kl",
        "train/entropy",
    )
    again = progress_of({**row, "last_return": None}, (*NAMES, "entropy"))
    assert (again.step, again.best_return, again.metrics[:2]) == (100, -8.0, (0.5, 0.25))
    assert math.isnan(again.last_return)
    assert math.isnan(again.metrics[2])


def test_scalars_before_an_episode_has_ended() -> None:
    report = TrainingProgress(0, 100, 1000, 50, 0, math.nan, math.nan, ())
    scalars = Scalars(NAMES).of(report, math.nan, 0.0)
    assert list(map(math.isnan, scalars.values())) == [True, True, True, False]
    assert scalars["train/n_updates"] == 50


class Folder:
    """In place of a run's: keeps rows, or has no place for them."""

    path = Path("r")

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.errors: list[DiskError] = []

    def append_metrics(self, rows: list[dict[str, Any]]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.rows += rows


def test_rows_that_found_no_place_are_written_later() -> None:
    folder = Folder()
    log = ReportLog(cast(RunFolder, folder), NAMES, False, None, {})
    assert log.is_written
    log.take(PROGRESS, 7, 1.23456789)
    log.take(StatusText(4, "a fault"), 120, 2.0)
    log.take(EVALUATION, 7, 3.0)
    assert not log.is_written
    folder.errors = [first := DiskError("full"), DiskError("full again")]
    log.flush()
    log.flush()
    assert (log.disk_error, log.is_written, folder.rows) == (first, False, [])
    log.flush()
    assert log.is_written
    progress = {"time_s": 1.234568, **row_of(PROGRESS, NAMES), "episode_length": 100.0}
    event = {"time_s": 2.0, "kind": "event", "step": 120, "severity": 4, "text": "a fault"}
    assert folder.rows == [progress, event, {"time_s": 3.0, **row_of(EVALUATION, NAMES)}]
    log.flush()
    assert len(folder.rows) == 3, "no row twice"


def test_a_log_of_a_run_that_goes_on_counts_episodes_anew() -> None:
    folder = Folder()
    log = ReportLog(cast(RunFolder, folder), NAMES, False, 40, {})
    log.take(PROGRESS, 0, 1.0)
    log.flush()
    assert math.isnan(folder.rows[0]["episode_length"])


def notes_of(**faults: Any) -> tuple[EpisodeNotes, SimpleNamespace]:
    known = SimpleNamespace(
        **{"count": 0, "first": "", "outside": 0, "first_outside": "", **faults}
    )
    task = SimpleNamespace(source="gym:A-v0")
    server = SimpleNamespace(faults=lambda: known, failure=lambda: "it ended", task=task)
    return EpisodeNotes(cast(EnvironmentServer, server)), known


def described(notes: EpisodeNotes) -> dict[str, Any]:
    document: Any = {}
    notes.describe(document)
    return {**document}


def test_the_first_fault_of_each_kind_is_said_once() -> None:
    notes, known = notes_of()
    assert notes.of_resumption() == [StatusText(5, NEW_EPISODES)]  # MAV_SEVERITY_NOTICE
    assert (notes.new(), notes.failure()) == ([], "it ended")
    known.count, known.first = 3, "reward is nan"
    assert notes.new() == [StatusText(4, f"{FAULT}reward is nan")]  # MAV_SEVERITY_WARNING
    known.outside, known.first_outside = 2, "x is 9"
    assert notes.new() == [StatusText(4, f"{OUTSIDE}x is 9")]
    assert notes.new() == []
    assert notes.add_to(Session()) == Session(environment_faults=3, observations_outside=2)
    assert described(notes) == {
        "task": "gym:A-v0",
        "environment_faults": 3,
        "environment_fault": "reward is nan",
        "observations_outside": 2,
        "observation_outside": "x is 9",
    }
