"""An emulator from its start to its end, with a program in QEMU's place; who emulates no board."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rltools_host.boards import board_link
from rltools_host.boards.board_link import Emulator
from rltools_host.build.boards import Board, load_board
from rltools_host.errors import PortError
from rltools_host.tree import command_line

HOST, EMULATED = load_board("host"), load_board("qemu-cortex-m7")


# Connects to the port that its arguments name, and stays when that is closed, as QEMU does.
CONNECT = """
port=$(printf "%s\\n" "$@" | sed -n "s/.*port=\\([0-9]*\\).*/\\1/p")
exec {python} -c "import socket, time
connection = socket.create_connection(('127.0.0.1', $port))
time.sleep(60)"
"""
CONNECT = CONNECT.format(python=sys.executable)
Program = Callable[..., Board]


@pytest.fixture
def emulated_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A board whose emulator is a shell script, which notes its arguments."""

    def board(script: str, *arguments: str, of: Board = EMULATED) -> Board:
        program = tmp_path / "emulator"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/arguments\n{script}')
        program.chmod(0o755)
        assert of.emulator
        arguments = arguments or ("-machine", "toy")
        found = replace(of.emulator, program=str(program), arguments=arguments)
        return replace(of, name="toy", emulator=found)

    monkeypatch.setattr(board_link.tools, "require", lambda *_: None)
    return board


def test_a_board_is_emulated_from_its_start_to_its_end(
    emulated_by: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    required: list[tuple[str, ...]] = []
    monkeypatch.setattr(board_link.tools, "require", lambda *names: required.append(names))
    board = emulated_by(CONNECT)
    with Emulator(board, Path("program.elf")) as started:
        assert required == [(str(tmp_path / "emulator"),)]
        assert started.connection is not None
        port = started.connection.getsockname()[1]
        assert (tmp_path / "arguments").read_text().split() == [
            *("-machine", "toy", "-kernel", "program.elf", "-chardev"),
            f"socket,id=s0,host=127.0.0.1,port={port},nodelay=on",
            *("-serial", "chardev:s0"),
        ]
        assert not started.has_ended(0.01)
        process = Path(f"/proc/{started.process_id}")
        assert process.exists()
    assert not process.exists()
    assert started.has_ended(0)
    assert started.ending() == "it was ended by SIGTERM"
    started.close()  # a second time does nothing
    assert started._timer.finished.is_set()


def test_what_a_board_keeps_is_in_its_file(
    emulated_by: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_link, "PATIENCE_S", 0.1)
    board = emulated_by(CONNECT, of=load_board("qemu-esp32c3"))
    flash = tmp_path / "flash"
    with Emulator(board, Path("program.elf"), storage=flash):
        words = (tmp_path / "arguments").read_text().split()
        assert words[2:6] == [
            *("-kernel", "program.elf"),
            *("-drive", f"if=pflash,unit=1,format=raw,file={flash}"),
        ]
        with pytest.raises(PortError, match="is in use by another board"):
            Emulator(board, Path("program.elf"), storage=flash)
    Emulator(board, Path("program.elf"), storage=flash).close()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo first; echo 'no such machine'; exit 1", "no such machine"),
        ("exit 3", "it ended with exit code 3"),
        ("kill -9 $$", "it was ended by SIGKILL"),
    ],
)
def test_an_emulator_that_does_not_start(script: str, reason: str, emulated_by: Program) -> None:
    with pytest.raises(PortError) as refused:
        Emulator(emulated_by(script), Path("program.elf"))
    see = f"see `{command_line('doctor')}`"
    assert str(refused.value) == f"the emulator of toy did not start: {reason}; {see}"
