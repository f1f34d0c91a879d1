"""A policy's hidden state at its place, which moves on with the step of training and is zero after
what its image names: PolicyExecutor of policy/policy_executor.h, where ticks come on time."""

from __future__ import annotations

from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.policies.image_records import (
    RESET_AT_FAULT,
    RESET_AT_PAUSE,
    RESET_AT_STALE_INPUT,
)

WRAP = 2**32  # of the clock, us
STALE = (
    "observation_missing",
    "observation_stale",
    "observation_out_of_order",
    "observation_frozen",
)


class HiddenState:
    """Of one place, from its activation on."""

    def __init__(self, image: PolicyImage) -> None:
        self._recurrence = image.recurrence
        self._runner = image.runner
        self._state = self._kept = image.runner.begin()  # from which steps go; of the last one
        self._is_new = True  # no step has been kept since it was zero
        self._acted_us = self._kept_us = 0

    def run(self, now_us: int, inputs: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Outputs and actions of a tick on which the policy acts, (1, n) each."""
        recurrence = self._recurrence
        if recurrence is None:
            return self._runner.run(inputs)
        pause_us = (now_us - self._acted_us) % WRAP
        if recurrence.reset_at & RESET_AT_PAUSE and pause_us > recurrence.most_pause_us:
            self._reset()
        is_due = (now_us - self._kept_us) % WRAP >= recurrence.trained_interval_us
        if is_due and not self._is_new:
            self._state = self._kept
        following = self._state.copy()
        found = self._runner.run(inputs, following)
        if self._is_new or is_due:
            self._kept, self._kept_us, self._is_new = following, now_us, False
        self._acted_us = now_us
        return found

    def fail(self, status: str) -> None:
        """A tick with the safe action."""
        cause = RESET_AT_STALE_INPUT if status in STALE else RESET_AT_FAULT
        if self._recurrence is not None and self._recurrence.reset_at & cause:
            self._reset()

    def _reset(self) -> None:
        self._state = self._runner.begin()
        self._is_new = True
