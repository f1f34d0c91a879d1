"""What a step costs in a task of Gymnasium's that the core trains on: python gymnasium_steps.py.

Gymnasium's own loop with random actions, against runs that warm up only: their actions are random
too, each step goes through the socket, and nothing is learnt. Rounds take turns; the fastest of
each counts, since what else runs on the machine only takes time.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import gymnasium
import numpy as np

import rlt
from rltools_host.runs.folder import RunFolder

STEPS = 5_000
ROUNDS = 9
TASKS = ("Pendulum-v1", "HalfCheetah-v5")


def alone(name: str) -> float:
    """Microseconds a step of a loop in Python, resets included."""
    environment = gymnasium.make(name, disable_env_checker=True)
    space = environment.action_space
    assert isinstance(space, gymnasium.spaces.Box)
    actions = np.random.default_rng(0).uniform(space.low, space.high, (STEPS, *space.shape))
    actions = actions.astype(np.float32)
    environment.reset(seed=0)
    began = time.perf_counter()
    for index, action in enumerate(actions):
        _, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            environment.reset(seed=index)
    return (time.perf_counter() - began) / STEPS * 1e6


def trained(name: str, in_thread: bool) -> float:
    """Microseconds a step of a run without its evaluations."""

    def make() -> gymnasium.Env[object, object]:
        return gymnasium.make(name, disable_env_checker=True)

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        rlt.train_gymnasium(
            make if in_thread else name,
            name=name,
            steps=STEPS,
            out=out,
            settings={"learning_starts": STEPS, "eval_episodes": 1, "eval_every": STEPS},
            tensorboard=False,
            quiet=True,
        )
        metadata = RunFolder.open(str(out)).metadata
        return float(1e6 / metadata["steps_per_s"])


if __name__ == "__main__":
    for task in TASKS:
        ways = {
            "Gymnasium's loop": lambda task=task: alone(task),
            "a process plays": lambda task=task: trained(task, False),
            "a thread plays": lambda task=task: trained(task, True),
        }
        for way in ways.values():
            way()  # compiles, and warms up
        rounds = [[way() for way in ways.values()] for _ in range(ROUNDS)]
        fastest = [min(column) for column in zip(*rounds, strict=True)]
        figures = ", ".join(
            f"{name} {figure:.1f} us" for name, figure in zip(ways, fastest, strict=True)
        )
        print(f"{task}: {figures}", flush=True)
