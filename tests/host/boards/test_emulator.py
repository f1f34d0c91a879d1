"""What is said of a board that nothing emulates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rltools_host.boards import emulator
from rltools_host.boards.description import load_board
from rltools_host.errors import UsageError

HOST, EMULATED = load_board("host"), load_board("qemu-cortex-m7")
SERIAL = replace(EMULATED, name="toy", emulator=None, link=replace(EMULATED.link, kind="serial"))


def test_what_is_to_be_done_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    boards = [HOST, EMULATED, SERIAL, replace(EMULATED, name="other")]
    monkeypatch.setattr(emulator, "list_boards", lambda: boards)
    assert emulator.not_emulated(HOST) == (
        "host is not emulated: train there directly with --board host"
    )
    sentence = "toy is not emulated: take an emulated one: qemu-cortex-m7, other"
    assert emulator.not_emulated(SERIAL) == sentence
    with pytest.raises(UsageError) as refused:
        emulator.Emulator(SERIAL, Path("program"), 1.0)
    assert str(refused.value) == sentence
