"""EnvPool's environments, as a contender of `rlt bench environments`: environments.py THREADS."""

import sys
from collections.abc import Callable

import envpool
import ppo_run
from turns import step_in_turns, stepping


def make(task: str, count: int) -> Callable[[int], int]:
    threads = min(int(sys.argv[1]), count)
    environments = envpool.make_gymnasium(task, num_envs=count, num_threads=threads, seed=0)
    environments.reset()
    return stepping(environments, environments.action_space, count)


if __name__ == "__main__":
    step_in_turns({"version": envpool.__version__, "simulator": ppo_run.simulator()}, make)
