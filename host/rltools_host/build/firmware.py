"""Builds the firmware of a board, with CMake or PlatformIO."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from rltools_host.boards.description import Board
from rltools_host.build.cmake import TRAIN, build_targets, firmware_target, require_program
from rltools_host.build.memory import memory_lines, memory_usage
from rltools_host.build.platformio import build_with_platformio
from rltools_host.build.subjects import install_requirements, require_subject, subject_of
from rltools_host.project import PROJECT


def program_path(board: Board, name: str, program: str = TRAIN) -> Path:
    """Where CMake builds it: build/<board>/<program>/<experiment or contract>."""
    directory = PROJECT.board_build(board.name) / program
    return directory / f"{name}{board.program_suffix}"


def build_firmware(board: Board, name: str, program: str = TRAIN) -> Path:
    """The program for this experiment or contract on this board, built where not up to date."""
    require_program(board, program)
    require_subject(subject_of(program), name, board)
    install_requirements(name, subject_of(program))
    return BUILDERS[board.toolchain.builder](board, name, program)


def build_with_cmake(board: Board, name: str, program: str) -> Path:
    file = program_path(board, name, program)
    before = modification_time(file)
    build_targets(board, [firmware_target(name, program)])
    if modification_time(file) != before:
        for line in memory_lines(memory_usage(board, file)):
            print(line, file=sys.stderr)
    return file


def modification_time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


# For each name of toolchain.description.BUILDERS.
BUILDERS: dict[str, Callable[[Board, str, str], Path]] = {
    "cmake": build_with_cmake,
    "platformio": build_with_platformio,
}
