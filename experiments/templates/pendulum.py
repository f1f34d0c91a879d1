"""my-pendulum: a torque too weak to lift a pendulum swings it up. Change what is marked EDIT."""

import math
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import rlt

STEP_S = 0.05
MAX_TORQUE_NM, MAX_VELOCITY_RAD_S = 2.0, 8.0
WEIGHT_NM, INERTIA_KG_M2 = 5.0, 1 / 3


class MyPendulum(gymnasium.Env[Any, Any]):
    metadata = {  # noqa: RUF012
        "channels": {  # EDIT: names and units of what the policy gets and gives
            "step_interval_us": round(STEP_S * 1e6),
            "observations": [
                {"name": "cos_angle", "unit": "1"},
                {"name": "sin_angle", "unit": "1"},
                {"name": "velocity", "unit": "rad/s"},
            ],
            "actions": [{"name": "torque", "unit": "N*m", "safe": 0}],  # if something is wrong
        },
        "picture": [
            ("view", "", "-1.3, -1.3, 1.3, 1.3"),
            ("rod", "push", "0, -1.2, torque / 2, -1.2, 0.1"),
            ("rod", "body", "0, 0, -sin_angle, cos_angle, 0.14"),
        ],
    }

    def __init__(self) -> None:  # EDIT: their ranges
        bounds = np.array([1, 1, MAX_VELOCITY_RAD_S], np.float32)
        self.observation_space = gymnasium.spaces.Box(-bounds, bounds)
        self.action_space = gymnasium.spaces.Box(-MAX_TORQUE_NM, MAX_TORQUE_NM, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.angle = self.np_random.uniform(-math.pi, math.pi)  # EDIT: 0 is upright
        self.velocity, self.steps = self.np_random.uniform(-1, 1), 0
        return self.observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # EDIT
        torque = WEIGHT_NM * math.sin(self.angle) + float(action[0])
        velocity = self.velocity + STEP_S * torque / INERTIA_KG_M2
        self.velocity = min(max(velocity, -MAX_VELOCITY_RAD_S), MAX_VELOCITY_RAD_S)
        self.angle = math.remainder(self.angle + STEP_S * self.velocity, 2 * math.pi)
        self.steps += 1
        reward = -(self.angle**2) - 0.1 * self.velocity**2
        return self.observation(), reward, False, self.steps >= 200, {}  # ended, cut off

    def observation(self) -> Any:
        return np.array([math.cos(self.angle), math.sin(self.angle), self.velocity], np.float32)


def train(**options: Any) -> rlt.Run:
    return rlt.train(MyPendulum, steps=10_000, **options)


def test_my_pendulum_learns(tmp_path: Path) -> None:
    run = train(out=tmp_path / "run", quiet=True)
    assert run.summary["return_mean"] > -400  # EDIT: what a good policy gets


if __name__ == "__main__":
    train()
