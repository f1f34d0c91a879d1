"""The settings, EnvPool's environments and the turns that peers of `rlt bench ppo` share.

ppo/<name>/run.py imports it first and calls begin().
"""

from __future__ import annotations

import argparse
import ctypes
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from turns import TrainingTurns as TrainingTurns  # the peers take it from here

TASK = "Ant-v4"
OBSERVATION_DIM = 27


@dataclass(frozen=True)
class Settings:
    """Those of experiments/ant_ppo.h, but for longer rollouts and minibatches, with which the
    libraries are quicker; with `published`, the library's own for this task instead."""

    seed: int
    threads: int
    published: bool
    steps: int  # that a whole run has, where something depends on it
    environments: int = 64
    n_steps: int = 64
    batch_size: int = 2048
    n_epochs: int = 4
    hidden: tuple[int, int] = (256, 256)
    learning_rate: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    vf_coef: float = 0.5
    max_grad_norm: float = 1.0
    log_std_init: float = -0.7
    reward_scale: float = 0.1
    target_kl: float = 0.008

    def text(self) -> str:
        layers = "-".join(map(str, self.hidden))
        rollout = f"{self.environments} x {self.n_steps}"
        return f"{rollout}, {self.batch_size}, {self.n_epochs} epochs, {layers}"


def settings() -> Settings:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--published", action="store_true")
    arguments = parser.parse_args()
    return Settings(arguments.seed, arguments.threads, arguments.published, arguments.steps)


def hold_torch_to(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)


def torch_threads() -> int:
    import torch

    return int(torch.get_num_threads())


def introduce(
    turns: TrainingTurns, package: str, environments: Any, threads: dict[str, int], settings: str
) -> None:
    """Print who takes part: version, observation, threads of each of its parts."""
    turns.say(
        {
            "version": metadata.version(package),
            "observation_dim": int(environments.observation_space.shape[-1]),
            "action_dim": int(environments.action_space.shape[-1]),
            "threads": {**threads, "EnvPool": int(environments.config["num_threads"])},
            "simulator": simulator(),
            "settings": settings,
        }
    )


def simulator() -> str:
    """Return the versions of EnvPool and of the MuJoCo in it."""
    import envpool.mujoco

    folder = Path(envpool.mujoco.__file__).parent
    library = ctypes.CDLL(str(folder / "mujoco_gym_envpool.so"))
    library.mj_versionString.restype = ctypes.c_char_p
    version = library.mj_versionString().decode()
    return f"EnvPool {metadata.version('envpool')} with MuJoCo {version}"


def make_environments(count: int, threads: int, seed: int) -> Any:
    import envpool

    return envpool.make_gymnasium(TASK, num_envs=count, num_threads=threads, seed=seed)


def actions_of_a_new_policy(shape: tuple[int, ...]) -> Any:
    """Draw actions as PPO first does: normal about zero with the first deviation, in bounds."""
    import numpy as np

    deviation = np.exp(Settings.log_std_init)
    return np.clip(deviation * np.random.default_rng(0).standard_normal(shape), -1.0, 1.0)
