"""Tasks that ask a policy with a hidden state more often than it was trained for. They need nothing
but Gymnasium."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

TRAINED_S = 0.05  # a step of Pendulum-v1
SWINGS_HZ = 2.0


class Faster(gymnasium.Env[Any, Any]):
    """MaskedPendulum, which is asked at 20 Hz, at a higher rate: its equations, and its reward for
    each 50 ms."""

    faster: int
    observation_space = spaces.Box(-1.0, 1.0, (2,))
    action_space = spaces.Box(-2.0, 2.0, (1,))

    @property
    def dt(self) -> float:
        return TRAINED_S / self.faster

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.angle = float(self.np_random.uniform(-math.pi, math.pi))  # 0 is upright
        self.velocity = float(self.np_random.uniform(-1.0, 1.0))
        self.left = 200 * self.faster
        return self.seen(), {}

    def seen(self) -> Any:
        return np.array([math.cos(self.angle), math.sin(self.angle)], np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        torque = min(max(float(action[0]), -2.0), 2.0)
        angle = math.remainder(self.angle, 2 * math.pi)
        cost = angle**2 + 0.1 * self.velocity**2 + 0.001 * torque**2
        acceleration = 15.0 * math.sin(self.angle) + 3.0 * torque
        self.velocity = min(max(self.velocity + acceleration * self.dt, -8.0), 8.0)
        self.angle += self.velocity * self.dt
        self.left -= 1
        return self.seen(), -cost / self.faster, False, self.left == 0, {}


class FiveTimes(Faster):
    faster = 5


class TenTimes(Faster):
    faster = 10


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
