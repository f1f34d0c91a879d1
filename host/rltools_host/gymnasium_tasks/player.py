"""Plays the episodes of a task in environments of Python's, and counts what goes wrong there."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.gymnasium_tasks.environment_server import Faults
from rltools_host.gymnasium_tasks.maker import one_line
from rltools_host.gymnasium_tasks.task import MakeEnvironment, Task
from rltools_host.gymnasium_tasks.wire import DONE, LOST, OVER

Float32Array = NDArray[np.float32]
# An environment that fails this often without a good step between, or in this share of its steps,
# is given up.
MOST_IN_A_ROW = 20
MANY, LARGEST_SHARE = 100, 0.1


class EnvironmentFault(Exception):
    """What an environment did that no environment may."""


class Player:
    """Environments by their slots, made when they are first needed."""

    def __init__(
        self,
        make: MakeEnvironment,
        task: Task,
        on_fault: Callable[[Faults], None] = lambda _: None,
    ) -> None:
        self.faults = Faults()
        self._make = make
        self._on_fault = on_fault
        self._environments: dict[int, Any] = {}
        self._shape = task.observation_shape
        self._action_shape = task.action_shape
        self._no_observation = np.zeros(len(task.observations), np.float32)
        self._steps = 0
        self._in_a_row = 0
        self._bounds: tuple[Any, Any] | None = None  # where an action must be taken into them
        self._dtype: Any = np.float32

    def prepare(self, count: int, first: Any) -> None:
        """Makes the environments of a run, of which the first one is there; and begins one."""
        space = first.action_space
        self._dtype = space.dtype
        if self._dtype != np.float32:  # the bounds' nearest floats may lie outside
            self._bounds = (space.low, space.high)
        self._environments[0] = first
        for slot in range(1, count):
            self._environments[slot] = self._make()
        self._checked(first.reset(seed=0)[0], "reset")

    def reset(self, slot: int, seed: int) -> tuple[int, Float32Array]:
        """The first observation; where that fails, of an environment that is made anew."""
        for _ in range(2):
            try:
                environment = self._environments.get(slot)
                if environment is None:
                    environment = self._environments[slot] = self._make()
                return DONE, self._checked(environment.reset(seed=seed)[0], "reset")
            except EnvironmentFault as fault:
                self._count(str(fault))
            except Exception as error:
                self._count(f"reset raised {one_line(error)}")
            self._close(slot)
        self._give_up("the environment cannot be reset")
        return OVER, self._no_observation

    def step(self, slot: int, action: Float32Array) -> tuple[int, float, bool, bool, Float32Array]:
        self._steps += 1
        try:
            environment = self._environments[slot]
            given = action.reshape(self._action_shape).astype(self._dtype)
            if self._bounds is not None:
                given = np.clip(given, *self._bounds)
            observation, reward, terminated, truncated, _ = environment.step(given)
            seen = self._checked(observation, "step")
            reward = float(reward)
            if not math.isfinite(reward):
                raise EnvironmentFault(f"step gave the reward {reward}, which is no finite number")
        except EnvironmentFault as fault:
            return self._lost(str(fault))
        except Exception as error:
            return self._lost(f"step raised {one_line(error)}")
        self._in_a_row = 0
        return DONE, reward, bool(terminated), bool(truncated), seen

    def close(self) -> None:
        for slot in list(self._environments):
            self._close(slot)

    def _checked(self, observation: Any, where: str) -> Float32Array:
        seen = np.asarray(observation, np.float32)
        if seen.shape != self._shape:
            raise EnvironmentFault(
                f"{where} gave an observation of shape {seen.shape}, and its space has "
                f"{self._shape}"
            )
        if not np.isfinite(seen).all():
            raise EnvironmentFault(f"{where} gave an observation with a number that is not finite")
        return seen.reshape(-1)

    def _lost(self, sentence: str) -> tuple[int, float, bool, bool, Float32Array]:
        self._count(sentence)
        faults = self.faults
        if self._in_a_row >= MOST_IN_A_ROW:
            self._give_up(f"the environment failed {self._in_a_row} times in a row")
        elif faults.count >= MANY and faults.count > LARGEST_SHARE * self._steps:
            self._give_up(f"the environment failed in {faults.count} of {self._steps} steps")
        return OVER if faults.given_up else LOST, 0.0, False, False, self._no_observation

    def _count(self, sentence: str) -> None:
        self._in_a_row += 1
        self.faults.count += 1
        self.faults.first = self.faults.first or sentence
        self._on_fault(self.faults)

    def _give_up(self, sentence: str) -> None:
        self.faults.given_up = f"{sentence}; first: {self.faults.first}"
        self._on_fault(self.faults)

    def _close(self, slot: int) -> None:
        with contextlib.suppress(Exception):
            self._environments.pop(slot).close()
