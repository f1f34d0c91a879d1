"""Experiments: which there are, and what describe-<experiment> says of one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host import paths
from rltools_host.boards.description import Board, load_board
from rltools_host.build import cmake
from rltools_host.errors import BuildError, unknown_name


@dataclass(frozen=True)
class Hyperparameter:
    """A scalar that can be set without a rebuild; type is "F32" or "U32"."""

    name: str
    type: str
    default: float
    minimum: float
    maximum: float
    unit: str
    description: str


@dataclass(frozen=True)
class StateTensor:
    """An array of the training state; dtype as in safetensors, offset in the payload."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class ExperimentDescription:
    """What describe-<experiment> prints; `document` is all of it, also the networks.

    `sizes` has bytes of "state" (the checkpoint's payload), "learner", "replay" and "scratch".
    """

    name: str
    algorithm: str
    fingerprint: int
    environment: Mapping[str, Any]
    hyperparameters: tuple[Hyperparameter, ...]
    tensors: tuple[StateTensor, ...]
    sizes: Mapping[str, int]
    document: Mapping[str, Any]

    def hyperparameter(self, name: str) -> Hyperparameter:
        for hyperparameter in self.hyperparameters:
            if hyperparameter.name == name:
                return hyperparameter
        names = [hyperparameter.name for hyperparameter in self.hyperparameters]
        raise unknown_name("hyperparameter", name, names)


def list_experiments(directory: Path = paths.EXPERIMENTS_DIRECTORY) -> list[str]:
    """Names of all experiments: experiments/pendulum_td3.h is pendulum-td3."""
    return sorted(path.stem.replace("_", "-") for path in directory.glob("*.h"))


def require_experiment(name: str) -> None:
    if name not in list_experiments():
        raise unknown_name("experiment", name, list_experiments())


def describe(experiment: str, board: Board | None = None) -> ExperimentDescription:
    """The experiment's description, from the program describe-<experiment>.

    Where it is to be trained on `board` and that one is built in the same tree, the firmware is
    built beside it: both at once.
    """
    require_experiment(experiment)
    host = load_board("host")
    target = f"describe-{experiment}"
    beside = (
        [cmake.firmware_target(experiment)] if board is not None and board.name == host.name else []
    )
    program = cmake.build_targets(host, [target, *beside]) / target
    result = subprocess.run([program], capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise BuildError(f"{program} ended with code {result.returncode}: {result.stderr.strip()}")
    try:
        return parse_description(json.loads(result.stdout))
    except (KeyError, TypeError, ValueError) as error:
        raise BuildError(f"{program} printed no experiment description: {error!r}") from None


def parse_description(document: Mapping[str, Any]) -> ExperimentDescription:
    return ExperimentDescription(
        name=document["name"],
        algorithm=document["algorithm"],
        fingerprint=int(document["fingerprint"]),
        environment=document["environment"],
        hyperparameters=tuple(Hyperparameter(**entry) for entry in document["hyperparameters"]),
        tensors=tuple(
            StateTensor(entry["name"], entry["dtype"], tuple(entry["shape"]), int(entry["offset"]))
            for entry in document["state"]
        ),
        sizes=document["bytes"],
        document=document,
    )
