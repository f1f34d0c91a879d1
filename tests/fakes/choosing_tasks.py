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
