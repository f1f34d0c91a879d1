"""How the playing of a task goes, in memory that the player writes and who waits for it reads, also
from another process: what it calls and since when, and what went wrong.
"""

from __future__ import annotations

import ctypes
import mmap
import tempfile
import time
from dataclasses import dataclass
from typing import IO

NOTHING, START, MAKE, RESET, STEP = range(5)  # what is called of an environment
TEXT_BYTES = 1024


class Page(ctypes.Structure):
    """A text is written before its count: who sees the count sees all of the text."""

    _fields_ = (
        ("calling", ctypes.c_uint32),
        ("since_s", ctypes.c_double),  # by the monotonic clock, which all processes share
        ("answered", ctypes.c_uint64),  # calls
        ("faults", ctypes.c_uint64),
        ("outside", ctypes.c_uint64),
        ("first_fault", ctypes.c_char * TEXT_BYTES),
        ("first_outside", ctypes.c_char * TEXT_BYTES),
        ("given_up", ctypes.c_char * (2 * TEXT_BYTES)),
    )


@dataclass(frozen=True)
class Faults:
    """How often an environment failed and was made again, or left its own ranges."""

    count: int = 0
    first: str = ""  # a sentence
    given_up: str = ""  # why nothing is played any more
    outside: int = 0  # observations that are not within the ranges which the policy states of them
    first_outside: str = ""


class PlayState:
    """Of one player, which starts now."""

    def __init__(self, page: Page | None = None) -> None:
        self._page = page or Page()
        self.call(START)

    @staticmethod
    def shared() -> tuple[PlayState, IO[bytes]]:
        """In a file without a name, whose descriptor a child process takes over."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - open until the child has it
        file.truncate(ctypes.sizeof(Page))
        return PlayState.of_descriptor(file.fileno()), file

    @staticmethod
    def of_descriptor(descriptor: int) -> PlayState:
        return PlayState(Page.from_buffer(mmap.mmap(descriptor, ctypes.sizeof(Page))))

    # -- the player's side -------------------------------------------------------------------------

    def call(self, what: int) -> None:
        """The user's code is called from now on."""
        self._page.since_s = time.monotonic()
        self._page.calling = what

    def answered(self) -> None:
        """It has returned, or raised."""
        self._page.calling = NOTHING
        self._page.answered += 1

    def count_fault(self, sentence: str) -> None:
        if not self._page.faults:
            self._page.first_fault = encoded(sentence, TEXT_BYTES)
        self._page.faults += 1

    def count_outside(self, sentence: str) -> None:
        if not self._page.outside:
            self._page.first_outside = encoded(sentence, TEXT_BYTES)
        self._page.outside += 1

    def give_up(self, sentence: str) -> None:
        self._page.given_up = encoded(sentence, 2 * TEXT_BYTES)

    # -- the side of who waits ---------------------------------------------------------------------

    @property
    def calling(self) -> int:
        """What is called at present; NOTHING between calls."""
        return int(self._page.calling)

    @property
    def waited_s(self) -> float:
        """How long the present call takes up to now; 0 between calls."""
        return time.monotonic() - self._page.since_s if self._page.calling else 0.0

    @property
    def answers(self) -> int:
        """How many calls have ended."""
        return int(self._page.answered)

    def faults(self) -> Faults:
        page = self._page
        count, outside = int(page.faults), int(page.outside)
        return Faults(
            count,
            decoded(page.first_fault) if count else "",
            decoded(page.given_up),
            outside,
            decoded(page.first_outside) if outside else "",
        )


def encoded(text: str, size: int) -> bytes:
    return text.replace("\0", " ").encode(errors="replace")[: size - 1]


def decoded(text: bytes) -> str:
    return text.decode(errors="ignore")
