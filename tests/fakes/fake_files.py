"""A file server after docs/protocol.md, "Files": its sessions are separate and expire."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from rltools_host.boards.messages import DATA_BYTES, Nak, Opcode, Packet, mavlink_crc32

BURST_PACKETS = 20  # so that long files take several bursts
EXPIRY_S = 5.0


@dataclass
class Session:
    content: bytearray
    writes: bool
    used_at: float


class FakeFileServer:
    """Answers requests of one host; `sessions` of other hosts can be put in by a test.

    Opening is answered with a session number of the server's own, which a client cannot guess. A
    request for a session with another number is refused.
    """

    def __init__(
        self,
        read: Callable[[str], bytes | None],
        may_write: Callable[[str], bool] = lambda _: False,
        written: Callable[[bytes], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        seed: int = 1,
    ) -> None:
        self.sessions: dict[int, Session] = {}
        self.burst_packets = BURST_PACKETS
        self.wrong_crc32 = False
        self.requests: list[Packet] = []  # that were carried out
        self.read, self._may_write, self._written = read, may_write, written
        self.clock = clock
        chance = random.Random(seed)
        self.numbers: Callable[[], int] = lambda: chance.randrange(256)
        self._last_request = b""
        self._last_answers: list[bytes] = []
        self.others: list[float] = []  # sessions of other hosts: when they expire

    def answer(self, raw: bytes) -> list[bytes]:
        """The payloads that answer a request; the same ones where it comes again."""
        request = Packet.parse(raw)
        if request is None:
            return []
        if raw != self._last_request or request.opcode == Opcode.BURST_READ_FILE:
            self._last_request = raw
            self._last_answers = [packet.pack() for packet in self._carry_out(request, raw[4])]
        return self._last_answers

    def expire(self) -> None:
        """Ends the sessions that were silent for long."""
        now = self.clock()
        self.sessions = {n: s for n, s in self.sessions.items() if now - s.used_at < EXPIRY_S}
        self.others = [until for until in self.others if now < until]

    def _carry_out(self, request: Packet, size: int) -> list[Packet]:
        self.requests.append(request)
        self.expire()
        try:
            if request.opcode == Opcode.BURST_READ_FILE:
                return self._burst(request)
            session, offset, data = self._answer(request, size)
        except Refused as refused:
            return [self._refusal(request, refused.reason)]
        return [self._reply(request, Opcode.ACK, session, offset, data)]

    def _refusal(self, request: Packet, reason: Nak) -> Packet:
        return self._reply(request, Opcode.NAK, request.session, request.offset, bytes((reason,)))

    @staticmethod
    def _reply(request: Packet, opcode: Opcode, session: int, offset: int, data: bytes) -> Packet:
        sequence = (request.sequence + 1) & 0xFFFF
        return Packet(sequence, session, opcode, request.opcode, False, offset, data)

    def _answer(self, request: Packet, size: int) -> tuple[int, int, bytes]:
        """Session, offset and data."""
        opcode, path = request.opcode, request.data.decode(errors="replace")
        if opcode == Opcode.RESET_SESSIONS:
            self.sessions.clear()
            return 0, 0, b""
        if opcode == Opcode.CALC_FILE_CRC32:
            crc = mavlink_crc32(self._content(path)) ^ self.wrong_crc32
            return 0, 0, crc.to_bytes(4, "little")
        if opcode == Opcode.OPEN_FILE_RO:
            content = self._content(path)
            number = self._open(Session(bytearray(content), False, self.clock()))
            return number, 0, len(content).to_bytes(4, "little")
        if opcode == Opcode.CREATE_FILE:
            if not self._may_write(path):
                raise Refused(Nak.FILE_PROTECTED)
            return self._open(Session(bytearray(), True, self.clock())), 0, bytes(4)
        if opcode == Opcode.TERMINATE_SESSION:
            session = self._session(request)
            del self.sessions[request.session]
            if session.writes:
                self._written(bytes(session.content))
            return request.session, 0, b""
        if opcode == Opcode.READ_FILE:
            session = self._session(request)
            if request.offset >= len(session.content):
                raise Refused(Nak.END_OF_FILE)
            data = bytes(session.content[request.offset : request.offset + size])
            return request.session, request.offset, data
        if opcode == Opcode.WRITE_FILE:
            content = self._session(request).content
            end = request.offset + len(request.data)
            content.extend(bytes(max(0, end - len(content))))
            content[request.offset : end] = request.data
            return request.session, request.offset, b""
        raise Refused(Nak.UNKNOWN_COMMAND)

    def _content(self, path: str) -> bytes:
        content = self.read(path)
        if content is None:
            raise Refused(Nak.FILE_NOT_FOUND)
        return content

    def _open(self, session: Session) -> int:
        if self.sessions or self.others:
            raise Refused(Nak.NO_SESSIONS_AVAILABLE)
        number = self.numbers()
        self.sessions[number] = session
        return number

    def _session(self, request: Packet) -> Session:
        session = self.sessions.get(request.session)
        if session is None:
            raise Refused(Nak.INVALID_SESSION)
        session.used_at = self.clock()
        return session

    def _burst(self, request: Packet) -> list[Packet]:
        session, offset = self._session(request), request.offset
        if offset >= len(session.content):
            raise Refused(Nak.END_OF_FILE)
        packets: list[Packet] = []
        for index in range(self.burst_packets):
            data = bytes(session.content[offset : offset + DATA_BYTES])
            last = index == self.burst_packets - 1 or offset + len(data) >= len(session.content)
            sequence = (request.sequence + 1 + index) & 0xFFFF
            packets.append(
                Packet(sequence, request.session, Opcode.ACK, request.opcode, last, offset, data)
            )
            offset += len(data)
            if last:
                break
        return packets


class Refused(Exception):
    def __init__(self, reason: Nak) -> None:
        self.reason = reason
