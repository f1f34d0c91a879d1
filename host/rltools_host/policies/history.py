"""What a place puts behind the observation: a policy's own last actions, and sums of what it
observed (docs/executor.md)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rltools_host.build.description import Channel
from rltools_host.build.native import host_library
from rltools_host.build.ranges import ranges_of
from rltools_host.policies.contract import ObservationSum, PastAction, PlaceInput, choices_of
from rltools_host.policies.image import Float32Array


class History:
    """That of a number of places, which act in step: PolicyExecutor of policy/policy_executor.h."""

    def __init__(self, asked: Sequence[PlaceInput], action_dim: int, count: int = 1) -> None:
        self._asked = tuple(asked)
        ticks = max((past.ticks for past in asked if isinstance(past, PastAction)), default=0)
        self._given = np.zeros((ticks, count, action_dim), np.float32)  # the latest first
        self._sums = np.zeros((len(self._asked), count), np.float32)  # where a sum is asked for

    def inputs(self, observations: Float32Array, places: Sequence[int] = (0,)) -> Float32Array:
        """(places, n): the places' observations, and behind them what is asked for."""
        values = np.asarray(observations, np.float32).reshape(len(places), -1)
        if not self._asked:
            return values
        rows = list(places)
        added = [
            self._given[asked.ticks - 1, rows, asked.action]
            if isinstance(asked, PastAction)
            else self._sums[index, rows]
            for index, asked in enumerate(self._asked)
        ]
        return np.concatenate([values, np.stack(added, axis=1)], axis=1)

    def add(
        self,
        outputs: Float32Array,
        places: Sequence[int] = (0,),
        acted_on: Float32Array | None = None,
    ) -> None:
        """The network's outputs, or another normalised action, (places, action_dim).

        `acted_on`: the observations by which the policy acted; None, or a row of them that is not
        finite: it did not.
        """
        if not self._asked:
            return
        rows = list(places)
        if len(self._given):
            self._given[1:, rows] = self._given[:-1, rows]
            clamped = np.clip(outputs, np.float32(-1), np.float32(1))
            self._given[0, rows] = clamped.reshape(len(rows), -1)
        if acted_on is not None:
            for row, observation in zip(rows, acted_on.reshape(len(rows), -1), strict=True):
                if np.isfinite(observation).all():
                    self._sum_up(row, observation)

    def _sum_up(self, row: int, observation: Float32Array) -> None:
        next_sum = host_library("policy").functions.rlt_policy_next_sum
        for index, asked in enumerate(self._asked):
            if isinstance(asked, ObservationSum):
                self._sums[index, row] = next_sum(
                    self._sums[index, row],
                    observation[asked.observation],
                    asked.step_interval_us,
                    asked.minimum,
                    asked.maximum,
                )


def given_out(
    outputs: Float32Array, actions: Float32Array, channels: Sequence[Channel]
) -> Float32Array:
    """What a place keeps of a policy's actions: the network's outputs, or of choices their numbers,
    from -1 for the first to 1 for the last."""
    return normalised(actions, channels) if choices_of(channels) else outputs


def normalised(action: Float32Array, channels: Sequence[Channel]) -> Float32Array:
    """normalised_action() of policy/contract.h."""
    low, high = ranges_of(channels)
    half = np.float32(0.5)
    values = (np.clip(action, low, high) - half * (high + low)) / (half * (high - low))
    clamped: Float32Array = np.clip(values, np.float32(-1), np.float32(1)).astype(np.float32)
    return clamped
