"""The time of a run in training, and the share of evaluations in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rltools_host.boards.messages import Result
from rltools_host.runs.contents import Row, Run


class TimeInTraining:
    """The time of training in this session, and the processor time of this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = self._cpu_began = 0.0  # to train; the rests are left out by moving them
        self.seconds = 0.0  # by the last look
        self.cpu_s = 0.0  # of this process, by the last rest

    def start(self) -> None:
        """Start or continue the clock."""
        self._began = self._clock() - self.seconds
        self._cpu_began = time.process_time() - self.cpu_s

    def look(self) -> None:
        self.seconds = self._clock() - self._began

    def stop(self) -> None:
        """Stop the clock."""
        self.look()
        self.cpu_s = time.process_time() - self._cpu_began


def share_of_evaluations(result: Result) -> float:
    """Return the share of evaluations in the time of training, by the board's counter."""
    return min(1.0, result.evaluation_counter / result.counter) if result.counter else 0.0


def train_s_before(run: Run, step: int, rows: Sequence[Row]) -> float:
    """Return the seconds of training up to the checkpoint that a run resumes from."""
    if run.checkpoint_step == step:
        return run.checkpoint_train_s or 0.0
    return max((float(row["time_s"]) for row in rows), default=0.0)
