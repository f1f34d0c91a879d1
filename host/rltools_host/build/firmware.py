"""Builds the firmware of a board, with CMake or PlatformIO."""

from __future__ import annotations

import sys
from pathlib import Path

from rltools_host import paths
from rltools_host.boards.description import Board
from rltools_host.build.cmake import TRAIN, build_targets, firmware_target, require_program
from rltools_host.build.experiments import require_experiment
from rltools_host.build.memory import memory_lines, memory_usage
from rltools_host.build.platformio import build_with_platformio


def program_path(board: Board, experiment: str, program: str = TRAIN) -> Path:
    """Where CMake builds it: build/<board>/<program>/<experiment>."""
    directory = paths.board_build_directory(board.name) / program
    return directory / f"{experiment}{board.program_suffix}"


def build_firmware(board: Board, experiment: str) -> Path:
    """The firmware that trains this experiment on this board, built where it is not up to date."""
    require_program(board)
    require_experiment(experiment, board)
    return BUILDERS[board.toolchain.builder](board, experiment)


def build_with_cmake(board: Board, experiment: str) -> Path:
    program = program_path(board, experiment)
    before = modification_time(program)
    build_targets(board, [firmware_target(experiment)])
    if modification_time(program) != before:
        for line in memory_lines(memory_usage(board, program)):
            print(line, file=sys.stderr)
    return program


def modification_time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


# For each name of toolchain.description.BUILDERS.
BUILDERS = {"cmake": build_with_cmake, "platformio": build_with_platformio}
