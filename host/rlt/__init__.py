"""Reinforcement learning that runs on the microcontroller, from Python::

    import rlt

    run = rlt.train("pendulum-td3", board="host", seed=0)
    print(rlt.evaluate(run.policy, "Pendulum-v1").mean())

rlt.train("gym:HalfCheetah-v5") and rlt.train(make_env) train on a task with Gymnasium's interface.
The compiled environments come from rlt.make(name, num_envs), or gymnasium.make("rlt/" + name).
Errors are rlt.RltError with one sentence; their subclasses are in rltools_host.errors.
In a notebook, `%load_ext rlt` brings `%rlt`, the command line, and `%%cpp`, a C++ program.
"""

from rlt.api import (
    Group,
    Run,
    list_environments,
    list_experiments,
    make,
    train,
)
from rlt.notebook import load_ipython_extension as load_ipython_extension
from rltools_host import __version__
from rltools_host.build.description import Channel
from rltools_host.environments.compiled import CompiledEnv, CompiledVectorEnv, register
from rltools_host.errors import Interrupted, RltError
from rltools_host.policies.acting import Policy
from rltools_host.training.from_python import evaluate

__all__ = [
    "Channel",
    "CompiledEnv",
    "CompiledVectorEnv",
    "Group",
    "Interrupted",
    "Policy",
    "RltError",
    "Run",
    "__version__",
    "evaluate",
    "list_environments",
    "list_experiments",
    "make",
    "train",
]

register()
