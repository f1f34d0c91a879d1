"""Environments for tests, as users write them: a point on a line, and ones that misbehave."""

from __future__ import annotations

import math
import time
from typing import Any

import gymnasium
import numpy as np

STEPS = 20  # until an episode is truncated


class Point(gymnasium.Env[Any, Any]):
    """A point that is to be at zero; it terminates where it leaves [-2, 2]."""

    metadata = {"render_fps": 100}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Box(-2.0, 2.0, (2,))
        self.action_space = gymnasium.spaces.Box(-0.5, 1.5, (1,))
        self.steps_in_all = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.place, self.steps = self.np_random.uniform(-1.0, 1.0), 0
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.steps += 1
        self.steps_in_all += 1
        self.place += 0.2 * (float(action[0]) - 0.5)
        return self.seen(), self.reward(), abs(self.place) > 2.0, self.steps >= STEPS, {}

    def seen(self) -> Any:
        return np.array([np.clip(self.place, -2.0, 2.0), 0.1 * self.steps], np.float32)

    def reward(self) -> float:
        return -abs(self.place)


class RaisingPoint(Point):
    """Fails in every tenth step."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = super().step(action)
        if self.steps_in_all % 10 == 0:
            raise RuntimeError("the simulator diverged")
        return result


class NanPoint(Point):
    """Now and then it gives a reward, or an observation, that is not a number."""

    def reward(self) -> float:
        return math.nan if self.steps_in_all % 50 == 49 else super().reward()

    def seen(self) -> Any:
        return np.full(2, math.nan) if self.steps_in_all % 50 == 25 else super().seen()


class DyingPoint(Point):
    """Fails in every step from the hundredth on."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self.steps_in_all >= 100:
            raise RuntimeError("its license has expired")
        return super().step(action)


class WidePoint(Point):
    """Takes actions of a hundred times the range, and asserts as Point does that they are its."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = gymnasium.spaces.Box(-50.0, 150.0, (1,))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.largest = max(getattr(self, "largest", 0.0), abs(float(action[0])))
        self.steps += 1
        self.place = float(np.clip(self.place + 0.002 * (float(action[0]) - 50.0), -2.0, 2.0))
        return self.seen(), self.reward(), False, self.steps >= STEPS, {}


class OutlierPoint(Point):
    """States no range; its place is once no place at all."""

    outlier = 1e20

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))

    def seen(self) -> Any:
        if self.steps_in_all != 300:
            return super().seen()
        return np.array([self.outlier, 0.0], np.float32)


class StuckPoint(Point):
    """Does not return from a step."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if self.steps_in_all >= 150:
            time.sleep(3600)
        return super().step(action)


class NeverMade(Point):
    def __init__(self) -> None:
        time.sleep(3600)
