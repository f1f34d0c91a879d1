"""Trains as `rlt train` does, with the request's fields as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rltools_host.commands import train
from rltools_host.training.plan import TrainingRequest


def train_here(
    experiment: str | None = None,
    board: str | None = None,
    *,
    settings: Sequence[str] = (),
    tensorboard: bool = True,
    json_output: bool = False,
    **fields: Any,
) -> dict[str, Any]:
    request = TrainingRequest(experiment, board, settings=tuple(settings), **fields)
    return train.run(request, tensorboard, json_output)


def two_policy_runs(folder: Path) -> list[Path]:
    """Two runs with a policy each, of 3-64-64-1, trained on this machine for 120 steps."""
    runs = [folder / f"run{seed}" for seed in (1, 2)]
    for seed, run in enumerate(runs):
        train_here("pendulum-td3", "host", seed=seed, steps=120, out=run, tensorboard=False)
    return runs
