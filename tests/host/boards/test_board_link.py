"""The link that a board gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltools_host.boards import board_link
from rltools_host.boards.board_link import open_board_link
from rltools_host.build.boards import load_board
from rltools_host.errors import PortError

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
