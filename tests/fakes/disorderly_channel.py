"""A link in memory that loses, repeats, delays, reorders and adds packets of file transfers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from fake_files import FakeFileServer
from rltools_host.boards.file_requests import SESSION_OPERATIONS
from rltools_host.boards.file_transfer import FileTransfer
from rltools_host.boards.messages import DATA_BYTES, Packet


class DisorderlyChannel:
    """Loses, repeats, delays and reorders packets both ways, and adds some that answer nothing.

    Time passes only where the client waits for a packet that does not come.
    """

    description = "the disorderly board"

    def __init__(self, server: FakeFileServer, chance: Random, disorder: float) -> None:
        self.now = 0.0
        self.server = server
        self.silence_s = 0.0  # before each request the host is asleep for so long
        # Of a request: what is sent in place of the server's answers.
        self.change: Callable[[Packet, list[Packet]], list[Packet]] = lambda _, answers: answers
        self._chance, self._disorder = chance, disorder
        self._answers: deque[bytes] = deque()
        self._late: list[bytes] = []

    def clock(self) -> float:
        return self.now

    def send(self, payload: bytes) -> None:
        self.now += self.silence_s
        if self._strikes():
            return
        for _ in range(1 + self._strikes()):
            answers = [parsed(answer) for answer in self.server.answer(payload)]
            for packet in self.change(parsed(payload), answers):
                self._transmit(packet)

    def _transmit(self, packet: Packet) -> None:
        answer = packet.pack()
        if self._strikes():
            self._answers.append(self._foreign(packet).pack())
        if self._strikes():
            return
        for _ in range(1 + self._strikes()):
            if self._strikes():
                self._late.append(answer)
            else:
                self._answers.append(answer)

    def _foreign(self, packet: Packet) -> Packet:
        """As the answer, but to an early request, of another session or to another operation."""
        wrong: dict[str, Any] = {"data": b"\xee" * len(packet.data)}
        field = self._chance.choice(["sequence", "session", "request_opcode"])
        if field == "session" and packet.request_opcode not in SESSION_OPERATIONS:
            field = "sequence"  # nobody knows the session before it is opened
        wrong[field] = getattr(packet, field) ^ (0x4000 if field == "sequence" else 1)
        return Packet(**{**vars(packet), **wrong})

    def receive(self, timeout_s: float) -> bytes | None:
        if self._late and self._strikes():
            return self._late.pop(self._chance.randrange(len(self._late)))
        if self._answers:
            return self._answers.popleft()
        self.now += timeout_s
        return None

    def _strikes(self) -> bool:
        return self._chance.random() < self._disorder


def parsed(payload: bytes) -> Packet:
    packet = Packet.parse(payload)
    assert packet is not None
    return packet


FILES = {
    "/a": bytes(range(256)) * 40,
    "/b": b"",
    "/c": b"x" * DATA_BYTES,
    "/d": b"other" * 999,
}


def server_in_memory(written: list[bytes]) -> FakeFileServer:
    """Its clock is set by the channel."""
    return FakeFileServer(FILES.get, lambda path: path == "/a", written.append)


def on(channel: DisorderlyChannel) -> FileTransfer:
    channel.server.clock = channel.clock
    return FileTransfer(channel, channel.clock)
