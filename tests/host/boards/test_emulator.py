"""An emulator from its start to its end, with a program in QEMU's place; who emulates no board."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.boards import board_link
from rltools_host.boards.board_link import Emulator
from rltools_host.build.boards import Board, load_board
from rltools_host.build.toolchains import PTS
from rltools_host.errors import PortError, UsageError
from rltools_host.tree import command_line

HOST, EMULATED = load_board("host"), load_board("qemu-cortex-m7")
SERIAL = replace(EMULATED, name="toy", emulator=None, link=replace(EMULATED.link, kind="serial"))


def test_what_is_to_be_done_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    boards = [HOST, EMULATED, SERIAL, replace(EMULATED, name="other")]
    monkeypatch.setattr(board_link, "list_boards", lambda: boards)
    assert board_link.not_emulated(HOST) == (
        "host is not emulated: train there directly with --board host"
    )
    sentence = "toy is not emulated: take an emulated one: qemu-cortex-m7, other"
    assert board_link.not_emulated(SERIAL) == sentence
    with pytest.raises(UsageError) as refused:
        board_link.Emulator(SERIAL, Path("program"), 1.0)
    assert str(refused.value) == sentence


PORT = "echo 'char device redirected to /dev/pts/77 (label s0)'\n"
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
    board = emulated_by(f"{PORT}exec sleep 60")
    with Emulator(board, Path("program.elf")) as started:
        assert required == [(str(tmp_path / "emulator"), PTS.name)]
        assert started.port == "/dev/pts/77"
        assert (tmp_path / "arguments").read_text().split() == [
            *("-machine", "toy", "-kernel", "program.elf"),
            *("-chardev", "pty,id=s0", "-serial", "chardev:s0"),
        ]
        assert not started.has_ended(0.01)
        process = Path(f"/proc/{started.process_id}")
        assert process.exists()
    assert not process.exists()
    assert started.has_ended(0)
    assert started.ending() == "it was ended by SIGTERM"
    started.close()  # a second time does nothing
    assert started._timer.finished.is_set()


def test_the_program_is_where_the_board_s_arguments_have_it(
    emulated_by: Program, tmp_path: Path
) -> None:
    board = emulated_by(f"{PORT}exec sleep 60", "-drive", "file={elf},if=mtd")
    Emulator(board, Path("program.elf")).close()
    words = (tmp_path / "arguments").read_text().split()
    assert words[:4] == ["-drive", "file=program.elf,if=mtd", "-chardev", "pty,id=s0"]


def test_what_a_board_keeps_is_in_its_file(
    emulated_by: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_link, "PATIENCE_S", 0.1)
    board = emulated_by(f"{PORT}exec sleep 60", of=load_board("qemu-esp32c3"))
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


def test_an_emulator_ends_at_its_time_limit(
    emulated_by: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is busy now would reach a short one before the port is named."""

    class Timer:
        def __init__(self, seconds: float, act: Callable[[], None]) -> None:
            self.seconds, self.act, self.daemon, self.done = seconds, act, False, ""

        def start(self) -> None:
            assert self.daemon
            self.done += "started "

        def cancel(self) -> None:
            self.done += "cancelled "

    monkeypatch.setattr(board_link, "threading", SimpleNamespace(Timer=Timer))
    started = Emulator(emulated_by(f"{PORT}exec sleep 60"), Path("program.elf"), 45.5)
    timer: Any = started._timer
    assert (timer.seconds, timer.done) == (45.5, "started ")
    timer.act()
    started.wait()
    assert started.ending() == "its time limit of 45.5 s was reached (--time-limit)"
    assert started._process.returncode == -signal.SIGKILL
    started.close()
    assert timer.done == "started cancelled "


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


def test_an_emulator_without_a_port(emulated_by: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    board = emulated_by("exec sleep 60")
    monkeypatch.setattr(board_link, "START_LIMIT_S", 0.1)
    begin = time.monotonic()
    with pytest.raises(PortError, match=r"^the emulator of toy named no port within 0\.1 s: try"):
        Emulator(board, Path("program.elf"))
    assert 0.1 <= time.monotonic() - begin < 20


def test_what_an_emulator_wrote_last_is_said(emulated_by: Program) -> None:
    """Without the line that names the port."""
    for said, words in (("", ""), ("echo one; echo 'lost it'\n", ' and wrote "lost it"')):
        started = Emulator(emulated_by(f"{PORT}{said}sleep 0.05; exit 3"), Path("program.elf"))
        started.wait()
        assert started.ending() == f"it ended with exit code 3{words}"
        started.close()
        assert started.ending() == "it ended with exit code 3"  # nothing is left to be read
