"""What is kept of a start while it is flown: the series, and the second after the hand-back."""

from __future__ import annotations

from collections import deque

import numpy as np

from rltools_host.flight.hand_back import LOOK_S, MOMENTS_BEFORE, Moment, measure
from rltools_host.flight.px4_modes import HOLD, Mode
from rltools_host.flight.px4_result import StartResult
from rltools_host.flight.px4_vehicle import Px4Vehicle
from rltools_host.flight.series import FloatArray, Sample, Series, TargetFrame


class Record:
    """Of one start, from the moment on at which the policy's mode is asked for.

    Time 0 is that of the last sample before PX4 tells the mode: until then it holds the vehicle.
    """

    def __init__(
        self,
        vehicle: Px4Vehicle,
        policy_mode: Mode,
        frame: TargetFrame,
        entry: Sample,
        start: StartResult,
    ) -> None:
        self._vehicle = vehicle
        self._policy_mode = policy_mode
        self._frame = frame
        self._start = start
        self._has_begun = False
        self._before = deque((self._moment(entry),), MOMENTS_BEFORE)
        self._after: list[Moment] = []
        self._next_mode: Mode | None = None
        self.is_over = False  # the second after the hand-back, too
        self.times_s: list[float] = [0.0]
        self.rows: list[FloatArray] = [frame.row(entry)]
        self._begin_s = entry.time_s

    def __call__(self, sample: Sample) -> None:
        """Takes each sample that the vehicle tells."""
        mode = self._vehicle.mode
        if mode == self._policy_mode and not self._after:
            self._has_begun = True
            self._take(sample)
        elif not self._has_begun:
            if mode == HOLD:
                self.times_s.clear()
                self.rows.clear()
                self._begin_s = sample.time_s
                self._take(sample)
        elif not self.is_over and mode == (self._next_mode or mode):
            self._next_mode = mode
            self._take_after(sample)
        else:
            self.is_over = True  # what comes is another mode's doing

    def keep(self) -> None:
        """What there is by now."""
        self._start.series = Series(np.array(self.times_s), np.array(self.rows))

    def _take(self, sample: Sample) -> None:
        self._before.append(self._moment(sample))
        self.times_s.append(sample.time_s - self._begin_s)
        self.rows.append(self._frame.row(sample))

    def _take_after(self, sample: Sample) -> None:
        self._after.append(self._moment(sample))
        self._start.hand_back = measure(self.times_s[-1], tuple(self._before), self._after)
        self.is_over = sample.time_s - self._before[-1].sample.time_s >= LOOK_S

    def _moment(self, sample: Sample) -> Moment:
        return Moment(sample, self._vehicle.collective)
