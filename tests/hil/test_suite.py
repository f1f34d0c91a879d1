"""The tests for connected boards are tests: with a board that is a process, and without any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rltools_host.boards.board_link import STORAGE_VARIABLE
from rltools_host.build import firmware
from rltools_host.build.boards import load_board
from rltools_host.tree import TREE
from tcp_board import TcpBoard

SUITE = TREE.root / "tests/hil/test_connected_board.py"


def run_suite(*options: str, **environment: str) -> str:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RLT_HIL")}
    command = [sys.executable, "-m", "pytest", str(SUITE), "-q", "-rs", *options]
    result = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        timeout=250,
        cwd=TREE.root,
        env={**ours, **environment},
    )
    assert result.returncode == 0, result.stdout
    return result.stdout.splitlines()[-1]


@pytest.mark.all
def test_a_board_that_goes_on_passes_all_of_them(tmp_path: Path) -> None:
    program = firmware.build_firmware(load_board("host"), "pendulum", "infer")
    storage = {STORAGE_VARIABLE: str(tmp_path / "storage.bin")}
    with TcpBoard(program, storage) as board:
        last = run_suite("--hil", RLT_HIL_BOARD="host", RLT_HIL_PORT=board.port)
    assert " 5 passed" in f" {last}", last


def test_without_a_board_they_are_skipped() -> None:
    assert run_suite("--hil").startswith("5 skipped")
