"""A policy as a function of observations, and what an executor remembers between its ticks: past
actions and sums, which go behind the observation, and a hidden state (docs/executor.md)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.build.description import Channel, ranges_of
from rltools_host.build.native import host_library
from rltools_host.documents import optional_path, repr_of, text, whole_number
from rltools_host.errors import UsageError
from rltools_host.policies.contract import (
    RESET_AT_FAULT,
    RESET_AT_PAUSE,
    RESET_AT_STALE_INPUT,
    AddedInput,
    ObservationSum,
    PastAction,
    choices_of,
)
from rltools_host.policies.image import Float32Array, PolicyImage, read_policy, read_run_policy
from rltools_host.runs.names import LAST

WRAP = 2**32  # of the clock, us
STALE = (
    "observation_missing",
    "observation_stale",
    "observation_out_of_order",
    "observation_frozen",
)


class History:
    """Past actions and sums of policies that act in step, as Executor of
    policy/executor.h keeps them."""

    def __init__(self, asked: Sequence[AddedInput], action_dim: int, count: int = 1) -> None:
        self._asked = tuple(asked)
        ticks = max((past.ticks for past in asked if isinstance(past, PastAction)), default=0)
        self._given = np.zeros((ticks, count, action_dim), np.float32)  # the latest first
        self._sums = np.zeros(
            (len(self._asked), count), np.float32
        )  # of the added inputs that are sums

    def inputs(self, observations: Float32Array, rows: Sequence[int] = (0,)) -> Float32Array:
        """Return the observations with the added inputs behind them, (rows, n). rows: which of the
        policies side by side observed them."""
        values = np.asarray(observations, np.float32).reshape(len(rows), -1)
        if not self._asked:
            return values
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
        rows: Sequence[int] = (0,),
        acted_on: Float32Array | None = None,
    ) -> None:
        """Record the actions of one tick, (rows, action_dim), normalized to [-1, 1].

        acted_on: the observations by which the policy acted; None, or a row of them that is not
        finite, means that it did not act.
        """
        if not self._asked:
            return
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


def history_values(
    outputs: Float32Array, actions: Float32Array, channels: Sequence[Channel]
) -> Float32Array:
    """Return what a history records of an action: the network's outputs, or for discrete actions
    their numbers, scaled to -1 for the first and 1 for the last."""
    return normalized(actions, channels) if choices_of(channels) else outputs


def normalized(action: Float32Array, channels: Sequence[Channel]) -> Float32Array:
    """Return actions scaled from their ranges to [-1, 1], as normalized_action() of
    policy/contract.h does."""
    low, high = ranges_of(channels)
    half = np.float32(0.5)
    values = (np.clip(action, low, high) - half * (high + low)) / (half * (high - low))
    clamped: Float32Array = np.clip(values, np.float32(-1), np.float32(1)).astype(np.float32)
    return clamped


class HiddenState:
    """The hidden state of one policy, from its activation on."""

    def __init__(self, image: PolicyImage) -> None:
        self._recurrence = image.recurrence
        self._runner = image.runner
        self._state = self._kept = image.runner.begin()  # before the next step; after the last one
        self._is_new = True  # no step has been kept since it was zero
        self._acted_us = self._kept_us = 0

    def run(self, now_us: int, inputs: Float32Array) -> tuple[Float32Array, Float32Array]:
        """Return outputs and actions of a tick on which the policy acts, (1, n) each."""
        recurrence = self._recurrence
        if recurrence is None:
            return self._runner.run(inputs)
        pause_us = (now_us - self._acted_us) % WRAP
        if recurrence.reset_at & RESET_AT_PAUSE and pause_us > recurrence.max_pause_us:
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
        """Record a tick on which the safe action was taken, and why."""
        cause = RESET_AT_STALE_INPUT if status in STALE else RESET_AT_FAULT
        if self._recurrence is not None and self._recurrence.reset_at & cause:
            self._reset()

    def _reset(self) -> None:
        self._state = self._runner.begin()
        self._is_new = True


MAX_EPISODES = 1_000_000  # side by side
Act = Callable[[ArrayLike], Float32Array]


class Policy:
    """A policy as a function of observations, with the bits of a board that has this policy.

    `observations` and `actions` are the channels: name, unit, minimum and maximum of each element.
    Threads may share it.
    """

    def __init__(self, image: PolicyImage) -> None:
        """Raise RefusedError if this machine computes other bits than the image's examples."""
        image.verify()
        self.image = image
        self._lock = threading.Lock()  # a pass has one scratch memory

    @classmethod
    def load(cls, run: str | PathLike[str] | Any, which: str = LAST) -> Policy:
        """Return the policy of a run, or a policy image.

        run: the result of rlt.train, a run's folder, its name under runs/, "latest", or a file
        policy.rltp.
        which: "last", or "best": that of the best evaluation in training.

        RltError: there is no policy, it is damaged, or this machine computes other bits with it
        than the device that wrote it.
        """
        path = optional_path("run", getattr(run, "path", run))
        if path is None:
            raise UsageError("run=None: give a run, or a policy image")
        if not path.is_file():
            return cls(read_run_policy(path, text("which", which)))
        if which != LAST:
            raise UsageError(f"which={repr_of(which)}: {path} is one policy; give the run's folder")
        return cls(read_policy(path))

    @property
    def observations(self) -> tuple[Channel, ...]:
        return self.image.observations

    @property
    def actions(self) -> tuple[Channel, ...]:
        return self.image.actions

    @property
    def experiment(self) -> str:
        return self.image.experiment

    @property
    def environment(self) -> str:
        return self.image.environment

    @property
    def step(self) -> int:
        """Return the step of training whose policy it is."""
        return self.image.step

    @property
    def seed(self) -> int:
        """Return the seed of the training run."""
        return self.image.seed

    @property
    def step_interval_s(self) -> float:
        """Return the time between two actions that it was trained for."""
        return self.image.step_interval_us / 1e6

    @property
    def shape(self) -> str:
        """Return the widths of its layers, for example 3-64-64-1."""
        return self.image.shape

    @property
    def is_recurrent(self) -> bool:
        """Return whether it has a hidden state, and its actions depend on earlier observations."""
        return self.image.recurrence is not None

    def __call__(self, observation: ArrayLike) -> NDArray[np.float32]:
        """Return actions, float32 of shape (actions,) or (n, actions), in the units of `actions`.

        observation: real numbers of shape (observations,) or (n, observations), in the units of
        `observations`, rounded to float32. If one is not finite, the action is the safe one of its
        contract. UsageError for another shape or type; a recurrent policy acts by episode().
        """
        return self._act(observation)

    def episode(self, count: int = 1) -> Act:
        """Return a function like this policy, for an episode, or for `count` of them side by side.

        A recurrent policy's hidden state begins with zeros, and each call is a step of its
        training's time.
        """
        number = whole_number("count", count, 1, MAX_EPISODES)
        return partial(self._act, states=self.image.runner.begin(number))

    def _act(self, observation: ArrayLike, states: Float32Array | None = None) -> Float32Array:
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

    def __reduce__(self) -> tuple[type[Policy], tuple[PolicyImage]]:
        """Return what pickle and copy make it of again, which is verified where that is done."""
        return type(self), (self.image,)

    def __repr__(self) -> str:
        return f"Policy({self.experiment}, step {self.step}, {self.shape}, {self.environment})"
