"""Keeps what a board reports in its run's folder: metrics.jsonl, and a TensorBoard log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rltools_host.clients.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.errors import DiskError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.tensorboard_log import TensorBoardLog
from rltools_host.training.reports import row_of, scalars_of


class ReportLog:
    """Takes reports in, and writes them by whole rows.

    On a full disk the rows are kept, and `disk_error` says what happened: the board can be saved
    meanwhile, whose place on the disk is reserved.
    """

    def __init__(
        self,
        folder: RunFolder,
        metric_names: Sequence[str],
        tensorboard: bool,
        first_step: int | None,
    ) -> None:
        self.disk_error: DiskError | None = None  # the first one
        self._folder = folder
        self._metric_names = metric_names
        self._rows: list[dict[str, Any]] = []
        self._log = TensorBoardLog(folder.path, first_step) if tensorboard else None

    @property
    def is_written(self) -> bool:
        """Whether all rows are in metrics.jsonl."""
        return not self._rows

    def take(
        self, event: TrainingProgress | Evaluation | StatusText, step: int, time_s: float
    ) -> None:
        """`step` is how far training has come; a report of it says that itself."""
        row: dict[str, Any] = {"time_s": round(time_s, 6)}
        if isinstance(event, StatusText):
            row |= {"kind": "event", "step": step, "severity": event.severity, "text": event.text}
        else:
            row |= row_of(event, self._metric_names)
            if self._log is not None:
                self._log.add(event.step, scalars_of(event, self._metric_names))
        self._rows.append(row)

    def flush(self) -> None:
        try:
            self._folder.append_metrics(self._rows)
            self._rows = []
            if self._log is not None:
                self._log.flush()
        except DiskError as error:
            self.disk_error = self.disk_error or error

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
