"""Links that are narrow, long, lossy, or have little room: one in memory with a clock of its own,
for file transfers, and a proxy in front of a real board's port.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import random
import select
import socket
import threading
import time
import tty
from collections import deque
from dataclasses import dataclass

from fake_files import FakeFileServer
from rltools_host.boards.framing import FrameDecoder

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


class SlowProxy:
    """Stands before a board's `socket://` port. Its own is such a port, or a pseudo-terminal.

    It reads no faster than it sends on, so that a narrow line holds the board back, unless its room
    is stated: then it drops what exceeds that.
    """

    def __init__(self, target: str, line: Line, dialect: object, *, pty: bool = False) -> None:
        self.line = line
        self.is_gone = False
        host, port = target.removeprefix("socket://").split(":")
        self._board = socket.create_connection((host, int(port)))
        self._stopped = threading.Event()
        self._chance = random.Random(1)
        self._decoders = [FrameDecoder(dialect), FrameDecoder(dialect)]
        self._terminal: tuple[int, int] | None = None
        if pty:
            self._terminal = os.openpty()
            tty.setraw(self._terminal[1])
            self.port = os.ttyname(self._terminal[1])
        else:
            self._server = socket.create_server(("127.0.0.1", 0))
            self.port = f"socket://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        client = self._terminal[0] if self._terminal else -1
        connection: socket.socket | None = None
        queues: tuple[deque[tuple[float, bytes]], ...] = (deque(), deque())
        free_at = [0.0, 0.0]
        while not self._stopped.is_set():
            now = time.monotonic()
            # To the host is the narrow way; a board that waits is held back.
            is_full = free_at[1] > now and self.line.room >= 1e9
            sources = [*([] if is_full else [self._board]), *([client] if client >= 0 else [])]
            if not self._terminal:
                sources.append(self._server)
            due = [queue[0][0] for queue in queues if queue]
            wait = min([0.02, *(max(0.0, at - now) for at in due)])
            ready = select.select(sources, [], [], wait)[0]
            if not self._terminal and self._server in ready:
                connection = self._server.accept()[0]
                client = connection.fileno()
                queues[1].clear()
            for way, source in enumerate((client, self._board)):
                if source not in ready:
                    continue
                data = b""
                with contextlib.suppress(ConnectionResetError):  # a client that was killed
                    data = os.read(source if isinstance(source, int) else source.fileno(), 256)
                if not data and way == 0 and connection is not None:
                    connection.close()
                    client, connection = -1, None
                self._take(way, data, queues[way], free_at)
            self._pass_on(queues, client)

    def _take(
        self, way: int, data: bytes, queue: deque[tuple[float, bytes]], free_at: list[float]
    ) -> None:
        """Whole frames, as a radio's packets: each is lost or carried."""
        for message in self._decoders[way].feed(data):
            frame = bytes(message.get_msgbuf())
            now = time.monotonic()
            begin = max(now, free_at[way])
            if self.is_gone or (begin - now) * self.line.bytes_per_s > self.line.room:
                continue
            free_at[way] = begin + len(frame) / self.line.bytes_per_s
            if self._chance.random() >= self.line.loss:
                queue.append((free_at[way] + self.line.delay_s, frame))

    def _pass_on(self, queues: tuple[deque[tuple[float, bytes]], ...], client: int) -> None:
        for way, queue in enumerate(queues):
            while queue and queue[0][0] <= time.monotonic():
                frame = queue.popleft()[1]
                target = self._board.fileno() if way == 0 else client
                if target >= 0:
                    try:
                        os.write(target, frame)
                    except OSError:
                        return

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(10)
        self._board.close()
        if self._terminal:
            for descriptor in self._terminal:
                os.close(descriptor)
        else:
            self._server.close()

    def __enter__(self) -> SlowProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
