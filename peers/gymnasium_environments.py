"""Gymnasium's environments, as a contender of `rlt bench environments`.

One environment as gymnasium.make() gives it, several in a SyncVectorEnv: both with one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from turns import ACTION_SETS, random_actions, step_in_turns, stepping


def stepping_single(task: str) -> Callable[[int], int]:
    import gymnasium

    environment = gymnasium.make(task)
    actions = random_actions(environment.action_space)
    environment.reset(seed=0)

    def step(steps: int) -> int:
        for index in range(steps):
            result = environment.step(actions[index % ACTION_SETS])
            if result[2] or result[3]:
                environment.reset()
        return steps

    return step


def make(task: str, count: int) -> Callable[[int], int]:
    import gymnasium

    if count == 1:
        return stepping_single(task)
    environments: Any = gymnasium.make_vec(task, count, vectorization_mode="sync")
    environments.reset(seed=0)
    return stepping(environments, environments.single_action_space, count)


def main() -> None:
    import gymnasium

    warnings.simplefilter("ignore", DeprecationWarning)  # there is a version 5
    step_in_turns({"version": gymnasium.__version__}, make)


if __name__ == "__main__":
    main()
