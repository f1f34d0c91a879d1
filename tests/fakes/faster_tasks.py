"""A task that asks a policy with a hidden state more often than it was trained for. It needs
nothing but Gymnasium."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

SWINGS_HZ = 2.0


class Metronome(gymnasium.Env[Any, Any]):
    """Rewards what swings twice a second. Nothing is seen but the beginning: a policy counts its
    own steps, and at another rate it swings at another one."""

    observation_space = spaces.Box(0.0, 1.0, (1,))
    action_space = spaces.Box(-1.0, 1.0, (1,))
    dt = 0.005

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.steps = 0
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        wanted = math.cos(2 * math.pi * SWINGS_HZ * self.steps * self.dt)
        self.steps += 1
        return np.zeros(1, np.float32), wanted * float(action[0]), False, self.steps == 400, {}
