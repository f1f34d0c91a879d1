"""The arguments of rlt.train as a checked TrainingRequest, and rlt.evaluate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rltools_host.documents import (
    LARGEST_U32,
    optional_path,
    repr_of,
    table,
    whole_number,
)
from rltools_host.environments.imports import made, maker_of
from rltools_host.environments.player import flat_maker
from rltools_host.environments.task import MakeEnvironment, TaskRequest, is_task
from rltools_host.errors import UsageError
from rltools_host.policies.acting import Policy
from rltools_host.policies.episodes import close_all
from rltools_host.policies.evaluation import GYMNASIUM, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.task import PREFIX, WIDEST_LAYER
from rltools_host.training.file_runs import run_of_file
from rltools_host.training.group_plan import MAX_SEEDS
from rltools_host.training.plan import TrainingRequest

MAX_EPISODES = 1_000_000
OF_NEW_TASKS = (
    "goes with a new run of a Gymnasium task, gym:ID or a function that makes an environment: "
    "an experiment's file, and a resumed run, have it already"
)


def seed_list(seeds: Iterable[int] | None) -> tuple[int, ...]:
    """Return the seeds of a group; none for a single run."""
    if seeds is None:
        return ()
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise UsageError(f"seeds={repr_of(seeds)}: give whole numbers, such as range(10)")
    each = tuple(whole_number("seeds", seed, 0, LARGEST_U32) for seed in seeds)
    if not each or len(each) != len(set(each)) or len(each) > MAX_SEEDS:
        raise UsageError(f"seeds: give 1 to {MAX_SEEDS:,} seeds, each once")
    return each


def setting_list(settings: Mapping[str, float | int | str] | None) -> tuple[str, ...]:
    """Return name=value for each setting, as `--set` takes them."""
    return tuple(f"{name}={value}" for name, value in table("settings", settings).items())


def run_name(run: Any) -> str | None:
    """Return the path or name of a run, as `--resume` takes it."""
    path = optional_path("resume", getattr(run, "path", run))
    return None if path is None else str(path)


def widths(hidden: Any) -> tuple[int, ...] | None:
    """Return the widths of hidden layers."""
    if hidden is None:
        return None
    if isinstance(hidden, str) or not isinstance(hidden, Iterable):
        raise UsageError(
            f"hidden={repr_of(hidden)}: give the widths of the layers, such as (64, 64)"
        )
    return tuple(whole_number("hidden", width, 1, WIDEST_LAYER) for width in hidden)


def with_task(
    request: TrainingRequest, task: MakeEnvironment | str | None, **options: Any
) -> TrainingRequest:
    """Return the request with its experiment or task; `options` are fields of TaskRequest.

    A function is called in this process, and its environments are stepped in a thread of it; a task
    with a name, such as "gym:HalfCheetah-v5", is stepped by a process of its own.
    """
    given = {name: value for name, value in options.items() if value is not None}
    is_experiment = task is None or (isinstance(task, str) and not is_task(task))
    if given and (is_experiment or request.resume is not None):
        raise UsageError(f"{next(iter(given))} {OF_NEW_TASKS}")
    if task is None:
        return request
    if isinstance(task, str):
        if is_experiment:
            return replace(request, experiment=task)
        return replace(request, task=TaskRequest(task, **given))
    if not callable(task):
        raise UsageError(
            f"task={repr_of(task)}: give the name of an experiment, gym:ID, or a function that "
            "makes an environment"
        )
    return replace(request, task=TaskRequest(function_name(task), task, **given))


def function_name(make_env: MakeEnvironment) -> str:
    """Return module:name of a function; a lambda is a "task"."""
    name = getattr(make_env, "__qualname__", type(make_env).__name__)
    return "task" if "lambda" in name else f"{getattr(make_env, '__module__', '')}:{name}"


def evaluate(
    policy: Callable[[Any], Any] | str | PathLike[str] | Any,
    env: str | gymnasium.Env[Any, Any] | MakeEnvironment,
    episodes: int = 100,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Return the return of each episode, (episodes,); episode i begins with reset(seed=seed + i).

    policy: a function of an observation that returns an action, such as an rlt.Policy; or a run:
        what rlt.train returned, its folder or its name. The episodes of a run on a Gymnasium task
        end as in training; otherwise the environment must end them.
    env: an environment, a function that makes one, or a name that gymnasium.make knows.

    RltError: there is no such environment or run, or the environment has other observations or
    actions than the run.
    """
    episodes = whole_number("episodes", episodes, 1, MAX_EPISODES)
    seed = whole_number("seed", seed, 0, LARGEST_U32)
    run = getattr(policy, "path", policy)
    if not callable(policy) and not isinstance(run, str | PathLike):
        raise UsageError(
            f"policy={repr_of(policy)}: give a function of an observation, or a run of rlt.train"
        )
    is_environment = hasattr(env, "reset") and hasattr(env, "step") and not isinstance(env, type)
    if not is_environment and not isinstance(env, str) and not callable(env):
        raise UsageError(
            f"env={repr_of(env)}: give an environment, a function that makes one, or a name that "
            "Gymnasium knows"
        )
    act: Any = policy
    if not callable(policy):
        folder = RunFolder.open(run_of_file(str(run)))
        image = read_run_policy(folder)
        image.verify()
        act = Policy(image)
        if (task := folder.content.gymnasium) is not None:
            if is_environment:
                raise UsageError(
                    "env: the run was trained on a Gymnasium task: give the function that "
                    "makes its environment, or its name"
                )
            make = flat_maker(task, maker_for(env, task.episode_steps))
            outcome = evaluate_policy(image, str(folder.path), episodes, seed, GYMNASIUM, make)
            return np.array(outcome.returns)
    make = maker_for(env)
    is_policy = isinstance(act, Policy)  # it takes flat observations; another function its own
    environment = env if is_environment else made(make) if is_policy else make()
    try:
        return np.array([episode_return(act, environment, seed + i) for i in range(episodes)])
    finally:
        if not is_environment:
            close_all([environment])


def maker_for(env: Any, episode_steps: int | None = None) -> MakeEnvironment:
    """Return a function that makes the environment, of a name or of such a function."""
    if isinstance(env, str):
        return maker_of(f"{PREFIX}{env.removeprefix(PREFIX)}", episode_steps)
    make: MakeEnvironment = env
    return make


def episode_return(policy: Callable[[Any], Any], environment: Any, seed: int) -> float:
    act = policy.episode() if isinstance(policy, Policy) else policy
    observation, _ = environment.reset(seed=seed)
    total, has_ended = 0.0, False
    while not has_ended:
        observation, reward, terminated, truncated, _ = environment.step(act(observation))
        total += float(reward)
        has_ended = terminated or truncated
    return total
