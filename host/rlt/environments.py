"""The compiled environments, by their names."""

from __future__ import annotations

from collections.abc import Mapping

from gymnasium.vector import AutoresetMode

from rltools_host.build import catalogue
from rltools_host.environments.compiled import CompiledVectorEnv


def list_environments() -> list[str]:
    """Names that make() takes; each is also Gymnasium's, with rlt/ before it."""
    return [environment.name for environment in catalogue.list_environments()]


def make(
    name: str,
    num_envs: int = 1,
    *,
    max_episode_steps: int | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
    copy: bool = True,
    threads: int = 1,
    settings: Mapping[str, float] | None = None,
) -> CompiledVectorEnv:
    """`num_envs` environments of the core behind gymnasium.vector.VectorEnv, stepped in one call.

    name: one of list_environments(), such as "Pendulum-v1".
    max_episode_steps: after so many steps an episode is truncated; None: the environment's own
        number, 200 of Pendulum-v1.
    autoreset_mode: "SameStep" (see CompiledVectorEnv), or "NextStep", which Gymnasium's vector
        wrappers of observations want.
    copy: False returns the same arrays at each call, which the next call overwrites.
    threads: 1 to 64 that share environments whose step takes some microseconds (MuJoCo's); no bit
        depends on their number.
    settings: the environment's settings by their names, as `--set` takes them: {"airframe": 2}.

    The environment is compiled unless it is up to date. RltError: there is no such environment, or
    a package that it needs cannot be installed.
    """
    return CompiledVectorEnv(
        name,
        num_envs,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        copy=copy,
        threads=threads,
        settings=settings,
    )
