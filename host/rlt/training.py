"""Training from Python: what `rlt train` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from rlt.policy import Policy
from rltools_host.build import experiments
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.run import train as train_quietly
from rltools_host.training.view import Screen


@dataclass(frozen=True)
class Run:
    """A finished training run.

    path: its folder. summary: what `rlt train --json` prints: step, return_mean, return_std,
    state_sha256, train_s and so on.
    """

    path: Path
    summary: Mapping[str, Any]

    @cached_property
    def policy(self) -> Policy:
        """Its policy, verified on this machine."""
        return Policy.load(self.path)


def list_experiments() -> list[str]:
    """Names that train() takes."""
    return experiments.list_experiments()


def train(
    experiment: str | None = None,
    *,
    board: str | None = None,
    seed: int | None = None,
    steps: int | None = None,
    settings: Mapping[str, float | int | str] | None = None,
    out: str | PathLike[str] | None = None,
    resume: str | PathLike[str] | Run | None = None,
    port: str | None = None,
    threads: int | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
) -> Run:
    """Trains, and returns when the run is finished; what is None is as in `rlt train`.

    experiment: one of list_experiments(), such as "pendulum-td3".
    board: where to train, "host" for this machine; None: an emulated microcontroller.
    steps: of the environments in all, also with `resume`.
    settings: other hyperparameters by their names; `rlt train --set`.
    out: the run's folder; None: a new one under runs/.
    resume: a run that was paused, to go on with.
    port: where the board is, such as /dev/ttyACM0. threads: with board="host-threads".
    quiet: shows nothing while it trains.

    RltError with one sentence says what is wrong. Ctrl-C pauses the board, saves a checkpoint and
    raises Interrupted, whose details["run"] is what `resume` takes.
    """
    request = TrainingRequest(
        experiment=experiment,
        board=board,
        seed=seed,
        steps=steps,
        settings=tuple(f"{name}={value}" for name, value in (settings or {}).items()),
        out=None if out is None else Path(out),
        resume=None if resume is None else str(getattr(resume, "path", resume)),
        port=port,
        threads=threads,
    )
    if quiet:
        document = train_quietly(request, Screen, tensorboard)
    else:
        from rltools_host.commands import train as command

        document = command.run(request, tensorboard)
    return Run(Path(document["run"]), document)
