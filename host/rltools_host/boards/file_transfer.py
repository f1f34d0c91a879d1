"""MAVLink FTP client, https://mavlink.io/en/services/ftp.html: burst download, upload, CRC-32.

pymavlink.mavftp does not fit: it needs a mavutil connection (no pipes), reports through logging and
files instead of return values, gives no link up that brings nothing, and is GPL, unlike this
project.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator

from rltools_host.boards.connection import EVERYONE, Connection, MessageQueue
from rltools_host.boards.file_parts import Keeping, Part
from rltools_host.boards.file_requests import (
    PATIENCE,
    REPLY_TIMEOUT_S,
    Channel,
    Pace,
    PendingRequests,
    SessionClosedError,
    answers,
    reason_of,
)
from rltools_host.boards.framing import payload_of
from rltools_host.boards.messages import (
    DATA_BYTES,
    Nak,
    Opcode,
    Packet,
    Progress,
    mavlink_crc32,
)
from rltools_host.errors import (
    BoardMismatchError,
    FileNotThereError,
    LinkLostError,
    RefusedError,
    RltError,
)

CHECKPOINT_PATH = "/checkpoint.rltc"
POLICY_PATH = "/policy.rltp"
BEST_PATH = "/best.rltp"
CANDIDATE_PATH = "/candidate.rltp"
CONTRACT_PATH = "/contract.bin"
SAMPLES_PATH = "/samples.u32"
LARGEST_FILE_BYTES = 1 << 28  # that is taken where nobody knows more; as on the page of `rlt web`
NETWORK_AND_TARGET_BYTES = 3  # of a FILE_TRANSFER_PROTOCOL message, before its payload
SESSION_LIMIT_S = 15.0  # that another program may hold the board's sessions: they expire earlier
BURST_PACKETS = 4096  # of one burst, at most: docs/protocol.md
UPLOADS = 4  # of one file, each where the board has closed the session of the last one
VAIN_BURSTS = 3  # one after another that bring nothing: then there are no more


class Reopened(Exception):
    """A sign that the file was opened again: requests have another session's number from now on."""


class FileTransfer:
    """Transfers of whole files between the host's memory and the board.

    Nothing limits the time of a transfer as long as something new comes, however slow its link is.
    Numbers of requests continue from one transfer to the next, and begin at random: an answer to an
    earlier transfer, or to another program's, has other numbers.
    """

    def __init__(self, channel: Channel, clock: Callable[[], float]) -> None:
        self._channel = channel
        self._clock = clock
        self._sequence = secrets.randbelow(0x10000)
        self._path: str  # of the transfer
        self._deadline: float
        self._pace = Pace()
        self._under_way = PendingRequests(self._pace, clock)
        self._wish = secrets.randbelow(256)  # the session number that an open asks for
        # Of the transfer; the session has the number that the server's open answered.
        self._session: int
        self._part = Part(0)
        self._bursts_left = VAIN_BURSTS
        self._burst_request = Packet(0, 0, 0)
        self._burst_packets = 0

    def download(
        self,
        path: str,
        progress: Progress | None = None,
        max_bytes: int = LARGEST_FILE_BYTES,
        keeping: Keeping | None = None,
    ) -> bytes:
        """Return a whole file, checked against the CRC-32 that the board states.

        `keeping` says where a part is kept until somebody removes it, also of a whole file. Raises
        FileNotThereError if there is no such file.
        """
        self._begin(path)
        self._part = Part(0)
        self._burst_packets = 0  # those of the last file that come late are no part of this one
        size = self._open(Opcode.OPEN_FILE_RO)
        stated: int | None = None
        with self._closing():
            self._require(size, max_bytes)
            part = self._part = Part(size)
            if keeping is not None:
                stated = self._stated_crc32()
                part.keep_as(keeping, path, stated, self._clock())
            self._fetch(progress)
            # Refused where the session has expired: then there is nothing to close.
            self._ask(Opcode.TERMINATE_SESSION, self._session)
        if stated is None:
            stated = self._stated_crc32()
        if stated != (received := mavlink_crc32(part.content)):
            part.forget()
            raise RefusedError(
                f"{path} arrived from {self._channel.description} with CRC-32 "
                f"{received:08x}, the board states {stated:08x}: run the command again"
            )
        return bytes(part.content)

    def crc32(self, path: str) -> int:
        """Return MAVLink's CRC-32 of a file, as the board computes it."""
        self._begin(path)
        return self._stated_crc32()

    def upload(self, path: str, content: bytes, progress: Progress | None = None) -> None:
        """Write a file on the board, which checks it when the session is closed.

        If the board has closed the session after a silence, the file is written again.
        """
        self._begin(path)
        for begun in range(1, UPLOADS + 1):
            try:
                self._upload(content, progress)
                return
            except SessionClosedError:
                if begun == UPLOADS:
                    raise

    def _upload(self, content: bytes, progress: Progress | None) -> None:
        self._open(Opcode.CREATE_FILE)
        done = 0

        def take(request: Packet, reply: Packet) -> bool:
            nonlocal done
            if reply.opcode == Opcode.NAK:
                raise self._refused(reply)
            done += len(request.data)
            if progress is not None:
                progress(done, len(content))
            return True

        self._exchange(
            (
                self._next(
                    Opcode.WRITE_FILE, self._session, offset, content[offset : offset + DATA_BYTES]
                )
                for offset in range(0, len(content), DATA_BYTES)
            ),
            take,
        )
        self._request(Opcode.TERMINATE_SESSION, self._session)

    def _stated_crc32(self) -> int:
        reply = self._request(Opcode.CALC_FILE_CRC32, data=self._path.encode())
        return int.from_bytes(reply.data[:4], "little")

    # -- sessions ----------------------------------------------------------------------------------

    def _open(self, opcode: Opcode) -> int:
        """Open the file, and return its size.

        If all sessions are in use, one may be left from a program of this host that has ended:
        those are reset. Those of other hosts expire.
        """
        give_up = self._clock() + SESSION_LIMIT_S
        self._wish = (self._wish + 1) & 0xFF
        attempts = 0
        while True:
            reply = self._ask(opcode, session=self._wish, data=self._path.encode())
            if reply.opcode == Opcode.ACK:
                self._session = reply.session
                return int.from_bytes(reply.data[:4], "little")
            if reason_of(reply) != Nak.NO_SESSIONS_AVAILABLE or self._clock() > give_up:
                raise self._refused(reply)
            if attempts > 0:
                self._wait()
            self._request(Opcode.RESET_SESSIONS)
            attempts += 1

    @contextlib.contextmanager
    def _closing(self) -> Iterator[None]:
        """Close the session if the transfer fails, without waiting for an answer."""
        try:
            yield
        except BaseException:
            self._part.keep(self._clock(), at_once=True)
            with contextlib.suppress(RltError):
                self._channel.send(self._next(Opcode.TERMINATE_SESSION, self._session).pack())
            raise

    def _require(self, size: int, max_bytes: int) -> None:
        """Raise BoardMismatchError if the file is too large, before memory is allocated for it."""
        if size > max_bytes:
            raise BoardMismatchError(
                f"the board on {self._channel.description} states {size:,} bytes for {self._path}, "
                f"and it may have {max_bytes:,}: flash it with firmware of this revision"
            )

    def _wait(self) -> None:
        """Let one reply timeout pass; what arrives meanwhile answers nothing."""
        until = self._clock() + REPLY_TIMEOUT_S
        while (left_s := until - self._clock()) > 0.0 and self._receive(left_s) is not None:
            pass

    # -- downloading -------------------------------------------------------------------------------

    def _fetch(self, progress: Progress | None) -> None:
        """Take bursts up to the end of the file, and read the gaps between them.

        On a link that has no room for bursts, all is read.
        """
        part = self._part

        def came() -> None:
            self._progressed()
            part.keep(self._clock())
            if progress is not None:
                progress(part.size - part.left, part.size)

        while part.missing:
            begin, end = part.missing[-1]
            if end < part.size or self._bursts_left == 0:
                self._read(part.size, came)
            elif len(part.missing) > 1:
                self._read(begin, came)
            else:
                self._burst(begin, came)
        part.keep_rest(self._clock())
        if part.size == 0 and progress is not None:
            progress(0, 0)

    def _read(self, end: int, came: Callable[[], None]) -> None:
        """Ask for what is missing up to `end`; more may be missing then."""
        part = self._part

        def take(_: Packet, reply: Packet) -> bool:
            if reply.opcode == Opcode.NAK:
                self._reopen(reply)
                raise Reopened
            if part.insert(reply):
                came()
            else:
                return not part.lacks(reply.offset, max(1, len(reply.data)))
            return True

        def take_other(reply: Packet) -> None:
            if self._is_of_burst(reply) and reply.opcode == Opcode.ACK and part.insert(reply):
                came()

        requests = (
            self._next(Opcode.READ_FILE, self._session, offset, size=size)
            for offset, size in part.pieces(end)
            if part.lacks(offset, size)
        )
        with contextlib.suppress(Reopened):
            self._exchange(requests, take, take_other)

    def _burst(self, begin: int, came: Callable[[], None]) -> None:
        """Take one burst from this offset on, as long as it brings anything."""
        part, before = self._part, self._part.left
        request = self._next(Opcode.BURST_READ_FILE, self._session, begin, size=DATA_BYTES)
        self._burst_request = request
        self._channel.send(request.pack())
        # Its packets count on from the request, and some servers end with an END_OF_FILE. The next
        # request's number lies behind theirs.
        packets = 2 + min((part.size - begin) // DATA_BYTES, BURST_PACKETS)
        self._burst_packets = packets
        self._sequence = (request.sequence + 1 + packets) & 0xFFFF
        is_ended = False
        while part.missing and not is_ended:
            reply = self._receive(self._pace.timeout_s)
            if reply is None:
                break
            if not self._is_of_burst(reply):
                continue
            if reply.opcode == Opcode.NAK:
                if reason_of(reply) != Nak.END_OF_FILE:
                    self._reopen(reply)
                is_ended = True
            elif part.insert(reply):
                came()
            is_ended = is_ended or reply.burst_complete
        self._judge(before - part.left, min(before, BURST_PACKETS * DATA_BYTES), is_ended)

    def _judge(self, came: int, most: int, is_ended: bool) -> None:
        """Decide whether to ask for further bursts.

        A link may have lost the request, or the last packet; one that loses most of a burst has no
        room for it.
        """
        if came == 0:
            self._bursts_left -= 1
        else:
            self._bursts_left = VAIN_BURSTS if is_ended or 2 * came >= most else 0

    def _is_of_burst(self, reply: Packet) -> bool:
        """Return whether it is a packet of the last burst."""
        request = self._burst_request
        index = (reply.sequence - request.sequence) & 0xFFFF
        return 1 <= index <= self._burst_packets and answers(reply, request)

    def _reopen(self, reply: Packet) -> None:
        """Open the file again if the server has closed the session, as after a long silence."""
        size = self._part.size
        if reason_of(reply) != Nak.INVALID_SESSION or self._open(Opcode.OPEN_FILE_RO) != size:
            raise self._refused(reply)

    # -- requests ----------------------------------------------------------------------------------

    def _request(self, opcode: Opcode, session: int = 0, data: bytes = b"") -> Packet:
        """Send a request until its answer comes; raise an error if the board refuses."""
        reply = self._ask(opcode, session, data)
        if reply.opcode == Opcode.NAK:
            raise self._refused(reply)
        return reply

    def _ask(self, opcode: Opcode, session: int = 0, data: bytes = b"") -> Packet:
        """Send a request until its answer comes; a board does not do a repeated one again."""
        found: list[Packet] = []

        def take(_: Packet, reply: Packet) -> bool:
            found.append(reply)
            return True

        self._exchange(iter([self._next(opcode, session, data=data)]), take)
        return found[0]

    def _exchange(
        self,
        requests: Iterator[Packet],
        take: Callable[[Packet, Packet], bool],
        take_other: Callable[[Packet], None] = lambda _: None,
    ) -> None:
        """Send requests, as many at once as the link carries, each until its answer comes.

        `take` returns whether a packet is the answer.
        """
        under_way = self._under_way
        under_way.drop()
        waiting = next(requests, None)
        while waiting is not None or under_way:
            while waiting is not None and under_way.has_room:
                self._channel.send(waiting.pack())
                under_way.add(waiting)
                waiting = next(requests, None)
            reply = self._receive(under_way.patience_s)
            if reply is not None:
                request = under_way.of(reply)
                if request is None or not answers(reply, request):
                    take_other(reply)
                elif take(request, reply):
                    self._progressed()
                    under_way.answered(reply)
            for request in under_way.lost():
                self._channel.send(request.pack())

    def _next(
        self,
        opcode: Opcode,
        session: int,
        offset: int = 0,
        data: bytes = b"",
        size: int | None = None,
    ) -> Packet:
        # Two apart, as the answer to a request has the number between.
        self._sequence = (self._sequence + 2) & 0xFFFF
        return Packet(self._sequence, session, opcode, offset=offset, data=data, size=size)

    def _receive(self, timeout_s: float) -> Packet | None:
        """Return the next packet; None if none comes in this time."""
        while (left_s := self._deadline - self._clock()) > 0.0:
            payload = self._channel.receive(min(timeout_s, left_s))
            if payload is None:
                return None
            if (packet := Packet.parse(payload)) is not None:
                return packet
        raise LinkLostError(
            f"the board on {self._channel.description} stopped answering during the transfer of "
            f"{self._path}: check the cable, and whether other programs keep this machine busy, "
            "then run the command again"
        )

    def _begin(self, path: str) -> None:
        self._path = path
        self._progressed()

    def _progressed(self) -> None:
        """Extend the deadline, as something new has come."""
        patience_s = PATIENCE * max(REPLY_TIMEOUT_S, self._pace.usual_s / 2)
        self._deadline = self._clock() + patience_s

    def _refused(self, reply: Packet) -> RltError:
        code = reason_of(reply)
        if code in (Nak.INVALID_SESSION, Nak.END_OF_FILE):  # asked for is only what was stated
            return SessionClosedError(
                f"the board on {self._channel.description} closed {self._path} during its "
                "transfer, as it does after a reset, a long silence or the end of a trial: check "
                "the cable, then run the command again"
            )
        reason = Nak(code).name.lower().replace("_", " ") if code in set(Nak) else f"error {code}"
        remedy = "flash it with firmware of this revision"
        if code == Nak.NO_SESSIONS_AVAILABLE:
            remedy = "end the other program that transfers its files, then run the command again"
        kind = FileNotThereError if code == Nak.FILE_NOT_FOUND else BoardMismatchError
        return kind(
            f"the board on {self._channel.description} refuses {self._path}: {reason}; {remedy}"
        )


class FileClient:
    """The files of a board: a FileTransfer over its connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transfer = FileTransfer(self, connection.clock)
        self._queue: MessageQueue
        self.description = connection.description

    def download(
        self,
        path: str,
        progress: Progress | None = None,
        max_bytes: int = LARGEST_FILE_BYTES,
        keeping: Keeping | None = None,
    ) -> bytes:
        """Return a file of the board; see FileTransfer.download."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            return self._transfer.download(path, progress, max_bytes, keeping)

    def upload(self, path: str, content: bytes, progress: Progress | None = None) -> None:
        """Write a file of the board."""
        with self._connection.open_queue("FILE_TRANSFER_PROTOCOL") as self._queue:
            self._transfer.upload(path, content, progress)

    def crc32(self, path: str) -> int:
        """Return MAVLink's CRC-32 of a file of the board."""
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
