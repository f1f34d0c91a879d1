"""Where things lie in the repository; every path is absolute and free of symbolic links."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

BOARDS_DIRECTORY = REPOSITORY / "boards"
BUILD_DIRECTORY = REPOSITORY / "build"
EXPERIMENTS_DIRECTORY = REPOSITORY / "experiments"
STUDIES_DIRECTORY = EXPERIMENTS_DIRECTORY / "studies"
GATES_DIRECTORY = EXPERIMENTS_DIRECTORY / "gates"
GENERATED_DIRECTORY = BUILD_DIRECTORY / "gymnasium_tasks"  # headers of Gymnasium's tasks
NAMED_TASKS_DIRECTORY = BUILD_DIRECTORY / "named_tasks"  # notes of what may be imported
FIRMWARE_BUILD_FILE = REPOSITORY / "firmware" / "build.json"
PROTOCOL_DIRECTORY = BUILD_DIRECTORY / "protocol"
PROTOCOL_GENERATOR = REPOSITORY / "lib" / "protocol" / "generate.py"
REQUIREMENTS_DIRECTORY = REPOSITORY / "host" / "requirements"
RUNS_DIRECTORY = REPOSITORY / "runs"
TESTS_DIRECTORY = REPOSITORY / "tests"
TOOLCHAINS_DIRECTORY = REPOSITORY / "toolchains"
VIRTUAL_ENVIRONMENT = REPOSITORY / ".venv"


def board_build_directory(board: str) -> Path:
    """Where CMake builds for this board: build/<board>."""
    return BUILD_DIRECTORY / board
