"""A link in memory: a test puts frames in and sees what the host writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from rltools_host.boards.connection import Address
from rltools_host.boards.framing import FrameDecoder, FrameEncoder, Message
from rltools_host.boards.transport import Link
from rltools_host.errors import LinkLostError

BOARD = Address(1, 191)


class ScriptedLink(Link):
    """Time passes only where the host waits for bytes that do not come."""

    description = "the script"

    def __init__(self, dialect: Any) -> None:
        self.now = 0.0
        self.lost = False
        self.written: list[Message] = []
        self.answer: Callable[[Message], None] = lambda _: None  # called with each message sent
        self._encoders: dict[Address, FrameEncoder] = {}
        self._dialect = dialect
        self._decoder = FrameDecoder(dialect)
        self._chunks: deque[bytes] = deque()

    def clock(self) -> float:
        return self.now

    def put(self, *messages: Any, sender: Address = BOARD) -> None:
        """One chunk with these messages, for the host to read."""
        encoder = self._encoders.setdefault(sender, FrameEncoder(self._dialect, *sender))
        self._chunks.append(b"".join(encoder.encode(message) for message in messages))

    @property
    def waiting(self) -> int:
        """Chunks that the host has not read."""
        return len(self._chunks)

    def read(self, timeout_s: float) -> bytes:
        if self._chunks:
            return self._chunks.popleft()
        if self.lost:
            raise LinkLostError("lost the script")
        self.now += max(timeout_s, 1e-6)
        return b""

    def write(self, data: bytes) -> None:
        if self.lost:
            raise LinkLostError("lost the script")
        for message in self._decoder.feed(data):
            self.written.append(message)
            self.answer(message)

    def close(self) -> None:
        self.lost = True
