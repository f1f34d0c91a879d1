"""A board behind a lossy link, with a clock of its own (lossy_world.h)."""

from __future__ import annotations

import struct
import subprocess
from types import TracebackType

from rltools_host.boards.transport import Link
from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.errors import LinkLostError

PROGRAM = "lossy_board"
UNPLUGGED, SECOND_IS_ACTIVE = 1, 2
LATER_US = 1000  # that passes where a host asks what there is at once


class LossyBoard:
    """The program, which is one world after another."""

    def __init__(self) -> None:
        path = cmake.build_targets(load_board("host"), [PROGRAM]) / PROGRAM
        self._process = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.now_us = 0
        self.flags = 0
        self.resets = 0
        self.violation = ""

    def start(self, seed: int) -> None:
        self._ask(b"S", struct.pack("<Q", seed))

    def write(self, data: bytes) -> None:
        self._ask(b"W", struct.pack("<I", len(data)) + data)

    def read(self, timeout_us: int) -> bytes:
        self._ask(b"R", struct.pack("<Q", timeout_us))
        return self._bytes()

    def calm(self) -> None:
        self._ask(b"C")

    def image(self, number: int) -> bytes:
        self._send(b"I" + bytes([number]))
        return self._bytes()

    @property
    def is_second_active(self) -> bool:
        return bool(self.flags & SECOND_IS_ACTIVE)

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _take(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        assert len(data) == count, "the board's program has ended"
        return data

    def _bytes(self) -> bytes:
        (count,) = struct.unpack("<I", self._take(4))
        return self._take(count)

    def _ask(self, letter: bytes, arguments: bytes = b"") -> None:
        self._send(letter + arguments)
        self.now_us, self.flags, self.resets = struct.unpack("<QBI", self._take(13))
        self.violation = self._bytes().decode()

    def __enter__(self) -> LossyBoard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


class LossyLink(Link):
    """The host's end of it."""

    description = "the lossy link"

    def __init__(self, board: LossyBoard) -> None:
        self._board = board

    def clock(self) -> float:
        return self._board.now_us / 1e6

    def read(self, timeout_s: float) -> bytes:
        data = self._board.read(max(int(timeout_s * 1e6), 0) or LATER_US)
        self._check()
        return data

    def write(self, data: bytes) -> None:
        self._board.write(data)
        self._check()

    def close(self) -> None:
        pass

    def _check(self) -> None:
        if self._board.flags & UNPLUGGED:
            raise LinkLostError("lost the board on the lossy link: unplugged")
