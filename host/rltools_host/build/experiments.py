"""Experiments: which there are, and what describe-<experiment> says of one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.boards.description import Board, list_boards
from rltools_host.build import cmake, subjects
from rltools_host.errors import BuildError, UsageError, unknown_name

HOST_BOARD = "host"


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
class Metric:
    """What the algorithm reports of its learning, in the place of a progress message's metrics."""

    name: str
    description: str


@dataclass(frozen=True)
class ExperimentDescription:
    """What describe-<experiment> prints; `document` is all of it, also networks and sizes.

    `bytes_of` has "state" (the checkpoint's payload), "learner", "replay" and "scratch".
    """

    name: str
    algorithm: str
    fingerprint: int
    environment: Mapping[str, Any]
    hyperparameters: tuple[Hyperparameter, ...]
    tensors: tuple[StateTensor, ...]
    metrics: tuple[Metric, ...]
    environments: int  # that are stepped at once
    bytes_of: Mapping[str, int]
    document: Mapping[str, Any]

    @property
    def learning(self) -> Mapping[str, Any]:
        """What the fingerprint is computed from, entry by entry."""
        learning = self.document.get("learning")
        return learning if isinstance(learning, Mapping) else {}

    @property
    def contract(self) -> str | None:
        """Of the boards on which its policies act; None where its environment has channels of its
        own."""
        name = self.environment.get("contract")
        return None if name is None else str(name)

    def hyperparameter(self, name: str) -> Hyperparameter:
        for hyperparameter in self.hyperparameters:
            if hyperparameter.name == name:
                return hyperparameter
        names = [hyperparameter.name for hyperparameter in self.hyperparameters]
        raise unknown_name("hyperparameter", name, names)


def list_experiments(board: Board | None = None) -> list[str]:
    """Names of all experiments, or of those that fit a board."""
    return subjects.names(subjects.EXPERIMENT, board)


def require_experiment(name: str, board: Board | None = None) -> None:
    """That there is this experiment, and that it fits the board."""
    subjects.require_subject(subjects.EXPERIMENT, name, board)


def native_board(experiment: str) -> Board:
    """The board of this machine that describes and simulates it: host, or else one that fits."""
    require_experiment(experiment)
    native = [board for board in list_boards() if board.toolchain.native]
    for board in sorted(native, key=lambda board: board.name != HOST_BOARD):
        if not subjects.lacking(experiment, board):
            return board
    raise UsageError(
        f"{experiment} is for no board of this machine, and is described on one: "
        f"boards of this machine are {', '.join(board.name for board in native)}"
    )


def evaluation_options(experiment: str, environment: str) -> tuple[str, ...]:
    """Of `rlt evaluate`, which say most about a policy: the experiment's own gate, or Gymnasium
    where that has the environment; nothing for the core's simulator."""
    if gate := subjects.gate(experiment):
        return ("--gate", gate)
    return ("--in", "gymnasium") if is_of_gymnasium(environment) else ()


def is_of_gymnasium(environment: str) -> bool:
    """Whether Gymnasium itself has an environment of this name, by its list of them, which is read
    in a hundredth of the time in which it is imported."""
    found = importlib.util.find_spec("gymnasium")
    if found is None or found.origin is None:
        return False
    listed = Path(found.origin).parent / "envs" / "__init__.py"
    try:
        return f'id="{environment}"' in listed.read_text(encoding="utf-8")
    except OSError:
        return False


def describe(experiment: str, board: Board | None = None) -> ExperimentDescription:
    """The experiment's description, from the program describe-<experiment>.

    Where it is to be trained on `board` and that one is built in the same tree, the firmware is
    built beside it: both at once.
    """
    require_experiment(experiment, board)
    host = native_board(experiment)
    subjects.install_requirements(experiment)
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
        metrics=tuple(Metric(**entry) for entry in document["metrics"]),
        environments=int(document["environments"]),
        bytes_of=document["bytes"],
        document=document,
    )
