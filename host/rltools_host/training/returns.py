"""Returns of a policy in any environment of Gymnasium: rlt.evaluate and rlt.evaluate_gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rltools_host.arguments import LARGEST_SEED, callable_, shown, whole_number
from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.imports import make_by_id
from rltools_host.training import gymnasium_runs

MOST_EPISODES = 1_000_000


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
        observation, _ = environment.reset(seed=seed + i)
        ended = False
        while not ended:
            observation, reward, terminated, truncated, _ = environment.step(policy(observation))
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
    place = str(getattr(run, "path", run))
    outcome = gymnasium_runs.evaluate_gymnasium(
        make_env,
        place,
        whole_number("episodes", episodes, 1, MOST_EPISODES),
        whole_number("seed", seed, 0, LARGEST_SEED),
    )
    return np.array(outcome.returns)
