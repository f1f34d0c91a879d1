"""The actions that were given out, for policies that see their own last ones (docs/executor.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rltools_host.policies.contract import Channel, PastAction
from rltools_host.policies.image import Float32Array


class ActionHistory:
    """That of a number of places, which act in step: PolicyExecutor of policy/policy_executor.h."""

    def __init__(self, asked: Sequence[PastAction], action_dim: int, count: int = 1) -> None:
        self._asked = tuple(asked)
        ticks = max((past.ticks for past in asked), default=0)
        self._given = np.zeros((ticks, count, action_dim), np.float32)  # the latest first

    def inputs(self, observations: Float32Array, places: Sequence[int] = (0,)) -> Float32Array:
        """(places, n): the places' observations, and behind them what is asked for."""
        values = np.asarray(observations, np.float32).reshape(len(places), -1)
        if not self._asked:
            return values
        past = [self._given[past.ticks - 1, list(places), past.action] for past in self._asked]
        return np.concatenate([values, np.stack(past, axis=1)], axis=1)

    def add(self, outputs: Float32Array, places: Sequence[int] = (0,)) -> None:
        """The network's outputs, or another normalised action, (places, action_dim)."""
        if not self._asked:
            return
        rows = list(places)
        self._given[1:, rows] = self._given[:-1, rows]
        clamped = np.clip(outputs, np.float32(-1), np.float32(1))
        self._given[0, rows] = clamped.reshape(len(rows), -1)


def normalised(action: Float32Array, channels: Sequence[Channel]) -> Float32Array:
    """normalised_action() of policy/contract.h."""
    low = np.array([channel.minimum for channel in channels], np.float32)
    high = np.array([channel.maximum for channel in channels], np.float32)
    half = np.float32(0.5)
    values = (np.clip(action, low, high) - half * (high + low)) / (half * (high - low))
    clamped: Float32Array = np.clip(values, np.float32(-1), np.float32(1)).astype(np.float32)
    return clamped
