"""Rows of metrics that a full disk did not take are written later."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.errors import DiskError
from rltools_host.runs.folder import RunFolder
from rltools_host.training.metrics_log import (
    ReportLog,
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
