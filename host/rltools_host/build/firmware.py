"""Builds the firmware of a board, with CMake or PlatformIO."""

from __future__ import annotations

import sys
from pathlib import Path

from rltools_host import paths
from rltools_host.boards.description import Board
from rltools_host.build.cmake import build_targets
from rltools_host.build.experiments import require_experiment
from rltools_host.build.memory import memory_lines, memory_usage


def build_firmware(board: Board, experiment: str) -> Path:
    """The firmware that trains this experiment on this board, built where it is not up to date."""
    require_experiment(experiment)
    if not board.built_by_cmake:
        from rltools_host.build import platformio

        return platformio.build_with_platformio(board, experiment)
    directory = paths.board_build_directory(board.name)
    program = directory / f"{experiment}{board.program_suffix}"
    before = modification_time(program)
    build_targets(board, [experiment])
    if modification_time(program) != before:
        for line in memory_lines(memory_usage(board, program)):
            print(line, file=sys.stderr)
    return program


def modification_time(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
