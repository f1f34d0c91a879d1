"""Who plays the episodes of a task, as those see it who train; without what only players need."""

from __future__ import annotations

import abc
import math
import os
import secrets

from rltools_host.errors import EnvironmentLostError, UsageError
from rltools_host.gymnasium_tasks.play_state import (
    MAKE,
    NOTHING,
    RESET,
    START,
    STEP,
    Faults,
    PlayState,
)
from rltools_host.gymnasium_tasks.task import Task

FAULT = "the environment failed: "  # an event of a run, before its sentence
OUTSIDE = "an observation lies outside its range: "  # the same
LIMIT_VARIABLE = "RLT_ENVIRONMENT_LIMIT_S"
LIMIT_S = 120.0  # that one call of an environment may take
CALLS = {START: "has not started", MAKE: "has not been made", RESET: "reset", STEP: "step"}


class EnvironmentServer(abc.ABC):
    """Plays the episodes of a task for the program that trains."""

    task: Task
    address: str  # of its socket, in the abstract namespace: no file is left of it

    def __init__(self, name: str, state: PlayState) -> None:
        self._name = name
        self._state = state
        self._limit_s = call_limit_s()
        self._answers_seen = 0
        self._overdue = ""

    def faults(self) -> Faults:
        """How often an environment has failed up to now."""
        return self._state.faults()

    def failure(self) -> str:
        """Why it plays no more; empty as long as it does."""
        return self._overdue or self._state.faults().given_up or self._ended()

    def is_awaited(self) -> bool:
        """Whether the program that trains may be silent because it waits for an environment: one is
        called, or has answered since this was asked before. Ends who plays where a call takes
        longer than it may."""
        self.look()
        answers = self._state.answers
        is_playing = self._state.calling != NOTHING or answers != self._answers_seen
        self._answers_seen = answers
        return is_playing and not self.failure()

    def look(self) -> None:
        """Ends who plays where a call takes longer than it may; failure() then says which."""
        call = self._state.calling
        # A process takes its time to start, whatever its environments may take.
        limit_s = max(self._limit_s, LIMIT_S) if call == START else self._limit_s
        if self._overdue or call == NOTHING or self._state.waited_s <= limit_s:
            return
        said = CALLS[call]
        what = f"has not returned from {said}" if call in (RESET, STEP) else said
        self._overdue = (
            f"the environment {self._name} {what} for {limit_s:g} s: find out why it waits, "
            f"or set {LIMIT_VARIABLE} to more seconds"
        )
        self._break_off()

    def _require_in_time(self) -> None:
        """While it starts: EnvironmentLostError where a call takes longer than it may."""
        self.look()
        if self._overdue:
            raise EnvironmentLostError(self._overdue)

    @abc.abstractmethod
    def _ended(self) -> str:
        """Why what plays has ended by itself; empty as long as it has not."""

    @abc.abstractmethod
    def _break_off(self) -> None:
        """The program that trains gets no answer any more, and hears so at once."""

    @abc.abstractmethod
    def close(self) -> None:
        """Ends it; a second time does nothing."""


def new_address() -> str:
    """A name that nobody can guess; who connects must be of the same user besides."""
    return f"rlt-{secrets.token_hex(16)}"


def call_limit_s() -> float:
    """How long one call of an environment may take: LIMIT_S, or what the user says."""
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
