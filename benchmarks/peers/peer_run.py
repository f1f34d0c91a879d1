"""The settings, the stopwatch and the evaluation that peers of `rlt bench train` share.

training/<name>/<algorithm>.py imports it first, trains, and calls run().
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STARTED_S = time.perf_counter()  # before the imports of the peer


@dataclass(frozen=True)
class Settings:
    """Those of experiments/pendulum_td3.h and pendulum_sac.h.

    Noise is relative to the largest action.
    """

    seed: int
    steps: int
    environment: str = "Pendulum-v1"
    hidden: tuple[int, int] = (64, 64)
    batch_size: int = 100
    buffer_size: int = 10_000
    learning_starts: int = 100
    learning_rate: float = 1e-3
    gamma: float = 0.99
    tau: float = 0.005
    action_noise: float = 0.1
    target_policy_noise: float = 0.2
    target_noise_clip: float = 0.5
    policy_delay: int = 2
    alpha: float = 1.0  # SAC's, at the start
    target_entropy: float = -1.0
    maximum_action: float = 2.0

    def of_stable_baselines(self, algorithm: str) -> dict[str, Any]:
        """Return the settings by the names of Stable-Baselines3 and sbx."""
        names = ["seed", "learning_rate", "batch_size", "buffer_size", "learning_starts"]
        names += ["tau", "gamma"]
        common: dict[str, Any] = {name: getattr(self, name) for name in names}
        common["policy_kwargs"] = {"net_arch": list(self.hidden)}
        common["train_freq"] = common["gradient_steps"] = 1
        if algorithm == "SAC":
            initial = f"auto_{self.alpha:g}"
            return {**common, "ent_coef": initial, "target_entropy": self.target_entropy}
        import numpy as np
        from stable_baselines3.common.noise import NormalActionNoise

        return {
            **common,
            "action_noise": NormalActionNoise(np.zeros(1), np.full(1, self.action_noise)),
            "policy_delay": self.policy_delay,
            "target_policy_noise": self.target_policy_noise,
            "target_noise_clip": self.target_noise_clip,
        }


class Stopwatch:
    """Wraps the training loop, and nothing else: what came before counts as setup."""

    def __init__(self) -> None:
        self.setup_s = self.train_s = self.cpu_s = 0.0

    def __enter__(self) -> Stopwatch:
        self._began_s, self._cpu_began_s = time.perf_counter(), time.process_time()
        self.setup_s = self._began_s - STARTED_S
        return self

    def __exit__(self, *_: object) -> None:
        self.train_s = time.perf_counter() - self._began_s
        self.cpu_s = time.process_time() - self._cpu_began_s


# From observations (n, 3) to actions (n, 1), in the environment's units.
Policy = Callable[[Any], Any]


def episode_returns(policy: Policy, environment_name: str, count: int) -> list[float]:
    """Return the returns of deterministic episodes from resets with the seeds 0 to count - 1."""
    import gymnasium
    import numpy as np

    environments = [gymnasium.make(environment_name) for _ in range(count)]
    observations = np.array(
        [environment.reset(seed=seed)[0] for seed, environment in enumerate(environments)],
        np.float32,
    )
    returns = np.zeros(count)
    running = list(range(count))
    while running:
        actions = np.asarray(policy(observations[running]), np.float32).reshape(len(running), -1)
        still_running = []
        for index, action in zip(running, actions, strict=True):
            observation, reward, terminated, truncated, _ = environments[index].step(action)
            observations[index] = observation
            returns[index] += float(reward)
            if not terminated and not truncated:
                still_running.append(index)
        running = still_running
    return [float(value) for value in returns]


def run(package: str, train: Callable[[Settings, Stopwatch], Policy]) -> None:
    """Train as the command line states, evaluate, and print one line of results."""
    from importlib import metadata

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--episodes", type=int, default=100)
    arguments = parser.parse_args()
    settings = Settings(seed=arguments.seed, steps=arguments.steps)
    stopwatch = Stopwatch()
    policy = train(settings, stopwatch)
    returns = episode_returns(policy, settings.environment, arguments.episodes)
    print(
        json.dumps(
            {
                "version": metadata.version(package),
                "setup_s": stopwatch.setup_s,
                "train_s": stopwatch.train_s,
                "cpu_s": stopwatch.cpu_s,
                "return_mean": sum(returns) / len(returns),
                "episodes": len(returns),
                "seed": settings.seed,
                "steps": settings.steps,
            }
        )
    )
