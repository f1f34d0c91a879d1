"""Returns of a policy in any environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from rltools_host.errors import UsageError


def evaluate(
    policy: Callable[[Any], Any],
    env: str | gymnasium.Env[Any, Any],
    episodes: int = 100,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Returns of whole episodes, (episodes); episode i begins with reset(seed=seed + i).

    policy: any function of an observation that gives an action, such as an rlt.Policy.
    env: an environment, or a name that gymnasium.make knows. It must end its episodes.
    """
    if episodes < 1:
        raise UsageError(f"{episodes} episodes: at least one is needed")
    environment = gymnasium.make(env) if isinstance(env, str) else env
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
