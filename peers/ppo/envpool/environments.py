"""EnvPool's environments, as a contender of `rlt bench environments`: environments.py THREADS."""

import sys
import time
from typing import Any

import ppo_run
from turns import Turns

ACTION_SETS = 64


def main() -> None:
    import envpool
    import numpy as np

    threads = int(sys.argv[1])
    turns = Turns()
    turns.say({"version": envpool.__version__, "simulator": ppo_run.simulator()})
    kept: dict[tuple[str, int], Any] = {}
    while True:
        task, count, steps = turns.order()
        key = (task, int(count))
        if key not in kept:
            environments = envpool.make_gymnasium(
                task, num_envs=key[1], num_threads=min(threads, key[1]), seed=0
            )
            space = environments.action_space
            shape = (ACTION_SETS, key[1], *space.shape)
            actions = np.random.default_rng(0).uniform(space.low, space.high, shape)
            environments.reset()
            kept[key] = environments, actions.astype(space.low.dtype)
        environments, actions = kept[key]
        times = -(-int(steps) // key[1])
        began_s = time.process_time()
        for index in range(times):
            environments.step(actions[index % ACTION_SETS])
        turns.say({"steps": times * key[1], "cpu_s": time.process_time() - began_s})


if __name__ == "__main__":
    main()
