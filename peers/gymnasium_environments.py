"""Gymnasium's environments, as a contender of `rlt bench environments`.

One environment as gymnasium.make() gives it, several in a SyncVectorEnv: both with one thread.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

from turns import Turns

ACTION_SETS = 64


class Single:
    def __init__(self, task: str) -> None:
        import gymnasium

        self._environment = gymnasium.make(task)
        space: Any = self._environment.action_space
        self._actions = random_actions(space.low, space.high, (ACTION_SETS, *space.shape))
        self._environment.reset(seed=0)

    def step(self, steps: int) -> int:
        for index in range(steps):
            result = self._environment.step(self._actions[index % ACTION_SETS])
            if result[2] or result[3]:
                self._environment.reset()
        return steps


class Several:
    def __init__(self, task: str, count: int) -> None:
        import gymnasium

        self._count = count
        self._environments = gymnasium.make_vec(task, count, vectorization_mode="sync")
        space: Any = self._environments.single_action_space
        shape = (ACTION_SETS, count, *space.shape)
        self._actions = random_actions(space.low, space.high, shape)
        self._environments.reset(seed=0)

    def step(self, steps: int) -> int:
        times = -(-steps // self._count)
        for index in range(times):
            self._environments.step(self._actions[index % ACTION_SETS])
        return times * self._count


def random_actions(low: Any, high: Any, shape: tuple[int, ...]) -> Any:
    import numpy as np

    return np.random.default_rng(0).uniform(low, high, shape).astype(low.dtype)


def main() -> None:
    import gymnasium

    warnings.simplefilter("ignore", DeprecationWarning)  # there is a version 5
    turns = Turns()
    turns.say({"version": gymnasium.__version__})
    kept: dict[tuple[str, int], Single | Several] = {}
    while True:
        task, count, steps = turns.order()
        key = (task, int(count))
        if key not in kept:
            kept[key] = Single(task) if key[1] == 1 else Several(*key)
        began_s = time.process_time()
        done = kept[key].step(int(steps))
        turns.say({"steps": done, "cpu_s": time.process_time() - began_s})


if __name__ == "__main__":
    main()
