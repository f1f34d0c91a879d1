"""The link that a board gets, and an emulated board's, which ends with its emulator."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltools_host.boards import board_link
from rltools_host.boards.board_link import EmulatedLink, open_board_link
from rltools_host.build.boards import load_board
from rltools_host.errors import LinkLostError, PortError

HOST, EMULATED, REAL = (load_board(name) for name in ("host", "qemu-cortex-m7", "teensy41"))
PROGRAM = Path("folder/program")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return the links that would be opened."""
    found: list[tuple[Any, ...]] = []
    for name in ("open_link", "ProcessLink", "EmulatedLink"):
        monkeypatch.setattr(
            board_link, name, lambda *given, name=name: found.append((name, *given))
        )
    monkeypatch.setattr(board_link, "Emulator", lambda *given: ("Emulator", *given))
    return found


@pytest.mark.parametrize(
    ("ports", "sentence"),
    [
        ([], "^no teensy41 is connected: plug it in$"),
        (
            ["/dev/a", "/dev/b"],
            r"teensy41 are connected \(/dev/a, /dev/b\): choose one with",
        ),
    ],
)
def test_the_one_that_is_connected_is_taken(
    ports: list[str], sentence: str, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_link, "find_connected", lambda _: ports)
    with pytest.raises(PortError, match=sentence):
        open_board_link(REAL, None, None, "plug it in")
    ports[:] = ["/dev/a"]
    open_board_link(REAL, None, PROGRAM, "")  # which is not started
    assert opened == [("open_link", "/dev/a", REAL.link.baud or 115_200)]


class FakeEmulator:
    def __init__(self, port: str, ended: bool) -> None:
        self.port, self.is_ended, self.closed, self.waited_s = port, ended, 0, 0.0

    def has_ended(self, within_s: float) -> bool:
        self.waited_s = within_s
        return self.is_ended

    def ending(self) -> str:
        return "it ended"

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def pseudo_terminal() -> Iterator[str]:
    ends = os.openpty()
    yield os.ttyname(ends[1])
    for end in ends:
        os.close(end)


def test_an_emulator_ends_with_its_link(pseudo_terminal: str) -> None:
    emulator: Any = FakeEmulator(pseudo_terminal, False)
    link = EmulatedLink(emulator, "toy")
    assert link.description == f"toy (emulated, {pseudo_terminal})"
    assert str(link._lost(None)) == f"lost {link.description}: it ended"
    assert emulator.closed == 0
    link.close()
    assert emulator.closed == 1


@pytest.mark.parametrize(("ended", "error"), [(True, LinkLostError), (False, PortError)])
def test_a_port_that_is_gone_is_the_emulator_s_end(
    ended: bool, error: type[Exception], tmp_path: Path
) -> None:
    emulator: Any = FakeEmulator(f"{tmp_path}/none", ended)
    with pytest.raises(error) as raised:
        EmulatedLink(emulator, "toy")
    assert (str(raised.value) == f"lost toy (emulated, {tmp_path}/none): it ended") is ended
    assert (emulator.closed, emulator.waited_s) == (1, 5.0)


def test_an_interrupt_ends_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(board_link.SerialLink, "__init__", interrupted)
    emulator: Any = FakeEmulator("/dev/x", False)
    with pytest.raises(KeyboardInterrupt):
        EmulatedLink(emulator, "toy")
    assert emulator.closed == 1
