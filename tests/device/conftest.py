"""Fixtures: the firmware of the boards under test, and sessions with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from boards_under_test import (
    EXPERIMENT,
    Connect,
    Programs,
    compile_for,
    open_board,
)
from rltools_host.boards.session import BoardSession
from rltools_host.build import cmake, experiments
from rltools_host.build.boards import load_board
from rltools_host.build.description import ExperimentDescription
from rltools_host.tree import TREE


@pytest.fixture(scope="session")
def dialect() -> ModuleType:
    return cmake.load_dialect()


@pytest.fixture(scope="session")
def description() -> ExperimentDescription:
    return experiments.describe(EXPERIMENT)


@pytest.fixture(scope="session")
def programs() -> Programs:
    return Programs()


@pytest.fixture
def connect(programs: Programs, dialect: ModuleType) -> Iterator[Connect]:
    """Starts a board of this name and connects to it; the boards end with the test."""
    sessions: list[BoardSession] = []

    def start(name: str) -> BoardSession:
        session, _ = BoardSession.connect(open_board(name, programs[name]), dialect)
        sessions.append(session)
        return session

    yield start
    for session in sessions:
        session.close()


@pytest.fixture(scope="session")
def reference_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host's firmware with the reference kernels in place of the vectorized ones."""
    board = replace(load_board("host"), device="Generic", device_header="rltools/devices/generic.h")
    program = json.loads(TREE.build_file.read_text())["programs"]["train"]
    sources = [*program["sources"], *board.sources]
    output = tmp_path_factory.mktemp("reference") / EXPERIMENT
    return compile_for(board, sources, output)
