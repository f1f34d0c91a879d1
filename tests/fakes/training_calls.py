"""Trains as `rlt train` does, with the request's fields as arguments."""

from __future__ import annotations

from collections.abc import Sequence
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
