"""Environments of the user's own program: a task to train on, and returns of policies there."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rltools_host.arguments import LARGEST_SEED, callable_, shown, whole_number
from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.imports import make_by_id, maker_of
from rltools_host.gymnasium_tasks.player import flat_maker
from rltools_host.gymnasium_tasks.task import MakeEnvironment, TaskRequest
from rltools_host.policies.acting import Acting
from rltools_host.policies.evaluation import GYMNASIUM, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.task import PREFIX

MOST_EPISODES = 1_000_000


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
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    environment = make_by_id(env) if isinstance(env, str) else env
    if not hasattr(environment, "reset") or not hasattr(environment, "step"):
        raise UsageError(f"env={shown(env)}: give an environment, or a name that Gymnasium knows")
    returns = np.zeros(episodes)
    for i in range(episodes):
        act = policy.episode() if isinstance(policy, Acting) else policy
        observation, _ = environment.reset(seed=seed + i)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, _ = environment.step(act(observation))
            returns[i] += float(reward)
            ended = terminated or truncated
    if environment is not env:
        environment.close()
    return returns


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
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
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
