"""Rows of metrics that a full disk did not take are written later; scalars have the tags of
Stable-Baselines3, and the means of episodes that have ended."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.errors import DiskError
from rltools_host.runs.folder import RunFolder
from rltools_host.training.metrics_log import (
    RecentEpisodes,
    ReportLog,
    Scalars,
    progress_of,
    row_of,
)

NAMES = ("actor_loss", "kl")
PROGRESS = TrainingProgress(3, 100, 1000, 50, 1, -9.0, -8.0, (0.5, 0.25, 0.0, 0.0), 1, -9.0, 100.0)
EVALUATION = Evaluation(4, 200, 2, -5.0, 1.0, -6.0, -4.0, 150.5)


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
    progress = {"time_s": 1.234568, **row_of(PROGRESS, NAMES)}
    event = {"time_s": 2.0, "kind": "event", "step": 120, "severity": 4, "text": "a fault"}
    assert folder.rows == [progress, event, {"time_s": 3.0, **row_of(EVALUATION, NAMES)}]
    log.flush()
    assert len(folder.rows) == 3, "no row twice"


# -- scalars ---------------------------------------------------------------------------------------


def report(
    step: int, ended: int = 0, mean: float = math.nan, length: float = math.nan
) -> TrainingProgress:
    """Return a report whose last episode says nothing: means are of those that have ended."""
    metrics = (0.5, 0.25)
    return TrainingProgress(
        0, step, 10**6, step // 2, step // 90, -1e6, 0.0, metrics, ended, mean, length
    )


def test_scalars_have_the_tags_of_stable_baselines3() -> None:
    scalars = Scalars(("actor_loss", "kl"))
    scalars.of(report(200, 1, -10.0, 240.0), 0.5)
    scalars.of(report(300), 0.5)  # an episode of another environment was cut off
    assert scalars.of(report(400, 3, -6.0, 200.0), 0.5) == {
        "rollout/ep_rew_mean": -7.0,
        "rollout/ep_len_mean": 210.0,
        "time/fps": 800.0,
        "train/n_updates": 200,
        "train/actor_loss": 0.5,
        "train/approx_kl": 0.25,
    }
    evaluation = Evaluation(1, 400, 10, -5.0, 1.0, -6.0, -4.0, 150.5)
    assert scalars.of(evaluation, 1.0) == {
        "eval/mean_reward": -5.0,
        "eval/std_reward": 1.0,
        "eval/mean_ep_length": 150.5,
    }


def test_means_are_of_the_last_hundred_episodes_and_go_on_after_a_resumption() -> None:
    recent = RecentEpisodes()
    for number in range(300):
        recent.take(report(number, 1, float(number), 240.0))
    assert (recent.return_mean, recent.length_mean) == (249.5, 240.0)
    recent.take(report(301, 4000, 7.0, 12.0))  # all that ended together
    assert (recent.return_mean, recent.length_mean) == (7.0, 12.0)
    row = row_of(report(400, 3, -6.0, 200.0), NAMES)
    old = {name: value for name, value in row.items() if not name.startswith("episode")}
    kept = RecentEpisodes()
    kept.take(progress_of({**old, "episodes": 3}, NAMES))  # of an older version
    assert math.isnan(kept.return_mean)
    kept.take(progress_of(row, NAMES))
    assert (kept.return_mean, kept.length_mean) == (-6.0, 200.0)
