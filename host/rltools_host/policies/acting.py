"""A policy as a function of observations that a program hands over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from rltools_host.arguments import whole_number
from rltools_host.errors import UsageError
from rltools_host.policies.image import Float32Array, PolicyImage

MOST_EPISODES = 1_000_000  # side by side
Act = Callable[[ArrayLike], Float32Array]


class Acting:
    """A policy that acts, which threads may share."""

    def __init__(self, image: PolicyImage) -> None:
        self.image = image
        self._lock = threading.Lock()  # a pass has one scratch memory

    def episode(self, count: int) -> Act:
        """Of an episode, or `count` of them side by side, with hidden states of zeros at first."""
        number = whole_number("count", count, 1, MOST_EPISODES)
        return partial(self._act, states=self.image.runner.begin(number))

    def _act(self, observation: ArrayLike, states: Float32Array | None = None) -> Float32Array:
        """(actions), or (n, actions) for n observations. UsageError for another shape or type."""
        image = self.image
        if image.recurrence is not None and states is None:
            raise UsageError(
                f"the policy of {image.experiment} has a hidden state: take act = policy.episode() "
                "at the beginning of each episode, and call act(observation)"
            )
        try:
            values = np.asarray(observation)
        except ValueError:
            raise UsageError("an observation is an array of numbers, this one is ragged") from None
        width = len(image.observations)
        if values.ndim not in (1, 2) or values.shape[-1] != width or values.dtype.kind not in "fiu":
            raise UsageError(
                f"the policy of {image.experiment} takes numbers of shape ({width},) or "
                f"(n, {width}), not {values.dtype} of shape {values.shape}"
            )
        with self._lock, np.errstate(over="ignore"):
            return image.runner.run(values, states)[1]
