"""my-mass: a force moves a mass on a rail to its middle. Change what is marked EDIT."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import rlt

STEP_S = 0.05
MAX_FORCE_N, MAX_POSITION_M, MAX_VELOCITY_M_S = 2.0, 2.0, 5.0


class MyMass(gymnasium.Env[Any, Any]):
    metadata = {  # noqa: RUF012
        "channels": {  # EDIT: names and units of what the policy gets and gives
            "step_interval_us": round(STEP_S * 1e6),
            "observations": [
                {"name": "position", "unit": "m"},
                {"name": "velocity", "unit": "m/s"},
            ],
            "actions": [{"name": "force", "unit": "N", "safe": 0}],  # where something is wrong
        },
        "picture": [
            ("view", "", "-2.2, -0.8, 2.2, 0.8"),
            ("rod", "ground", "-2, -0.2, 2, -0.2, 0.04"),
            ("rod", "push", "position, 0, position + force / 2, 0, 0.1"),
            ("circle", "body", "position, 0, 0.18"),
        ],
    }

    def __init__(self) -> None:  # EDIT: their ranges
        bounds = np.array([MAX_POSITION_M, MAX_VELOCITY_M_S], np.float32)
        self.observation_space = gymnasium.spaces.Box(-bounds, bounds)
        self.action_space = gymnasium.spaces.Box(-MAX_FORCE_N, MAX_FORCE_N, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.position, self.velocity, self.steps = self.np_random.uniform(-1, 1), 0.0, 0  # EDIT
        return self.observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # EDIT
        velocity = self.velocity + STEP_S * float(action[0])  # of 1 kg
        self.velocity = min(max(velocity, -MAX_VELOCITY_M_S), MAX_VELOCITY_M_S)
        position = self.position + STEP_S * self.velocity
        self.position = min(max(position, -MAX_POSITION_M), MAX_POSITION_M)
        self.steps += 1
        reward = -(self.position**2) - 0.1 * self.velocity**2
        return self.observation(), reward, False, self.steps >= 100, {}  # ended, cut off

    def observation(self) -> Any:
        return np.array([self.position, self.velocity], np.float32)


def train(**options: Any) -> rlt.Run:
    return rlt.train(MyMass, steps=5_000, **options)


def test_my_mass_learns(tmp_path: Path) -> None:
    run = train(out=tmp_path / "run", quiet=True)
    assert run.summary["return_mean"] > -15  # EDIT: what a good policy gets


if __name__ == "__main__":
    train()
