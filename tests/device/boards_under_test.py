"""Boards under test: emulated ones, and the same application as a process here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from programs import output_of
from rltools_host.boards.board_link import EmulatedLink, Emulator
from rltools_host.boards.messages import Event, Result, TrainingProgress
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import Link, ProcessLink
from rltools_host.build import cmake, firmware, tools
from rltools_host.build.boards import Board, emulated_boards, load_board
from rltools_host.build.description import ExperimentDescription
from rltools_host.tree import TREE

EXPERIMENT = "pendulum-td3"
EMULATED = "qemu-cortex-m7"  # what is not of one processor is tested on this one
LINK_SOURCES = "firmware/app/link/*.cpp"
LIMIT_S = 250.0  # of an emulator; below pytest's own limit for a test
# Updates begin after `learning_starts`; each costs an emulated board some 10 million instructions,
# and so do two episodes of an evaluation.
# The seed's bits, as those of a float, are a signaling NaN's.
SHORT_RUN = {
    "seed": 0x7FA00001,
    "steps": 60,
    "learning_starts": 20,
    "report_every": 10,
    "eval_freq": 1000,
    "n_eval_episodes": 1,
}
# With a firmware of their own; test_unicorn_board.py has the one without.
EMULATED_BOARDS = [board.name for board in emulated_boards() if board.has_own_firmware]
# One board of each processor and each folder of firmware; others have other memory only.
PROCESSOR_BOARDS = list(
    {
        (board.device, board.sources): board.name for board in map(load_board, EMULATED_BOARDS)
    }.values()
)
TRAINING_BOARDS = [
    name for name in EMULATED_BOARDS if cmake.TRAIN in cmake.programs_of(load_board(name))
]


def each(names: Iterable[str]) -> list[Any]:
    """As parameters of a test; other processors are for `rlt test --all`."""
    return [
        name if name in ("host", EMULATED) else pytest.param(name, marks=pytest.mark.all)
        for name in names
    ]


Connect = Callable[[str], BoardSession]


def open_board(name: str, program: Path) -> Link:
    board = load_board(name)
    if board.emulator is not None:
        return EmulatedLink(Emulator(board, program, LIMIT_S), name)
    return ProcessLink([str(program)], name)


class Programs(dict[str, Path]):
    """The firmware of each board by its name, built when it is first asked for."""

    def __init__(self, experiment: str = EXPERIMENT) -> None:
        super().__init__()
        self.experiment = experiment

    def __missing__(self, name: str) -> Path:
        skip_without_tools(load_board(name))
        self[name] = firmware.build_firmware(load_board(name), self.experiment)
        return self[name]


def matching(patterns: Iterable[str]) -> list[str]:
    """The files that match each of the patterns."""
    files = []
    for pattern in patterns:
        matches = sorted(str(path) for path in TREE.root.glob(pattern))
        assert matches, f"nothing matches {pattern}"
        files += matches
    return files


def computes_on_integers(board: Board) -> bool:
    """Whether it has no floating-point unit: the same takes twenty times the instructions."""
    return board.device in ("CortexM3", "Rv32imc")


def skip_without_tools(board: Board) -> None:
    """Ends a test whose board needs optional tools that are not installed."""
    if names := cmake.missing_optional_tools(board, to_run=True):
        pytest.skip(f"not installed (rlt doctor): {', '.join(names)}")


def support_of(board: Board) -> list[str]:
    """The board's sources without its main file, and the link's: for another program."""
    found = [str(Path(path).relative_to(TREE.root)) for path in matching(board.sources)]
    return [*(path for path in found if not path.endswith("/main.cpp")), LINK_SOURCES]


def compile_command(board: Board, defines: Iterable[str] = ()) -> list[str]:
    """As the board's firmware is compiled."""
    skip_without_tools(board)
    tools.require(*cmake.required_tools(board))
    common = json.loads(TREE.build_file.read_text())
    return [
        board.toolchain.compiler,
        *(*common["flags"], *board.flags, *board.link_flags),
        *(f"-I{TREE.root / directory}" for directory in common["include_directories"]),
        *board.toolchain.include_flags,
        *("-isystem", str(cmake.generate_protocol() / "c")),
        *(f"-D{definition}" for definition in (*board.definitions, *defines)),
        f'-DRLT_EXPERIMENT_HEADER="{EXPERIMENT.replace("-", "_")}.h"',
        "-DRLT_EXPERIMENT=PendulumTd3",
        f'-DRLT_PROGRAM_HEADER="{common["programs"]["train"]["header"]}"',
    ]


def compile_support(board: Board, folder: Path) -> list[Path]:
    """The objects of support_of(), for several programs."""
    objects = []
    for source in matching(support_of(board)):
        objects.append(folder / f"{Path(source).stem}.o")
        output_of(*compile_command(board), "-c", source, "-o", objects[-1])
    return objects


def compile_for(
    board: Board,
    sources: Iterable[str],
    output: Path,
    defines: Iterable[str] = (),
    objects: Iterable[Path] = (),
) -> Path:
    """Compiles sources, and links them with the objects."""
    command = [
        *compile_command(board, defines),
        *matching(sources),
        *map(str, objects),
        *(f"-l{library}" for library in board.toolchain.link_libraries),
        *("-o", str(output)),
    ]
    if board.linker_script:
        command.append(f"-T{TREE.root / board.linker_script}")
    output_of(*command)
    return output


def set_run(session: BoardSession, description: ExperimentDescription, **values: float) -> None:
    table = {entry.name: entry for entry in description.hyperparameters}
    session.parameters.set(table, values)


def run_to_rest(session: BoardSession) -> tuple[Result, list[Event]]:
    """What the board sent until training was over."""
    events = list(session.training.events())
    assert isinstance(events[-1], Result)
    return events[-1], events


def train(
    session: BoardSession, description: ExperimentDescription, **values: float
) -> tuple[Result, list[Event]]:
    """A whole run, with these hyperparameters."""
    set_run(session, description, **values)
    session.training.start()
    return run_to_rest(session)


def pause_after(session: BoardSession, step: int) -> Result:
    """Pauses once the board has reported this step."""
    for event in session.training.events():
        if isinstance(event, TrainingProgress) and event.step >= step:
            break
    session.training.pause()
    result, _ = run_to_rest(session)
    return result
