"""A link in memory that is narrow, long, lossy, or has little room, with a clock of its own."""

from __future__ import annotations

import heapq
import itertools
import random
from dataclasses import dataclass

from fake_files import FakeFileServer

FRAME_BYTES = 12 + 3  # of a FILE_TRANSFER_PROTOCOL message, beside its payload


@dataclass
class Line:
    """What a link is like, in either direction."""

    bytes_per_s: float = 1e9
    delay_s: float = 0.0
    loss: float = 0.0  # of the frames
    room: float = 1e9  # bytes that wait for their turn: what comes above is dropped


class SlowChannel:
    """Carries packets of file transfers over a line. Its clock goes on where the client waits."""

    description = "the board on a slow link"

    def __init__(self, server: FakeFileServer, line: Line) -> None:
        self.now = 0.0
        self.line = line
        self.is_gone = False
        self.bytes_sent = 0
        server.clock = lambda: self.now
        self._server = server
        self._chance = random.Random(1)
        self._free_at = [0.0, 0.0]  # there and back
        self._count = itertools.count()
        self._coming: list[tuple[float, int, bool, bytes]] = []

    def clock(self) -> float:
        return self.now

    def send(self, payload: bytes) -> None:
        self._carry(payload, self.now, is_answer=False)

    def receive(self, timeout_s: float) -> bytes | None:
        until = self.now + timeout_s
        while self._coming and self._coming[0][0] <= until:
            at, _, is_answer, payload = heapq.heappop(self._coming)
            self.now = max(self.now, at)
            if is_answer:
                return payload
            for answer in self._server.answer(payload):
                self._carry(answer, self.now, is_answer=True)
        self.now = until
        return None

    def _carry(self, payload: bytes, now: float, *, is_answer: bool) -> None:
        size = FRAME_BYTES + len(payload.rstrip(b"\0"))
        begin = max(now, self._free_at[is_answer])
        if self.is_gone or (begin - now) * self.line.bytes_per_s > self.line.room:
            return
        end = self._free_at[is_answer] = begin + size / self.line.bytes_per_s
        self.bytes_sent += size
        if self._chance.random() >= self.line.loss:
            item = (end + self.line.delay_s, next(self._count), is_answer, payload)
            heapq.heappush(self._coming, item)
