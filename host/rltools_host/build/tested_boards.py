"""What `rlt test --all` builds for each board: all that it is tested with."""

from __future__ import annotations

from rltools_host.boards.description import Board, list_boards, load_board
from rltools_host.build import cmake, experiments, firmware, memory, subjects
from rltools_host.errors import BuildError


def tested_experiments(board: Board) -> list[str]:
    """Those that its tests train: all that fit, unless its description names fewer."""
    if cmake.TRAIN not in cmake.programs_of(board):
        return []
    fitting = experiments.list_experiments(board)
    if board.tested_with is None:
        return fitting
    if unknown := [name for name in board.tested_with if name not in fitting]:
        raise BuildError(
            f'boards/{board.name}.json: tested_with: no experiment "{unknown[0]}" fits it'
        )
    return list(board.tested_with)


def tested_firmware(board: Board) -> list[tuple[str, str]]:
    """Programs, and the experiment or contract of each."""
    tested = [(cmake.TRAIN, name) for name in tested_experiments(board)]
    for program in cmake.programs_of(board):
        if program != cmake.TRAIN:
            tested += [
                (program, name) for name in subjects.names(subjects.subject_of(program), board)
            ]
    return tested


def build_all() -> None:
    """For every board that CMake builds for, what the board is tested with."""
    host = load_board("host")
    cmake.build_targets(host, ["all"], announcement="Building host")
    for board in list_boards():
        if not cmake.builds(board) or board.name == host.name:
            continue
        if missing := cmake.missing_optional_tools(board):
            print(f"{board.name} is not built: {', '.join(missing)} is not installed")
            continue
        tested = tested_firmware(board)
        if not tested:
            continue
        targets = [cmake.firmware_target(name, program) for program, name in tested]
        cmake.build_targets(board, targets, announcement=f"Building {board.name}")
        for program, name in tested:
            file = firmware.program_path(board, name, program)
            print(f"{program} {name} on {board.name}")
            print("\n".join(memory.memory_lines(memory.memory_usage(board, file))))
