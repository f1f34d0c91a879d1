"""Runs on an environment of the user's own program: what is asked for, and evaluating there what
was learnt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.imports import maker_of
from rltools_host.gymnasium_tasks.player import flat_maker
from rltools_host.gymnasium_tasks.task import PREFIX, MakeEnvironment, TaskRequest, task_of_run
from rltools_host.policies.evaluation import GYMNASIUM, Evaluation, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder


def task_request(make_env: MakeEnvironment | str, **asked: Any) -> TaskRequest:
    """What TrainingRequest has for an environment: `asked` are fields of TaskRequest.

    A function is called in this process, and its environments are stepped in a thread of it; an id
    of Gymnasium's, such as "HalfCheetah-v5", is played by a process of its own.
    """
    if isinstance(make_env, str):
        return TaskRequest(f"{PREFIX}{make_env.removeprefix(PREFIX)}", **asked)
    return TaskRequest(named(maker_for(make_env)), make_env, **asked)


def evaluate_gymnasium(
    make_env: MakeEnvironment | str, run: str | Path, episodes: int = 100, seed: int = 0
) -> Evaluation:
    """Deterministic episodes of a run's policy in what `make_env` makes, or in Gymnasium's
    environment of this id."""
    make_env = maker_for(make_env)
    folder = RunFolder.open(str(run))
    task = task_of_run(folder.metadata)
    if task is None:
        raise UsageError(f"run {folder.name} was trained on no environment of Python's")
    image = read_run_policy(folder)
    image.verify()
    make = flat_maker(task, make_env)
    outcome = evaluate_policy(image, str(folder.path), episodes, seed, GYMNASIUM, make)
    return outcome.of_task(task)


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
