"""Tasks whose actions are choices, for policies that other libraries saved. They need nothing but
Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

HIGH = np.array([1.5, 1.5, 5, 5, 3, 5, 1, 1], np.float32)  # of LunarLander-v3


class Lander(gymnasium.Env[Any, Any]):
    """Observations like LunarLander's, and four choices; draws, and rewards the last choice."""

    observation_space = spaces.Box(-HIGH, HIGH)
    action_space: Any = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.left = 20
        return self.draw(), {}

    def draw(self) -> Any:
        return self.np_random.uniform(-HIGH, HIGH).astype(np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return self.draw(), float(np.sum(action)), False, self.left == 0, {}


class TwoGears(Lander):
    """Two choices, of three and of two."""

    action_space = spaces.MultiDiscrete([3, 2])


class Corridor(gymnasium.Env[Any, Any]):
    """Five places in a row, of which the last but one earns: it forbids to leave them, and raises
    where that is tried."""

    observation_space = spaces.Box(0.0, 4.0, (1,))
    action_space: Any = spaces.Discrete(3)  # back, stay, on
    asked = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.place, self.left = int(self.np_random.integers(5)), 12
        return self.seen(), {"action_mask": self.mask()}

    def seen(self) -> Any:
        return np.array([self.place], np.float32)

    def mask(self) -> Any:
        return np.array([self.place > 0, True, self.place < 4], np.int8)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not all(self.mask()[self.chosen(action)]):
            raise RuntimeError(f"{action} is forbidden at {self.place}")
        Corridor.asked += 1
        self.place += int(np.ravel(action)[0]) - 1
        self.left -= 1
        info = {"action_mask": self.mask()}
        sung = 0.25 * float(np.ravel(action)[1:].sum())
        return self.seen(), float(self.place == 3) + sung, False, self.left == 0, info

    def chosen(self, action: Any) -> Any:
        """Places in the mask."""
        return [int(action)]


class TwoChoicesCorridor(Corridor):
    """Also to sing, which only even places allow."""

    action_space = spaces.MultiDiscrete([3, 2])

    def mask(self) -> Any:
        return np.concatenate([super().mask(), np.array([1, self.place % 2 == 0], np.int8)])

    def chosen(self, action: Any) -> Any:
        return [int(action[0]), 3 + int(action[1])]
