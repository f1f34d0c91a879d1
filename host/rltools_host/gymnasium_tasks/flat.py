"""A task's environment for evaluation: flat observations and actions, bounded episodes."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from rltools_host.errors import BoardMismatchError, UsageError
from rltools_host.gymnasium_tasks.agreement import require_agreement
from rltools_host.gymnasium_tasks.maker import (
    install_what_it_needs,
    make_first,
    maker_of,
    one_line,
)
from rltools_host.gymnasium_tasks.player import ActionSpace, Float32Array, checked_reward
from rltools_host.gymnasium_tasks.task import MakeEnvironment, Task


class FlatEnvironment:
    """As much of an environment as an evaluation needs."""

    def __init__(self, environment: Any, task: Task, faults: list[str]) -> None:
        """`faults` takes in what goes wrong in steps; of the first one a note is printed."""
        shapes = (environment.observation_space.shape, environment.action_space.shape)
        if shapes != (task.observation_shape, task.action_shape):
            raise BoardMismatchError(
                f"{task.environment} has observations and actions of the shapes {shapes[0]} and "
                f"{shapes[1]} here, and the run {task.observation_shape} and {task.action_shape}"
            )
        self._environment = environment
        self._task = task
        self._actions = ActionSpace(environment.action_space)
        self._steps = 0
        self._faults = faults

    def reset(self, *, seed: int) -> tuple[Float32Array, dict[str, Any]]:
        self._steps = 0
        try:
            observation, info = self._environment.reset(seed=seed)
        except Exception as error:
            raise self._failed("reset", error) from None
        return np.asarray(observation, np.float32).reshape(-1), info

    def step(self, action: Float32Array) -> tuple[Float32Array, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        given = self._actions.taken(action)
        try:
            observation, reward, terminated, truncated, info = self._environment.step(given)
            reward = checked_reward(reward)
            seen = np.asarray(observation, np.float32).reshape(self._task.observation_shape)
            if not np.isfinite(seen).all():
                raise ArithmeticError("a number is not finite")
        except Exception as error:  # the episode ends here, as in training
            if not self._faults:
                print(f"note: {self._failed('step', error)}", file=sys.stderr)
            self._faults.append(one_line(error))
            return np.zeros(len(self._task.observations), np.float32), 0.0, False, True, {}
        is_over = bool(truncated) or self._steps >= self._task.episode_steps
        return seen.reshape(-1), reward, bool(terminated), is_over, info

    def close(self) -> None:
        self._environment.close()

    def _failed(self, where: str, error: Exception) -> UsageError:
        return UsageError(
            f"{self._task.environment} failed in an evaluation: {where} raised {one_line(error)}"
        )


def flat_maker(task: Task, make_env: MakeEnvironment | None = None) -> MakeEnvironment:
    """What makes environments to evaluate a run of this task in."""
    if make_env is None:
        if not task.is_named:
            raise UsageError(
                f"{task.environment} is an environment of a Python program: evaluate it there, "
                "with rlt.evaluate_gymnasium(make_env, run)"
            )
        require_agreement(task.source)
        install_what_it_needs(task.source)
        make_env = maker_of(task.source)
    make = make_env
    faults: list[str] = []
    return lambda: FlatEnvironment(make_first(make, task.environment), task, faults)
