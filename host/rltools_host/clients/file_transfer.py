"""MAVLink FTP client, https://mavlink.io/en/services/ftp.html: burst download, upload, CRC-32.

pymavlink.mavftp does not fit: it needs a mavutil connection (no pipes), reports through logging and
files instead of return values, has no limit on the total time, and is GPL, unlike this project.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from rltools_host.clients.messages import (
    DATA_BYTES,
    Nak,
    Opcode,
    Packet,
    Progress,
    bytes_missing,
    mavlink_crc32,
    place_data,
)
from rltools_host.errors import (
    BoardMismatchError,
    FileNotThereError,
    LinkLostError,
    RltError,
    VerificationError,
)
from rltools_host.link.connection import EVERYONE, Connection, MessageQueue
from rltools_host.link.framing import payload_of

CHECKPOINT_PATH = "/checkpoint.rltc"
POLICY_PATH = "/policy.rltp"
BEST_PATH = "/best.rltp"
CANDIDATE_PATH = "/candidate.rltp"
CONTRACT_PATH = "/contract.bin"
SAMPLES_PATH = "/samples.u32"
LARGEST_FILE_BYTES = 1 << 28  # that is taken where nobody knows more; as on the page of `rlt web`
NETWORK_AND_TARGET_BYTES = 3  # of a FILE_TRANSFER_PROTOCOL message, before its payload
REPLY_TIMEOUT_S = 1.0
ATTEMPTS = 8
SESSION_LIMIT_S = 15.0  # that another program may hold the board's sessions: they expire earlier
SLOWEST_BYTES_PER_S = 4000  # of a serial link at 115200 baud with losses; gives the default limit
LIMIT_AT_LEAST_S = 30.0
# Their answers carry the session's number.
SESSION_OPERATIONS = (
    Opcode.READ_FILE,
    Opcode.BURST_READ_FILE,
    Opcode.WRITE_FILE,
    Opcode.TERMINATE_SESSION,
)


class Channel(Protocol):
    """Carries the payloads of FILE_TRANSFER_PROTOCOL messages."""

    description: str

    def send(self, payload: bytes) -> None: ...

    def receive(self, timeout_s: float) -> bytes | None:
        """The next payload from the board, or None after the time."""


class FileTransfer:
    """Transfers whole files between the host's memory and the board.

    Numbers go on from one transfer to the next, and begin at random: an answer to an earlier
    transfer, or to another program's, has other numbers.
    """

    def __init__(
        self,
        channel: Channel,
        reply_timeout_s: float = REPLY_TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._channel = channel
        self._reply_timeout_s = reply_timeout_s
        self._clock = clock
        self._sequence = secrets.randbelow(0x10000)
        self._wish = secrets.randbelow(256)  # the session number that an open asks for
        # Of the transfer; the session has the number that the server's open answered.
        self._session: int
        self._path: str
        self._limit_s: float
        self._deadline: float

    def download(
        self,
        path: str,
        progress: Progress | None = None,
        limit_s: float | None = None,
        most_bytes: int = LARGEST_FILE_BYTES,
    ) -> bytes:
        """Whole, with the CRC-32 that the board states; FileNotThereError where there is none."""
        self._begin(path, limit_s)
        size = self._open(Opcode.OPEN_FILE_RO)
        with self._closing():
            self._require(size, most_bytes)
            if limit_s is None:
                self._extend(size)
            content = bytearray(size)
            self._fetch(content, progress)
            # Refused where the session has expired: then there is nothing to close.
            self._ask(Opcode.TERMINATE_SESSION, self._session)
        stated = self._stated_crc32()
        if stated != (received := mavlink_crc32(content)):
            raise VerificationError(
                f"{path} arrived from {self._channel.description} with CRC-32 "
                f"{received:08x}, the board states {stated:08x}: run the command again"
            )
        return bytes(content)

    def crc32(self, path: str, limit_s: float | None = None) -> int:
        """MAVLink's CRC-32 of a file, as the board computes it."""
        self._begin(path, limit_s)
        return self._stated_crc32()

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
        self._open(Opcode.CREATE_FILE)
        for offset in range(0, len(content), DATA_BYTES):
            data = content[offset : offset + DATA_BYTES]
            self._request(Opcode.WRITE_FILE, self._session, offset, data)
            if progress is not None:
                progress(offset + len(data), len(content))
        self._request(Opcode.TERMINATE_SESSION, self._session)

    def _stated_crc32(self) -> int:
        reply = self._request(Opcode.CALC_FILE_CRC32, data=self._path.encode())
        return int.from_bytes(reply.data[:4], "little")

    # -- sessions ----------------------------------------------------------------------------------

    def _open(self, opcode: Opcode) -> int:
        """Opens the file, and returns its size.

        Where all sessions are in use, one may be left from a program of this host that has ended:
        it is reset. Those of other hosts expire.
        """
        give_up = self._clock() + SESSION_LIMIT_S
        self._wish = (self._wish + 1) & 0xFF
        attempts = 0
        while True:
            reply = self._ask(opcode, session=self._wish, data=self._path.encode())
            if reply.opcode == Opcode.ACK:
                self._session = reply.session
                return int.from_bytes(reply.data[:4], "little")
            if _reason(reply) != Nak.NO_SESSIONS_AVAILABLE or self._clock() > give_up:
                raise self._refused(reply)
            if attempts > 0:
                self._wait()
            self._request(Opcode.RESET_SESSIONS)
            attempts += 1

    @contextlib.contextmanager
    def _closing(self) -> Iterator[None]:
        """Closes the session where the transfer fails, without waiting for an answer."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(RltError):
                self._send(Opcode.TERMINATE_SESSION, session=self._session)
            raise

    def _require(self, size: int, most_bytes: int) -> None:
        """Before there is memory for a file of this size."""
        if size > most_bytes:
            raise BoardMismatchError(
                f"the board on {self._channel.description} states {size:,} bytes for {self._path}, "
                f"and it may have {most_bytes:,}: flash it with firmware of this revision"
            )

    # -- downloading -------------------------------------------------------------------------------

    def _fetch(self, content: bytearray, progress: Progress | None) -> None:
        """Fills `content`: a burst up to the end of the file, then the gaps one by one."""
        size = len(content)
        missing = [(0, size)] if size else []
        fruitless = 0
        while missing:
            before = missing
            begin, end = missing[0]
            if end == size:
                missing = self._burst(content, missing, progress)
            else:
                missing = self._read(content, missing, min(DATA_BYTES, end - begin))
            fruitless = fruitless + 1 if missing == before else 0
            if fruitless == ATTEMPTS:
                raise self._silent()
            if progress is not None:
                progress(size - bytes_missing(missing), size)

    def _read(
        self, content: bytearray, missing: list[tuple[int, int]], wanted: int
    ) -> list[tuple[int, int]]:
        """Reads from the first missing byte on; returns what is missing then."""
        reply = self._ask(
            Opcode.READ_FILE, session=self._session, offset=missing[0][0], size=wanted
        )
        if reply.opcode == Opcode.NAK:
            self._reopen(reply, len(content))
            return missing
        return place_data(reply, content, missing)

    def _burst(
        self, content: bytearray, missing: list[tuple[int, int]], progress: Progress | None
    ) -> list[tuple[int, int]]:
        """One burst from the first missing byte on; returns what is missing then."""
        size = len(content)
        begin = missing[0][0]
        request = self._send(
            Opcode.BURST_READ_FILE, session=self._session, offset=begin, size=DATA_BYTES
        )
        # Its packets count on from the request, and some servers end with an END_OF_FILE. The next
        # request's number lies behind theirs.
        packets = 2 + (size - begin) // DATA_BYTES
        self._sequence = (request.sequence + 1 + packets) & 0xFFFF
        while missing:
            reply = self._receive()
            if reply is None:
                return missing
            if not 1 <= (reply.sequence - request.sequence) & 0xFFFF <= packets:
                continue  # of an earlier request
            if not _answers(reply, request):
                continue
            if reply.opcode == Opcode.NAK:
                if _reason(reply) != Nak.END_OF_FILE:
                    self._reopen(reply, size)
                return missing
            missing = place_data(reply, content, missing)
            if progress is not None:
                progress(size - bytes_missing(missing), size)
            if reply.burst_complete:
                break
        return missing

    def _reopen(self, reply: Packet, size: int) -> None:
        """Opens the file again where the server has closed the session, as after a long silence."""
        if _reason(reply) != Nak.INVALID_SESSION or self._open(Opcode.OPEN_FILE_RO) != size:
            raise self._refused(reply)

    # -- requests ----------------------------------------------------------------------------------

    def _request(
        self, opcode: Opcode, session: int = 0, offset: int = 0, data: bytes = b""
    ) -> Packet:
        """As `_ask`, but a refusal is an error."""
        reply = self._ask(opcode, session, offset, data)
        if reply.opcode == Opcode.NAK:
            raise self._refused(reply)
        return reply

    def _ask(
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

    def _wait(self) -> None:
        """Lets some time pass; what arrives meanwhile answers nothing."""
        until = self._clock() + self._reply_timeout_s
        while self._clock() < until and self._receive() is not None:
            pass

    def _begin(self, path: str, limit_s: float | None) -> None:
        self._path = path
        self._limit_s = LIMIT_AT_LEAST_S if limit_s is None else limit_s
        self._deadline = self._clock() + self._limit_s

    def _extend(self, size: int) -> None:
        self._limit_s += size / SLOWEST_BYTES_PER_S
        self._deadline += size / SLOWEST_BYTES_PER_S

    def _refused(self, reply: Packet) -> RltError:
        code = _reason(reply)
        if code == Nak.INVALID_SESSION:
            return LinkLostError(
                f"the board on {self._channel.description} closed {self._path} during its "
                "transfer, as it does after a reset or a long silence: check the cable, then run "
                "the command again"
            )
        reason = Nak(code).name.lower().replace("_", " ") if code in set(Nak) else f"error {code}"
        remedy = "flash it with firmware of this revision"
        if code == Nak.NO_SESSIONS_AVAILABLE:
            remedy = "end the other program that transfers its files, then run the command again"
        kind = FileNotThereError if code == Nak.FILE_NOT_FOUND else BoardMismatchError
        return kind(
            f"the board on {self._channel.description} refuses {self._path}: {reason}; {remedy}"
        )

    def _silent(self) -> LinkLostError:
        return LinkLostError(
            f"the board on {self._channel.description} stopped answering during the transfer of "
            f"{self._path}: check the cable, then run the command again"
        )


def _answers(reply: Packet, request: Packet) -> bool:
    """Whether it answers a request of this kind, in the same session."""
    if reply.opcode not in (Opcode.ACK, Opcode.NAK) or reply.request_opcode != request.opcode:
        return False
    return reply.session == request.session or request.opcode not in SESSION_OPERATIONS


def _reason(reply: Packet) -> int:
    return reply.data[0] if reply.data else 0


class FileClient:
    """Fetches and writes whole files of a board: a FileTransfer over its connection."""

    def __init__(self, connection: Connection, reply_timeout_s: float = REPLY_TIMEOUT_S) -> None:
        self._connection = connection
        self._transfer = FileTransfer(self, reply_timeout_s, connection.clock)
        self._queue: MessageQueue
        self.description = connection.description

    def download(
        self, path: str, progress: Progress | None = None, most_bytes: int = LARGEST_FILE_BYTES
    ) -> bytes:
        """Fetches a file of the board."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            return self._transfer.download(path, progress, most_bytes=most_bytes)

    def upload(self, path: str, content: bytes, progress: Progress | None = None) -> None:
        """Writes a file of the board."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            self._transfer.upload(path, content, progress)

    def crc32(self, path: str) -> int:
        """MAVLink's CRC-32 of a file of the board."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            return self._transfer.crc32(path)

    # -- the channel of the transfer ---------------------------------------------------------------

    def send(self, payload: bytes) -> None:
        dialect = self._connection.dialect
        target = self._connection.target or EVERYONE
        self._connection.send(dialect.MAVLink_file_transfer_protocol_message(0, *target, payload))

    def receive(self, timeout_s: float) -> bytes | None:
        message = self._queue.wait(timeout_s)
        return None if message is None else payload_of(message)[NETWORK_AND_TARGET_BYTES:]
