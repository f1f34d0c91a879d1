"""MAVLink 2 frames: decoded from a byte stream that may be noisy, and encoded; status texts.

Frame: https://mavlink.io/en/guide/serialization.html. pymavlink's own stream parser trusts a
corrupt length byte and swallows the good messages after it; this one drops one byte after a bad
checksum and looks again.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rltools_host.documents import printable

# A message of the generated dialect; its fields are attributes. Generated code has no types here.
Message = Any
Dialect = Any

MAGIC = 0xFD
HEADER_BYTES = 10
CHECKSUM_BYTES = 2
SIGNATURE_BYTES = 13
SIGNED_FLAG = 0x01
# A frame that is still arriving is doubted only for messages that follow the last one so closely.
SEQUENCE_WINDOW = 32


def payload_of(message: Message) -> bytes:
    """Return the payload's bytes as sent; pymavlink's `get_payload` begins four bytes too early."""
    frame = message.get_msgbuf()
    return bytes(frame[HEADER_BYTES : HEADER_BYTES + frame[1]])


class BytesMessage:
    """A message all of whose fields are bytes or arrays of bytes, which are `bytes` here.

    A checkpoint comes in some ten thousand of them, and pymavlink takes longer to make a list of
    numbers of each array than everything else here takes.
    """

    def __init__(self, kind: Any, layout: struct.Struct, frame: bytes) -> None:
        self._kind = kind
        self._frame = frame
        payload = frame[HEADER_BYTES : HEADER_BYTES + frame[1]].ljust(layout.size, b"\0")
        self.__dict__.update(zip(kind.ordered_fieldnames, layout.unpack_from(payload), strict=True))

    def get_type(self) -> str:
        name: str = self._kind.msgname
        return name

    def get_msgbuf(self) -> bytes:
        return self._frame

    def get_msgId(self) -> int:  # noqa: N802 - pymavlink's name, as the next two
        number: int = self._kind.id
        return number

    def get_srcSystem(self) -> int:  # noqa: N802
        return self._frame[5]

    def get_srcComponent(self) -> int:  # noqa: N802
        return self._frame[6]


def layout_of_bytes(kind: Any) -> struct.Struct | None:
    """Return the layout of a BytesMessage of this kind of the dialect; None for other kinds."""
    if set(kind.fieldtypes) != {"uint8_t"} or max(kind.lengths) == 1:
        return None
    return struct.Struct("".join("B" if count == 1 else f"{count}s" for count in kind.lengths))


class FrameDecoder:
    """A decoder from chunks of bytes to messages, which never raises, whatever the bytes are."""

    def __init__(self, dialect: Dialect, takes_longer: bool = False) -> None:
        """Decode messages of the dialect.

        `takes_longer` accepts frames with more fields than the dialect knows, as senders of a later
        version of it add them at the end; fewer damaged lengths are noticed then.
        """
        self.messages_received = 0
        self.messages_repeated = 0  # the same frame once more: dropped
        self.bytes_skipped = 0  # bytes that belong to no accepted frame
        self._dialect = dialect
        self._takes_longer = takes_longer
        self._mavlink = dialect.MAVLink(None)
        self._layout: dict[int, tuple[int, int]] = {
            number: (kind.crc_extra, kind.unpacker.size)
            for number, kind in dialect.mavlink_map.items()
        }
        layouts = {number: layout_of_bytes(kind) for number, kind in dialect.mavlink_map.items()}
        self._of_bytes = {number: layout for number, layout in layouts.items() if layout}
        self._buffer = bytearray()
        self._last: dict[tuple[int, int], tuple[int, bytes]] = {}  # sender -> sequence, frame
        self._lost: Counter[tuple[int, int]] = Counter()  # by sender

    @property
    def messages_lost(self) -> int:
        """Return the gaps in the sequence numbers of all senders."""
        return self._lost.total()

    def messages_lost_from(self, sender: tuple[int, int]) -> int:
        return self._lost[sender]

    def feed(self, chunk: bytes) -> list[Message]:
        """Return the messages that `chunk` completes, in order."""
        buffer = self._buffer
        buffer += chunk
        messages: list[Message] = []
        position = 0
        while (start := buffer.find(MAGIC, position)) >= 0:
            self.bytes_skipped += start - position
            position = start
            length = self._frame_length(start)
            if length is None or start + length > len(buffer):
                resume = self._next_in_step(start + 1)
                if resume is None:
                    break  # more bytes are needed
            elif length and self._checksum_is_good(start):
                self._accept(bytes(buffer[start : start + length]), messages)
                position = start + length
                continue
            else:
                resume = start + 1
            self.bytes_skipped += resume - position
            position = resume
        else:
            self.bytes_skipped += len(buffer) - position
            position = len(buffer)
        del buffer[:position]
        return messages

    def _frame_length(self, start: int) -> int | None:
        """Return the bytes of the frame at `start`; 0 if there can be none, None if its header is
        incomplete."""
        header = self._buffer[start : start + HEADER_BYTES]
        if len(header) > 2 and header[2] & ~SIGNED_FLAG:
            return 0  # the specification: a frame with an unknown incompatibility flag is dropped
        if len(header) < HEADER_BYTES:
            return None
        layout = self._layout.get(int.from_bytes(header[7:10], "little"))
        if layout is None or not header[1]:
            return 0
        if header[1] > layout[1] and not self._takes_longer:
            return 0
        signature = SIGNATURE_BYTES if header[2] & SIGNED_FLAG else 0
        return HEADER_BYTES + header[1] + CHECKSUM_BYTES + signature

    def _checksum_is_good(self, start: int) -> bool:
        buffer = self._buffer
        end = start + HEADER_BYTES + buffer[start + 1]
        checked = buffer[start + 1 : end]
        checked.append(self._layout[int.from_bytes(buffer[start + 7 : start + 10], "little")][0])
        checksum: int = self._dialect.x25crc(checked).crc
        return checksum == int.from_bytes(buffer[end : end + CHECKSUM_BYTES], "little")

    def _next_in_step(self, position: int) -> int | None:
        """Return where two good frames begin that adjoin each other and follow the last accepted
        message.

        A corrupt length makes a frame seem to be still arriving. Waiting for it would hold back the
        good messages that have arrived meanwhile; these prove that there is no such frame.
        """
        buffer = self._buffer
        while (start := buffer.find(MAGIC, position)) >= 0:
            first = self._frame_length(start) or 0
            behind = start + first
            if first and behind < len(buffer) and buffer[behind] == MAGIC:
                second = self._frame_length(behind) or 0
                if (
                    second
                    and behind + second <= len(buffer)
                    and self._follows_last(start)
                    and buffer[behind + 5 : behind + 7] == buffer[start + 5 : start + 7]
                    and buffer[behind + 4] == (buffer[start + 4] + 1) & 0xFF
                    and self._checksum_is_good(start)
                    and self._checksum_is_good(behind)
                ):
                    return start
            position = start + 1
        return None

    def _follows_last(self, start: int) -> bool:
        sender = (self._buffer[start + 5], self._buffer[start + 6])
        last = self._last.get(sender)
        if last is None:
            return not self._last
        return 1 <= (self._buffer[start + 4] - last[0]) & 0xFF <= SEQUENCE_WINDOW

    def _accept(self, frame: bytes, messages: list[Message]) -> None:
        sender, sequence = (frame[5], frame[6]), frame[4]
        identity = sequence, frame
        last = self._last.get(sender)
        if last == identity:
            self.messages_repeated += 1
            return
        try:
            message = self._decoded(frame)
        except (self._dialect.MAVError, struct.error, ValueError):
            self.bytes_skipped += len(frame)
            return
        if last is not None:
            self._lost[sender] += (sequence - last[0] - 1) & 0xFF
        self._last[sender] = identity
        self.messages_received += 1
        messages.append(message)

    def _decoded(self, frame: bytes) -> Message:
        number = int.from_bytes(frame[7:10], "little")
        if layout := self._of_bytes.get(number):
            return BytesMessage(self._dialect.mavlink_map[number], layout, frame)
        return self._mavlink.decode(bytearray(frame))


class FrameEncoder:
    """An encoder of frames with ascending sequence numbers, as one sender."""

    def __init__(self, dialect: Dialect, system: int, component: int) -> None:
        self._crc: Callable[[bytes], Any] = dialect.x25crc
        self._crc_extra = {n: kind.crc_extra for n, kind in dialect.mavlink_map.items()}
        self._mavlink = dialect.MAVLink(None, srcSystem=system, srcComponent=component)
        self._sender = bytes((system, component))

    def encode(self, message: Message) -> bytes:
        """Return the frame of a message of the dialect."""
        frame: bytes = message.pack(self._mavlink)
        self._mavlink.seq = (self._mavlink.seq + 1) & 0xFF
        return bytes(frame)

    def encode_payload(self, message_id: int, payload: bytes) -> bytes:
        """Return the frame of a payload that is packed already.

        Integers in a PARAM_SET travel as the bits of a float; a Python float would change some.
        """
        payload = payload.rstrip(b"\0") or b"\0"
        head = bytes((len(payload), 0, 0, self._mavlink.seq)) + self._sender
        checked = head + message_id.to_bytes(3, "little") + payload
        self._mavlink.seq = (self._mavlink.seq + 1) & 0xFF
        crc: int = self._crc(checked + bytes((self._crc_extra[message_id],))).crc
        return bytes((MAGIC,)) + checked + crc.to_bytes(2, "little")


PIECE_BYTES = 50
SEVERITY_CRITICAL = 2  # MAV_SEVERITY: smaller numbers are worse
SEVERITY_ERROR = 3
SEVERITY_WARNING = 4
SEVERITY_NOTICE = 5
SEVERITY_INFO = 6
GAP = "…"  # stands for pieces that were lost
UNFINISHED_LIMIT = 8  # texts whose last piece has not come


@dataclass(frozen=True)
class StatusText:
    """A whole STATUSTEXT."""

    severity: int
    text: str

    @property
    def is_error(self) -> bool:
        return self.severity <= SEVERITY_ERROR


def whole_text(severity: int, data: bytes) -> StatusText:
    """Return the text without unprintable characters at its end, such as PX4's tab."""
    text = data.decode(errors="replace")
    while text and not text[-1].isprintable():
        text = text[:-1]
    return StatusText(severity, printable(text))


class TextAssembler:
    """The pieces of long texts. The last piece of a text is shorter than the others."""

    def __init__(self) -> None:
        self._unfinished: dict[tuple[int, int, int], dict[int, bytes]] = {}
        self._finished: dict[int, bytes] = {}  # the pieces of the text before

    def add(self, message: Message) -> StatusText | None:
        """Return the text that this piece completes; None if pieces are missing."""
        piece = payload_of(message)[1 : 1 + PIECE_BYTES].split(b"\0")[0]
        if not message.id:
            return whole_text(message.severity, piece)
        index = message.chunk_seq
        key = (message.get_srcSystem(), message.get_srcComponent(), message.id)
        pieces = self._unfinished.get(key, {})
        if piece in (pieces.get(index), None if pieces else self._finished.get(index)):
            return None  # it came before
        if index == 0:
            pieces = {}
        pieces[index] = piece
        if len(piece) == PIECE_BYTES:
            self._unfinished[key] = pieces
            if len(self._unfinished) > UNFINISHED_LIMIT:
                del self._unfinished[next(iter(self._unfinished))]
            return None
        self._unfinished.pop(key, None)
        self._finished = pieces
        text = b"".join(pieces.get(at, GAP.encode()) for at in range(index + 1))
        return whole_text(message.severity, text)
