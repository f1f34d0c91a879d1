"""What random actions show of an environment, step by step, as running sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import Channel, ranges_of

Array = NDArray[Any]
FLIP = 0.1  # how often actions at the ends of their ranges change
MOST_LENGTHS = 100_000


class RandomActions:
    """Of `count` environments, (count, channels) at each call: in the even ones drawn anew at each
    step, in the odd ones held at an end of the range for some ten steps, which reaches further."""

    def __init__(self, channels: Sequence[Channel], count: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.low, self.high = ranges_of(channels)
        self._choices = np.array([len(channel.choices) for channel in channels])
        self._held = np.zeros((count, len(channels)), np.bool_)
        self._is_held = (np.arange(count) % 2 == 1)[:, None]

    def next(self) -> Array:
        shape = self._held.shape
        self._held ^= self._random.random(shape) < FLIP
        part = np.where(self._is_held, self._held, self._random.random(shape, np.float32))
        chosen = np.floor(part * self._choices)
        actions: Array = self.low + part.astype(np.float32) * (self.high - self.low)
        actions = np.where(self._choices > 0, chosen.astype(np.float32), actions)
        kept: Array = np.minimum(np.maximum(actions, self.low), self.high)
        return kept


class Play:
    """`count` rows were stepped, all at once, by random actions; every number is finite."""

    def __init__(self, observations: Sequence[Channel], count: int, masks: int = 0) -> None:
        """masks: how many of the observations, the last ones, are masks of choices."""
        width = len(observations)
        self.channels = tuple(observations)
        self.masks = masks
        self.steps = 0
        self._low, self._high = ranges_of(observations)
        self.outside = np.zeros(width, np.int64)  # rows beyond the channel's range
        self.least, self.most = np.full(width, np.inf), np.full(width, -np.inf)
        self._sum, self._squares = np.zeros(width), np.zeros(width)
        self.rows = 0  # of observations
        self.reward_sum = self.reward_squares = self.reward_size = 0.0
        self.reward_least, self.reward_most = np.inf, -np.inf
        self.lengths: list[int] = []  # of the episodes that ended
        self.returns: list[float] = []
        self.terminated = 0
        self._length = np.zeros(count, np.int64)
        self._return = np.zeros(count)

    def see(self, rows: Array) -> None:
        """Observations, (any, channels)."""
        self.rows += len(rows)
        self.outside += ((rows < self._low) | (rows > self._high)).sum(0)
        self.least = np.minimum(self.least, rows.min(0))
        self.most = np.maximum(self.most, rows.max(0))
        wide = rows.astype(np.float64)
        self._sum += wide.sum(0)
        self._squares += (wide * wide).sum(0)

    def step(self, rewards: Array, terminated: Array, truncated: Array) -> None:
        """Of all rows."""
        wide = rewards.astype(np.float64)
        self.steps += len(wide)
        self.reward_sum += float(wide.sum())
        self.reward_squares += float((wide * wide).sum())
        self.reward_size += float(np.abs(wide).sum())
        self.reward_least = min(self.reward_least, float(wide.min()))
        self.reward_most = max(self.reward_most, float(wide.max()))
        self._length += 1
        self._return += wide
        for row in np.flatnonzero(terminated | truncated):
            if len(self.lengths) < MOST_LENGTHS:
                self.lengths.append(int(self._length[row]))
                self.returns.append(float(self._return[row]))
                self.terminated += bool(terminated[row])
            self._length[row] = self._return[row] = 0

    @property
    def mean(self) -> Array:
        return self._sum / max(self.rows, 1)

    @property
    def deviation(self) -> Array:
        square = self._squares / max(self.rows, 1) - self.mean**2
        deviation: Array = np.sqrt(np.maximum(square, 0.0))
        return deviation

    @property
    def reward_mean(self) -> float:
        return self.reward_sum / max(self.steps, 1)

    @property
    def reward_deviation(self) -> float:
        square = self.reward_squares / max(self.steps, 1) - self.reward_mean**2
        return float(np.sqrt(max(square, 0.0)))

    def figures(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "steps": self.steps,
            "episodes": len(self.lengths),
            "terminated": self.terminated,
            "reward_mean": self.reward_mean,
            "reward_std": self.reward_deviation,
            "reward_min": self.reward_least,
            "reward_max": self.reward_most,
        }
        if self.lengths:
            found["episode_steps_mean"] = float(np.mean(self.lengths))
            found["return_mean"] = float(np.mean(self.returns))
            found["return_std"] = float(np.std(self.returns))
        return found
