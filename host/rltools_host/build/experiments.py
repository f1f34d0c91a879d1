"""Experiments: which there are, and what describe-<experiment> says of one."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

from rltools_host.boards.description import Board, list_boards
from rltools_host.build import cmake, description, subjects
from rltools_host.build.description import ExperimentDescription
from rltools_host.errors import BuildError, UsageError

HOST_BOARD = "host"


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
        return description.experiment(json.loads(result.stdout))
    except (KeyError, TypeError, ValueError) as error:
        raise BuildError(f"{program} printed no experiment description: {error!r}") from None
