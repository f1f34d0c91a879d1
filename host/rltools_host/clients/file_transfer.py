"""MAVLink FTP client, https://mavlink.io/en/services/ftp.html: burst download, upload, CRC-32.

pymavlink.mavftp does not fit: it needs a mavutil connection (no pipes), reports through logging and
files instead of return values, has no limit on the total time, and is GPL, unlike this project.
"""

from __future__ import annotations

import enum
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rltools_host.errors import BoardMismatchError, LinkLostError, VerificationError

HEADER = struct.Struct(
    "<HBBBBBxI"
)  # sequence session opcode size request_opcode burst_complete offset
DATA_BYTES = 239
PAYLOAD_BYTES = HEADER.size + DATA_BYTES
REPLY_TIMEOUT_S = 1.0
ATTEMPTS = 8
SLOWEST_BYTES_PER_S = 4000  # of a serial link at 115200 baud with losses; gives the default limit
LIMIT_AT_LEAST_S = 30.0

Progress = Callable[[int, int], None]  # bytes done, bytes in all


class Opcode(enum.IntEnum):
    """Operations of the protocol that are used here."""

    TERMINATE_SESSION = 1
    RESET_SESSIONS = 2
    OPEN_FILE_RO = 4
    READ_FILE = 5
    CREATE_FILE = 6
    WRITE_FILE = 7
    CALC_FILE_CRC32 = 14
    BURST_READ_FILE = 15
    ACK = 128
    NAK = 129


class Nak(enum.IntEnum):
    """Reasons of a refusal."""

    FAIL = 1
    FAIL_ERRNO = 2
    INVALID_DATA_SIZE = 3
    INVALID_SESSION = 4
    NO_SESSIONS_AVAILABLE = 5
    END_OF_FILE = 6
    UNKNOWN_COMMAND = 7
    FILE_EXISTS = 8
    FILE_PROTECTED = 9
    FILE_NOT_FOUND = 10


class Channel(Protocol):
    """Carries the payloads of FILE_TRANSFER_PROTOCOL messages."""

    description: str

    def send(self, payload: bytes) -> None: ...

    def receive(self, timeout_s: float) -> bytes | None:
        """The next payload from the board, or None after the time."""


@dataclass(frozen=True)
class Packet:
    """The payload of one FILE_TRANSFER_PROTOCOL message."""

    sequence: int
    session: int
    opcode: int
    request_opcode: int = 0
    burst_complete: bool = False
    offset: int = 0
    data: bytes = b""
    size: int | None = None  # where it is not the size of `data`: of a read, how much is wanted

    def pack(self) -> bytes:
        size = len(self.data) if self.size is None else self.size
        head = HEADER.pack(
            self.sequence,
            self.session,
            self.opcode,
            size,
            self.request_opcode,
            self.burst_complete,
            self.offset,
        )
        return (head + self.data).ljust(PAYLOAD_BYTES, b"\0")

    @classmethod
    def parse(cls, payload: bytes) -> Packet | None:
        payload = payload.ljust(PAYLOAD_BYTES, b"\0")  # MAVLink 2 leaves trailing zeros out
        sequence, session, opcode, size, request_opcode, complete, offset = HEADER.unpack_from(
            payload
        )
        if size > DATA_BYTES:
            return None
        data = payload[HEADER.size : HEADER.size + size]
        return cls(sequence, session, opcode, request_opcode, bool(complete), offset, data)


def mavlink_crc32(content: bytes | bytearray) -> int:
    """MAVLink's CRC-32 (developer guide, "MAVLink CRC"): zlib's, but from 0 and not inverted."""
    return zlib.crc32(content, 0xFFFFFFFF) ^ 0xFFFFFFFF


class FileTransfer:
    """Transfers whole files between the host's memory and the board."""

    def __init__(
        self,
        channel: Channel,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._channel = channel
        self._reply_timeout_s = reply_timeout_s
        self._clock = clock
        self._sequence = 0
        self._path = ""
        self._limit_s = LIMIT_AT_LEAST_S
        self._deadline = 0.0

    def download(
        self, path: str, progress: Progress | None = None, limit_s: float | None = None
    ) -> bytes:
        """The file's content, whole and with the CRC-32 that the board states."""
        self._begin(path, limit_s)
        self._request(Opcode.RESET_SESSIONS)
        opened = self._request(Opcode.OPEN_FILE_RO, data=path.encode())
        size = int.from_bytes(opened.data[:4], "little")
        if limit_s is None:
            self._extend(size)
        content = bytearray(size)
        missing = [(0, size)] if size else []
        fruitless = 0
        while missing:
            before = missing
            begin, end = missing[0]
            if end == size:
                missing = self._burst(opened.session, content, missing, progress)
            else:
                wanted = min(DATA_BYTES, end - begin)
                reply = self._request(
                    Opcode.READ_FILE, session=opened.session, offset=begin, size=wanted
                )
                missing = _place(reply, content, missing)
            fruitless = fruitless + 1 if missing == before else 0
            if fruitless == ATTEMPTS:
                raise self._silent()
            if progress is not None:
                progress(size - _total(missing), size)
        self._request(Opcode.TERMINATE_SESSION, session=opened.session)
        stated = int.from_bytes(
            self._request(Opcode.CALC_FILE_CRC32, data=path.encode()).data[:4], "little"
        )
        if stated != (received := mavlink_crc32(content)):
            raise VerificationError(
                f"{path} arrived from {self._channel.description} with CRC-32 "
                f"{received:08x}, the board states {stated:08x}: run the command again"
            )
        return bytes(content)

    def upload(
        self,
        path: str,
        content: bytes,
        progress: Progress | None = None,
        limit_s: float | None = None,
    ) -> None:
        """Writes a file on the board, which checks it when the session is closed."""
        self._begin(path, limit_s)
        if limit_s is None:
            self._extend(len(content))
        self._request(Opcode.RESET_SESSIONS)
        session = self._request(Opcode.CREATE_FILE, data=path.encode()).session
        for offset in range(0, len(content), DATA_BYTES):
            data = content[offset : offset + DATA_BYTES]
            self._request(Opcode.WRITE_FILE, session=session, offset=offset, data=data)
            if progress is not None:
                progress(offset + len(data), len(content))
        self._request(Opcode.TERMINATE_SESSION, session=session)

    def _burst(
        self,
        session: int,
        content: bytearray,
        missing: list[tuple[int, int]],
        progress: Progress | None,
    ) -> list[tuple[int, int]]:
        """One burst from the first missing byte on; returns what is missing then."""
        size = len(content)
        begin = missing[0][0]
        request = self._send(Opcode.BURST_READ_FILE, session=session, offset=begin, size=DATA_BYTES)
        # Its packets count on from the request; the next request must not look like a repeated one.
        self._sequence = (request.sequence + 2 + (size - begin) // DATA_BYTES) & 0xFFFF
        while missing:
            reply = self._receive()
            if reply is None or (
                reply.opcode == Opcode.NAK and _answers(reply, request)
            ):  # silent, or the end of the file
                if reply is not None and reply.data[:1] != bytes((Nak.END_OF_FILE,)):
                    raise self._refused(reply)
                return missing
            if reply.request_opcode != Opcode.BURST_READ_FILE or reply.session != session:
                continue
            missing = _place(reply, content, missing)
            if progress is not None:
                progress(size - _total(missing), size)
            if reply.burst_complete:
                break
        return missing

    def _request(
        self,
        opcode: Opcode,
        session: int = 0,
        offset: int = 0,
        data: bytes = b"",
        size: int | None = None,
    ) -> Packet:
        """Sends a request until its answer comes; a board does not do a repeated one again."""
        request = self._send(opcode, session, offset, data, size)
        for _ in range(ATTEMPTS):
            while (reply := self._receive()) is not None:
                if reply.sequence == (request.sequence + 1) & 0xFFFF and _answers(reply, request):
                    if reply.opcode == Opcode.NAK:
                        raise self._refused(reply)
                    return reply
            self._channel.send(request.pack())
        raise self._silent()

    def _send(
        self,
        opcode: Opcode,
        session: int = 0,
        offset: int = 0,
        data: bytes = b"",
        size: int | None = None,
    ) -> Packet:
        # Two apart, as the answer to a request has the number between.
        self._sequence = (self._sequence + 2) & 0xFFFF
        request = Packet(self._sequence, session, opcode, offset=offset, data=data, size=size)
        self._channel.send(request.pack())
        return request

    def _receive(self) -> Packet | None:
        """The next packet; None after a while without any."""
        while (left_s := self._deadline - self._clock()) > 0.0:
            payload = self._channel.receive(min(self._reply_timeout_s, left_s))
            if payload is None:
                return None
            if (packet := Packet.parse(payload)) is not None:
                return packet
        raise LinkLostError(
            f"the transfer of {self._path} with {self._channel.description} took longer than "
            f"{self._limit_s:.0f} s: check the cable, then run the command again"
        )

    def _begin(self, path: str, limit_s: float | None) -> None:
        self._path = path
        self._limit_s = LIMIT_AT_LEAST_S if limit_s is None else limit_s
        self._deadline = self._clock() + self._limit_s

    def _extend(self, size: int) -> None:
        self._limit_s += size / SLOWEST_BYTES_PER_S
        self._deadline += size / SLOWEST_BYTES_PER_S

    def _refused(self, reply: Packet) -> BoardMismatchError:
        code = reply.data[0] if reply.data else 0
        reason = Nak(code).name.lower().replace("_", " ") if code in set(Nak) else f"error {code}"
        return BoardMismatchError(
            f"the board on {self._channel.description} refuses {self._path}: {reason}; "
            "flash it with firmware of this revision"
        )

    def _silent(self) -> LinkLostError:
        return LinkLostError(
            f"the board on {self._channel.description} stopped answering during the transfer of "
            f"{self._path}: check the cable, then run the command again"
        )


def _answers(reply: Packet, request: Packet) -> bool:
    return reply.opcode in (Opcode.ACK, Opcode.NAK) and reply.request_opcode == request.opcode


def _place(
    reply: Packet, content: bytearray, missing: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Puts the data of a reply where it belongs; returns the intervals that are missing then."""
    begin, end = reply.offset, reply.offset + len(reply.data)
    if reply.opcode != Opcode.ACK or begin == end or end > len(content):
        return missing
    content[begin:end] = reply.data
    rest: list[tuple[int, int]] = []
    for first, last in missing:
        if first < begin:
            rest.append((first, min(last, begin)))
        if last > end:
            rest.append((max(first, end), last))
    return [interval for interval in rest if interval[0] < interval[1]]


def _total(missing: list[tuple[int, int]]) -> int:
    return sum(end - begin for begin, end in missing)
