"""Training on an environment of the user's own program, and evaluating there what was learnt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.flat import flat_maker
from rltools_host.gymnasium_tasks.opening import task_of_run
from rltools_host.gymnasium_tasks.task import (
    ALGORITHMS,
    DEFAULT_HIDDEN,
    PREFIX,
    MakeEnvironment,
    TaskRequest,
)
from rltools_host.policies.evaluation import GYMNASIUM, Evaluation, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.run import train
from rltools_host.training.view import Screen, TrainingView


def train_gymnasium(
    make_env: MakeEnvironment | str,
    *,
    algorithm: str = ALGORITHMS[0],
    hidden: Sequence[int] = DEFAULT_HIDDEN,
    environments: int | None = None,
    seed: int | None = None,
    steps: int | None = None,
    name: str | None = None,
    channels: Mapping[str, Any] | None = None,
    episode_steps: int | None = None,
    hyperparameters: Mapping[str, float] | None = None,
    sizes: Mapping[str, int] | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    threads: int | None = None,
    make_screen: Callable[[TrainingView], Screen] = Screen,
    tensorboard: bool = True,
) -> dict[str, Any]:
    """Trains on what `make_env` makes, an environment as Gymnasium defines them; returns the keys
    that `rlt train --json` prints, `run` among them.

    A function is called in this process, and its environments are stepped in a thread of it; an id
    of Gymnasium's, such as "HalfCheetah-v5", is played by a process of its own. `channels` has
    lists `observations` and `actions` of names, or of objects with `name`, `unit`, `minimum`,
    `maximum`, and `step_interval_us`. `sizes` may have `batch_size`, `replay_capacity` (of sac and
    td3) and `rollout_steps` (of ppo). Ctrl-C saves and raises Interrupted; `resume` goes on.
    """
    function = None if isinstance(make_env, str) else make_env
    if function is not None and not callable(function):
        raise UsageError("make_env must be a function that makes an environment, or an id")
    task = TaskRequest(
        source=f"{PREFIX}{str(make_env).removeprefix(PREFIX)}"
        if function is None
        else named(function),
        make_env=function,
        name=name,
        algorithm=algorithm,
        hidden=tuple(hidden),
        environments=environments,
        episode_steps=episode_steps,
        channels=channels or {},
        sizes=sizes or {},
    )
    settings = [f"{key}={value}" for key, value in (hyperparameters or {}).items()]
    request = TrainingRequest(
        seed=seed,
        steps=steps,
        settings=tuple(settings),
        out=None if out is None else Path(out),
        resume=None if resume is None else str(resume),
        threads=threads,
        task=task,
    )
    return train(request, make_screen, tensorboard)


def evaluate_gymnasium(
    make_env: MakeEnvironment, run: str | Path, episodes: int = 100, seed: int = 0
) -> Evaluation:
    """Deterministic episodes of a run's policy in what `make_env` makes."""
    folder = RunFolder.open(str(run))
    task = task_of_run(folder.metadata)
    if task is None:
        raise UsageError(f"run {folder.name} was trained on no environment of Python's")
    image = read_run_policy(folder)
    image.verify()
    make = flat_maker(task, make_env)
    return evaluate_policy(image, str(folder.path), episodes, seed, GYMNASIUM, make)


def named(make_env: MakeEnvironment) -> str:
    """What the function is called; a lambda's task has a name of its own."""
    name = getattr(make_env, "__qualname__", type(make_env).__name__)
    return "task" if "lambda" in name else f"{getattr(make_env, '__module__', '')}:{name}"
