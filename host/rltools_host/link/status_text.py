"""STATUSTEXT put together from its pieces: https://mavlink.io/en/messages/common.html#STATUSTEXT."""

from __future__ import annotations

from dataclasses import dataclass

from rltools_host.link.framing import Message, payload_of

PIECE_BYTES = 50
SEVERITY_CRITICAL = 2  # MAV_SEVERITY: smaller numbers are worse
SEVERITY_ERROR = 3
SEVERITY_WARNING = 4
SEVERITY_NOTICE = 5
GAP = "…"  # stands for pieces that were lost
UNFINISHED_LIMIT = 8  # texts whose last piece has not come


@dataclass(frozen=True)
class StatusText:
    """A whole text."""

    severity: int
    text: str

    @property
    def is_error(self) -> bool:
        return self.severity <= SEVERITY_ERROR


def printable(text: str) -> str:
    """What a stranger on the port wrote, without what commands a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def whole_text(severity: int, data: bytes) -> StatusText:
    """Without what cannot be printed at its end, as PX4's tab."""
    text = data.decode(errors="replace")
    while text and not text[-1].isprintable():
        text = text[:-1]
    return StatusText(severity, printable(text))


class TextAssembler:
    """Collects the pieces of long texts. The last piece of a text is shorter than the others."""

    def __init__(self) -> None:
        self._unfinished: dict[tuple[int, int, int], dict[int, bytes]] = {}
        self._finished: dict[int, bytes] = {}  # the pieces of the text before

    def add(self, message: Message) -> StatusText | None:
        """The text that this piece completes."""
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
