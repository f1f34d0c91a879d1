"""The environment server, which plays the episodes of a task, as the training side sees it; needs
no NumPy."""

from __future__ import annotations

import abc
import ctypes
import math
import os
import time
from dataclasses import dataclass

from rltools_host.errors import EnvironmentLostError, UsageError
from rltools_host.lines import aside
from rltools_host.runs.task import Task

FAULT = "the environment failed: "  # an event of a run, before its sentence
OUTSIDE = "an observation was clipped to its range: "  # the same
LIMIT_VARIABLE = "RLT_ENVIRONMENT_LIMIT_S"
LIMIT_S = 120.0  # that one call of an environment may take
NOTHING, START, MAKE, RESET, STEP, CLOSE = range(6)  # what is called of an environment
CLOSE_S = 10.0  # that all of them may take to close at the end, where the user says no limit
CALLS = {
    START: "has not started",
    MAKE: "has not been made",
    RESET: "has not returned from reset",
    STEP: "has not returned from step",
    CLOSE: "has not returned from close",
}
TEXT_BYTES = 1024


@dataclass(frozen=True)
class Faults:
    """The number of times that an environment failed, or left its own ranges, with the first
    sentence."""

    count: int = 0
    first: str = ""  # a sentence
    given_up: str = ""  # why nothing is played any more
    outside: int = 0  # observations that are not within the ranges which the policy states of them
    first_outside: str = ""


class PlayState(ctypes.Structure):
    """The state of playing, in memory that the player writes and the waiting side reads, also from
    another process.

    A text is written before its count, so that a reader that sees the count sees all of the text.
    """

    _fields_ = (
        ("calling", ctypes.c_uint32),  # NOTHING between calls
        ("since_s", ctypes.c_double),  # by the monotonic clock, which all processes share
        ("answers", ctypes.c_uint64),  # calls that have ended
        ("_count", ctypes.c_uint64),
        ("_outside", ctypes.c_uint64),
        ("_first", ctypes.c_char * TEXT_BYTES),
        ("_first_outside", ctypes.c_char * TEXT_BYTES),
        ("_given_up", ctypes.c_char * (2 * TEXT_BYTES)),
        ("_not_closed", ctypes.c_char * TEXT_BYTES),
    )
    calling: int
    since_s: float
    answers: int
    _count: int
    _outside: int
    _first: bytes
    _first_outside: bytes
    _given_up: bytes
    _not_closed: bytes

    def call(self, what: int) -> None:
        """Record that the user's code is called from now on."""
        self.since_s = time.monotonic()
        self.calling = what

    def answered(self) -> None:
        """Record that the call has returned, or raised."""
        self.calling = NOTHING
        self.answers += 1

    def count_fault(self, sentence: str) -> None:
        if not self._count:
            self._first = stored(sentence, TEXT_BYTES)
        self._count += 1

    def count_outside(self, sentence: str) -> None:
        if not self._outside:
            self._first_outside = stored(sentence, TEXT_BYTES)
        self._outside += 1

    def give_up(self, sentence: str) -> None:
        self._given_up = stored(sentence, 2 * TEXT_BYTES)

    @property
    def not_closed(self) -> str:
        """Return why an environment could not be closed, the first of them; empty if all could."""
        return self._not_closed.decode(errors="ignore")

    @not_closed.setter
    def not_closed(self, sentence: str) -> None:
        if not self._not_closed:
            self._not_closed = stored(sentence, TEXT_BYTES)

    @property
    def waited_s(self) -> float:
        """Return the seconds that the present call takes up to now; 0 between calls."""
        return time.monotonic() - self.since_s if self.calling else 0.0

    def faults(self) -> Faults:
        count, outside = self._count, self._outside
        return Faults(
            count,
            self._first.decode(errors="ignore") if count else "",
            self._given_up.decode(errors="ignore"),
            outside,
            self._first_outside.decode(errors="ignore") if outside else "",
        )


def stored(text: str, size: int) -> bytes:
    return text.replace("\0", " ").encode(errors="replace")[: size - 1]


class EnvironmentServer(abc.ABC):
    """The player of a task's episodes for the program that trains."""

    task: Task
    address: str  # of its socket, for the program that trains

    def __init__(self, name: str, state: PlayState) -> None:
        self._name = name
        self._state = state
        self._limit_s = call_limit_s()
        self._answers_seen = 0
        self._overdue = ""
        self._has_reported_closing = False
        state.call(START)

    def faults(self) -> Faults:
        """Return how often an environment has failed up to now."""
        return self._state.faults()

    def failure(self) -> str:
        """Return why it has stopped playing; empty while it plays."""
        return self._overdue or self._state.faults().given_up or self._ended()

    def is_awaited(self) -> bool:
        """Return whether the program that trains may be silent because it waits for an environment.

        An environment is called, or has answered since the last question. Ends a player whose call
        takes too long.
        """
        self.look()
        answers = self._state.answers
        is_playing = self._state.calling != NOTHING or answers != self._answers_seen
        self._answers_seen = answers
        return is_playing and not self.failure()

    def look(self) -> None:
        """End a player whose call takes too long; failure() then says which."""
        call = self._state.calling
        # A process takes its time to start, whatever its environments may take.
        limit_s = max(self._limit_s, LIMIT_S) if call == START else self._limit_s
        if self._overdue or call == NOTHING or self._state.waited_s <= limit_s:
            return
        self._overdue = (
            f"the environment {self._name} {CALLS[call]} for {limit_s:g} s: find out why it waits, "
            f"or set {LIMIT_VARIABLE} to more seconds"
        )
        self._break_off()

    def _require_in_time(self) -> None:
        """Raise EnvironmentLostError if a call takes too long while it starts."""
        self.look()
        if self._overdue:
            raise EnvironmentLostError(self._overdue)

    def _report_closing(self, is_closed: bool) -> None:
        """Print once what went wrong as the environments were closed; the run is not affected."""
        sentence = self._state.not_closed
        if not is_closed:
            sentence = sentence or f"close has not returned for {closing_limit_s():g} s"
        if sentence and not self._has_reported_closing:
            self._has_reported_closing = True
            aside(f"note: the environment {self._name} may not be closed: {sentence}")

    @abc.abstractmethod
    def _ended(self) -> str:
        """Return why the player has ended by itself; empty while it runs."""

    @abc.abstractmethod
    def _break_off(self) -> None:
        """Stop answering the program that trains, so that it notices at once."""

    @abc.abstractmethod
    def close(self) -> None:
        """End it; a second call does nothing."""


def closing_limit_s() -> float:
    """Return the seconds that closing may take at the end: CLOSE_S, or the user's limit of one
    call."""
    return call_limit_s() if os.environ.get(LIMIT_VARIABLE) else CLOSE_S


def call_limit_s() -> float:
    """Return the seconds that one call of an environment may take: LIMIT_S, or the user's limit."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return LIMIT_S
    try:
        limit_s = float(text)
    except ValueError:
        limit_s = math.nan
    if not limit_s > 0.0:
        raise UsageError(f'{LIMIT_VARIABLE}="{text}": give seconds above zero, such as 600')
    return limit_s
