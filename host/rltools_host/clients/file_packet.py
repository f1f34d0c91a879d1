"""Packets of MAVLink FTP, https://mavlink.io/en/services/ftp.html: errors, CRC-32, gaps."""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

HEADER = struct.Struct(
    "<HBBBBBxI"
)  # sequence session opcode size request_opcode burst_complete offset
DATA_BYTES = 239
PAYLOAD_BYTES = HEADER.size + DATA_BYTES

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


def place(
    reply: Packet, content: bytearray, missing: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Puts the data of an ACK where it belongs; returns the intervals that are missing then."""
    begin, end = reply.offset, reply.offset + len(reply.data)
    if begin == end or end > len(content):
        return missing
    content[begin:end] = reply.data
    rest: list[tuple[int, int]] = []
    for first, last in missing:
        rest += [(first, min(last, begin)), (max(first, end), last)]
    return [interval for interval in rest if interval[0] < interval[1]]


def total(missing: list[tuple[int, int]]) -> int:
    """Bytes."""
    return sum(end - begin for begin, end in missing)
