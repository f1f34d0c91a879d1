"""What a Python program asks for, checked: seeds, settings, a run to go on with, widths; an
environment of its own as a task to train on, and returns of policies there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rltools_host.documents import (
    LARGEST_U32,
    callable_,
    optional_path,
    optional_whole_number,
    repr_of,
    table,
    whole_number,
)
from rltools_host.environments.imports import make_by_id, maker_of
from rltools_host.environments.player import flat_maker
from rltools_host.environments.task import MakeEnvironment, TaskRequest
from rltools_host.errors import UsageError
from rltools_host.policies.acting import Policy
from rltools_host.policies.episodes import close_all
from rltools_host.policies.evaluation import GYMNASIUM, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import find_group
from rltools_host.runs.task import PREFIX, WIDEST_LAYER
from rltools_host.training.group_plan import MOST_SEEDS, GroupRequest
from rltools_host.training.plan import TrainingRequest

Seeds = tuple[Iterable[int] | None, int | None]  # and how many runs at once
MOST_EPISODES = 1_000_000


def group_request(request: TrainingRequest, asked: Seeds, tensorboard: bool) -> GroupRequest | None:
    """What trains several seeds, or goes on with a group; None where one run is meant. One sentence
    says what is wrong with the seeds."""
    seeds, jobs = asked
    is_group = request.resume is not None and find_group(request.resume) is not None
    if seeds is None and not is_group:
        if jobs is not None:
            raise UsageError("jobs goes with seeds, or with resume and a group of runs")
        return None
    each: tuple[int, ...] = ()
    if seeds is not None:
        if isinstance(seeds, str) or not isinstance(seeds, Iterable):
            raise UsageError(f"seeds={repr_of(seeds)}: give whole numbers, such as range(10)")
        each = tuple(whole_number("seeds", seed, 0, LARGEST_U32) for seed in seeds)
        if not each or len(each) != len(set(each)) or len(each) > MOST_SEEDS:
            raise UsageError(f"seeds: give 1 to {MOST_SEEDS:,} seeds, each once")
        if request.seed is not None:
            raise UsageError("seed does not go with seeds: name all in seeds")
        if request.resume is not None:
            raise UsageError("seeds does not go with resume: a resumed group keeps its seeds")
    return GroupRequest(
        request,
        each,
        jobs=optional_whole_number("jobs", jobs, 1, MOST_SEEDS),
        tensorboard=tensorboard,
    )


def as_typed(settings: Mapping[str, float | int | str] | None) -> tuple[str, ...]:
    """As --set has them."""
    return tuple(f"{name}={value}" for name, value in table("settings", settings).items())


def place_of(run: Any) -> str | None:
    """As --resume has it."""
    place = optional_path("resume", getattr(run, "path", run))
    return None if place is None else str(place)


def widths(hidden: Any) -> tuple[int, ...]:
    """Of hidden layers, as a tuple of numbers."""
    if isinstance(hidden, str) or not isinstance(hidden, Iterable):
        raise UsageError(
            f"hidden={repr_of(hidden)}: give the widths of the layers, such as (64, 64)"
        )
    return tuple(whole_number("hidden", width, 1, WIDEST_LAYER) for width in hidden)


def task_request(make_env: MakeEnvironment | str, **asked: Any) -> TaskRequest:
    """What TrainingRequest has for an environment: `asked` are fields of TaskRequest.

    A function is called in this process, and its environments are stepped in a thread of it; an id
    of Gymnasium's, such as "HalfCheetah-v5", is played by a process of its own.
    """
    if isinstance(make_env, str):
        return TaskRequest(f"{PREFIX}{make_env.removeprefix(PREFIX)}", **asked)
    return TaskRequest(named(maker_for(make_env)), make_env, **asked)


def maker_for(make_env: MakeEnvironment | str) -> MakeEnvironment:
    if isinstance(make_env, str):
        return maker_of(f"{PREFIX}{make_env.removeprefix(PREFIX)}")
    if not callable(make_env):
        raise UsageError("make_env must be a function that makes an environment, or an id")
    return make_env


def named(make_env: MakeEnvironment) -> str:
    """What the function is called; a lambda's task has a name of its own."""
    name = getattr(make_env, "__qualname__", type(make_env).__name__)
    return "task" if "lambda" in name else f"{getattr(make_env, '__module__', '')}:{name}"


def evaluate(
    policy: Callable[[Any], Any],
    env: str | gymnasium.Env[Any, Any],
    episodes: int = 100,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Returns of whole episodes, (episodes); episode i begins with reset(seed=seed + i).

    policy: any function of an observation that gives an action, such as an rlt.Policy.
    env: an environment, or a name that gymnasium.make knows. It must end its episodes.

    RltError: Gymnasium has no environment of this name, or an argument is of another kind.
    """
    callable_("policy", policy, "a function of an observation")
    episodes = whole_number("episodes", episodes, 1, MOST_EPISODES)
    seed = whole_number("seed", seed, 0, LARGEST_U32)
    environment = make_by_id(env) if isinstance(env, str) else env
    if not hasattr(environment, "reset") or not hasattr(environment, "step"):
        raise UsageError(f"env={repr_of(env)}: give an environment, or a name that Gymnasium knows")
    try:
        return np.array([episode_return(policy, environment, seed + i) for i in range(episodes)])
    finally:
        if environment is not env:
            close_all([environment])


def episode_return(policy: Callable[[Any], Any], environment: Any, seed: int) -> float:
    act = policy.episode() if isinstance(policy, Policy) else policy
    observation, _ = environment.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = environment.step(act(observation))
        total += float(reward)
        ended = terminated or truncated
    return total


def evaluate_gymnasium(
    make_env: Callable[[], gymnasium.Env[Any, Any]] | str,
    run: str | PathLike[str] | Any,
    episodes: int = 100,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Returns of a run's policy, (episodes), in what `make_env` makes, or Gymnasium's environment
    of this id, which rlt.train_gymnasium trained it on; episode i begins with reset(seed=seed + i)
    and ends as in training.

    run: what rlt.train_gymnasium returned, or a run's folder or name.

    RltError: the run is of no such environment, or this one has other observations or actions.
    """
    episodes = whole_number("episodes", episodes, 1, MOST_EPISODES)
    seed = whole_number("seed", seed, 0, LARGEST_U32)
    make_env = maker_for(make_env)
    folder = RunFolder.open(str(getattr(run, "path", run)))
    task = folder.content.gymnasium
    if task is None:
        raise UsageError(f"run {folder.name} was trained on no environment of Python's")
    image = read_run_policy(folder)
    image.verify()
    make = flat_maker(task, make_env)
    outcome = evaluate_policy(image, str(folder.path), episodes, seed, GYMNASIUM, make)
    return np.array(outcome.returns)
