"""A servo that is to hold an angle against an unknown load, learned with the C++ core.

.venv/bin/python examples/gymnasium_task/servo.py trains it and writes the policy as C. The command
line does it too: rlt train gym:examples/gymnasium_task/servo.py:Servo --steps 20000
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import rlt
from rltools_host.commands import export

STEP_S = 0.02
MAX_ANGLE_RAD = 1.5
MAX_VELOCITY_RAD_S = 20.0
CHANNELS = {
    "step_interval_us": round(STEP_S * 1e6),
    "observations": [
        {"name": "angle_error", "unit": "rad"},
        {"name": "velocity", "unit": "rad/s"},
    ],
    "actions": [{"name": "torque", "unit": "N*m", "safe": 0}],
}


class Servo(gymnasium.Env[Any, Any]):
    """Two seconds from a random angle; the reward is minus the error and some effort."""

    def __init__(self) -> None:
        bounds = np.array([2 * MAX_ANGLE_RAD, MAX_VELOCITY_RAD_S], np.float32)
        self.observation_space = gymnasium.spaces.Box(-bounds, bounds)
        self.action_space = gymnasium.spaces.Box(-0.5, 0.5, (1,))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.target, self.angle = self.np_random.uniform(-MAX_ANGLE_RAD, MAX_ANGLE_RAD, 2)
        self.load = self.np_random.uniform(-0.05, 0.05)  # N*m
        self.velocity, self.steps = 0.0, 0
        return self.observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        acceleration = (action[0] + self.load - 0.02 * self.velocity) / 0.01  # over the inertia
        self.velocity += STEP_S * acceleration
        self.velocity = float(np.clip(self.velocity, -MAX_VELOCITY_RAD_S, MAX_VELOCITY_RAD_S))
        self.angle = float(np.clip(self.angle + STEP_S * self.velocity, -3.0, 3.0))
        self.steps += 1
        reward = -abs(self.target - self.angle) - 0.1 * float(action[0]) ** 2
        return self.observation(), reward, False, self.steps >= 100, {}

    def observation(self) -> Any:
        limit = 2 * MAX_ANGLE_RAD
        error = float(np.clip(self.target - self.angle, -limit, limit))
        return np.array([error, self.velocity], np.float32)


def train(steps: int, out: Path) -> float:
    """Trains, writes `out`/servo.h, and returns the mean return of 20 episodes."""
    run = rlt.train(Servo, steps=steps, channels=CHANNELS, out=out / "run", quiet=True)
    export.run(str(run.path), "c", out / "servo.h")
    return float(rlt.evaluate(run.policy, Servo(), episodes=20).mean())


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "servo")
    try:
        print(f"return {train(20_000, folder):.1f}, run and policy in {folder}/")
    except rlt.RltError as error:  # also Ctrl-C while it trains: the sentence says how to go on
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:  # before there was anything to save
        sys.exit("interrupted before training began: nothing was saved")
