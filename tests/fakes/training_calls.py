"""Trains as `rlt train` does, with the requests' fields as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rltools_host.commands import train
from rltools_host.environments.task import MakeEnvironment, TaskRequest
from rltools_host.runs.task import PREFIX
from rltools_host.training.from_python import with_task
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import Screen, TrainingView
from rltools_host.training.run import train as train_quietly


def train_here(
    experiment: str | None = None,
    board: str | None = None,
    *,
    settings: Sequence[str] = (),
    tensorboard: bool = True,
    json_output: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    request = TrainingRequest(
        experiment, board, settings=tuple(settings), tensorboard=tensorboard, **fields
    )
    return {**train.run_one(request, json_output)}


def train_task(
    make_env: MakeEnvironment | str,
    *,
    hyperparameters: Mapping[str, float] | None = None,
    make_screen: Callable[[TrainingView], Screen] = Screen,
    tensorboard: bool = True,
    **asked: Any,
) -> dict[str, Any]:
    """On a Gymnasium task: `asked` are fields of TaskRequest and of TrainingRequest."""
    of_task = {entry.name for entry in fields(TaskRequest)} & set(asked)
    options = {name: asked.pop(name) for name in of_task}
    request = TrainingRequest(
        settings=tuple(f"{key}={value}" for key, value in (hyperparameters or {}).items()),
        tensorboard=tensorboard,
        **asked,
    )
    if isinstance(make_env, str):
        make_env = PREFIX + make_env.removeprefix(PREFIX)
    return {**train_quietly(with_task(request, make_env, **options), make_screen)}


def two_policy_runs(folder: Path) -> list[Path]:
    """Two runs with a policy each, of 3-64-64-1, trained on this machine for 120 steps."""
    runs = [folder / f"run{seed}" for seed in (1, 2)]
    for seed, run in enumerate(runs):
        train_here("pendulum-td3", "host", seed=seed, steps=120, out=run, tensorboard=False)
    return runs
