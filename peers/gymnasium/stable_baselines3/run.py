"""Stable-Baselines3 on a task of Gymnasium's, with its own defaults: one environment, on the CPU.

Only the widths of the hidden layers are given. Episodes are evaluated as `rlt evaluate` does:
deterministic, from the resets with seeds 0, 1 and so on.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib import metadata
from typing import Any


def episode_return(model: Any, environment: Any, seed: int) -> float:
    observation, _ = environment.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = environment.step(action)
        total += float(reward)
        ended = terminated or truncated
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True)
    parser.add_argument("--algorithm", required=True)
    parser.add_argument("--hidden", required=True)
    for name in ("--steps", "--seed", "--episodes"):
        parser.add_argument(name, type=int, required=True)
    arguments = parser.parse_args()

    import gymnasium
    import stable_baselines3
    import torch

    torch.set_num_threads(1)
    algorithm = getattr(stable_baselines3, arguments.algorithm.upper())
    widths = [int(width) for width in arguments.hidden.split(",")]
    model = algorithm(
        "MlpPolicy",
        arguments.task,
        policy_kwargs={"net_arch": widths},
        seed=arguments.seed,
        device="cpu",
    )
    began_s, cpu_began_s = time.perf_counter(), time.process_time()
    model.learn(arguments.steps)
    cpu_s, train_s = time.process_time() - cpu_began_s, time.perf_counter() - began_s
    environment = gymnasium.make(arguments.task)
    returns = [episode_return(model, environment, seed) for seed in range(arguments.episodes)]
    print(
        json.dumps(
            {
                "version": metadata.version("stable-baselines3"),
                "cpu_s": cpu_s,
                "train_s": train_s,
                "return_mean": sum(returns) / len(returns),
            }
        )
    )


if __name__ == "__main__":
    main()
