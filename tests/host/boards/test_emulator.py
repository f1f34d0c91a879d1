"""An emulator from its start to its end, with a program in QEMU's place; who emulates no board."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rltools_host.boards import board_link
from rltools_host.boards.board_link import Emulator
from rltools_host.build.boards import Board, load_board
from rltools_host.errors import PortError

EMULATED = load_board("qemu-cortex-m7")
# Connects to the port that its arguments name, and stays when that is closed, as QEMU does.
CONNECT = """
port=$(printf "%s\\n" "$@" | sed -n "s/.*port=\\([0-9]*\\).*/\\1/p")
exec {python} -c "import socket, time
connection = socket.create_connection(('127.0.0.1', $port))
time.sleep(60)"
"""
CONNECT = CONNECT.format(python=shlex.quote(sys.executable))
Program = Callable[..., Board]


@pytest.fixture
def emulated_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A board whose emulator is a shell script."""

    def board(script: str) -> Board:
        program = tmp_path / "emulator"
        program.write_text(f"#!/bin/sh\n{script}")
        program.chmod(0o755)
        assert EMULATED.emulator
        found = replace(EMULATED.emulator, program=str(program))
        return replace(EMULATED, name="toy", emulator=found)

    monkeypatch.setattr(board_link.tools, "require", lambda *_: None)
    return board


def test_an_emulator_ends_with_its_link(emulated_by: Program) -> None:
    with Emulator(emulated_by(CONNECT), Path("program.elf")) as started:
        assert started.connection is not None
        assert not started.has_ended(0.01)
        process = Path(f"/proc/{started.process_id}")
        assert process.exists()
    assert not process.exists()
    assert started.has_ended(0)
    assert started.ending() == "it was ended by SIGTERM"
    started.close()  # a second time does nothing
    assert started._timer.finished.is_set()


def test_an_emulator_that_does_not_start_is_told_with_its_last_line(emulated_by: Program) -> None:
    board = emulated_by("echo first; echo 'no such machine'; exit 1")
    with pytest.raises(PortError, match="emulator of toy did not start: no such machine; see `"):
        Emulator(board, Path("program.elf"))
