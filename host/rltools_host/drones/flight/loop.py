"""A flight in lock-step: the simulator waits for the pilot's answer to each tick of 2 ms.

The pilot is the policy on a board, or the same one on this machine. The time that an answer takes
changes no result. A trace keeps the flight tick by tick.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rltools_host.boards.messages import EXECUTOR_STATUSES, name_of, text_of_number
from rltools_host.boards.observations import TickLoop
from rltools_host.build.native import host_library
from rltools_host.drones.flight.disturbances import START_US, TICK_US, TICKS_A_S, DisturbedLink
from rltools_host.drones.flight.simulator import Array, Cause, Flight, flight_library
from rltools_host.errors import RltError
from rltools_host.policies.image import Float32Array, PolicyImage

BOUNDARY = 64  # bytes, on which the library's memory begins


class Answer(NamedTuple):
    """The executor's answer to one tick (docs/executor.md)."""

    action: Float32Array  # (4), thrusts as parts of the greatest ones
    status: int
    cost: int = 0  # in counts of a board's counter


class BoardPilot:
    """The policy on a board."""

    def __init__(self, loop: TickLoop) -> None:
        self._loop = loop

    def act(self, now_us: int, taken_us: int, observation: Float32Array) -> Answer:
        action = self._loop.act(now_us, taken_us, observation.tolist())
        values = np.array(action.action_bits, np.uint32).view(np.float32)
        return Answer(values, action.status, action.cost)

    def texts(self) -> list[str]:
        """Return the board's texts since the last call."""
        found = [text.text for text in self._loop.texts]
        self._loop.texts.clear()
        return found


class HostPilot:
    """The policy on this machine, run by the code that runs on boards, policy/deployment.h.

    A policy on trial is dropped where its output is not finite.
    """

    def __init__(self, image: PolicyImage, in_trial: bool) -> None:
        native = host_library("pilot")
        self._library = native.functions
        memory = np.zeros(native.description["pilot_bytes"] + BOUNDARY, np.uint8)
        self._memory = memory[-memory.ctypes.data % BOUNDARY :]
        self._pilot = ctypes.c_void_p(self._memory.ctypes.data)
        data = np.frombuffer(image.data, np.uint8).copy()
        if self._library.rlt_pilot_begin(self._pilot, data.ctypes.data, data.size, int(in_trial)):
            raise RltError(f"{image.origin} cannot fly here: it is larger than boards take")

    def act(self, now_us: int, taken_us: int, observation: Float32Array) -> Answer:
        action = np.empty(4, np.float32)
        status = self._library.rlt_pilot_tick(
            self._pilot, now_us, taken_us, observation.ctypes.data, action.ctypes.data
        )
        return Answer(action, status)

    def texts(self) -> list[str]:
        return []


HELD = tuple(EXECUTOR_STATUSES).index("held")
FIRST_FAULT = tuple(EXECUTOR_STATUSES).index("no_policy")


@cache
def tick_record() -> np.dtype[Any]:
    """Return the record of a tick: the state before it, the observation that the pilot received,
    his action, the executor's status, the stated age of the observation, and the cost in counts of
    a board's counter."""
    sample = flight_library().records["Sample"]
    known = [(name, sample[name]) for name in sample.names or ()]
    return np.dtype([*known, ("age_us", "i4"), ("cost", "u4")])


def is_fault(status: int) -> bool:
    return status >= FIRST_FAULT


@dataclass(frozen=True)
class Event:
    """A change of the executor's status, or a text of the board, at a tick."""

    tick: int
    status: str  # its name in docs/executor.md; empty: a text
    text: str

    @property
    def time_s(self) -> float:
        return self.tick / TICKS_A_S

    @property
    def is_failsafe(self) -> bool:
        return bool(self.status) and is_fault(tuple(EXECUTOR_STATUSES).index(self.status))

    def document(self) -> dict[str, object]:
        return {
            "tick": self.tick,
            "time_s": self.time_s,
            "status": self.status or None,
            "text": self.text,
        }


class Trace:
    """The ticks of a flight, as far as it was flown."""

    def __init__(self, ticks: int) -> None:
        self.planned = ticks
        self.events: list[Event] = []
        self.broken: Cause | None = None  # the limit that ended it
        self.count = 0
        self._ticks = np.zeros(ticks, tick_record())
        self._states = np.zeros(ticks + 1, tick_record()["reading"])

    @property
    def ticks(self) -> Array:
        """Return the records of the ticks."""
        return self._ticks[: self.count]

    @property
    def states(self) -> Array:
        """Return records of Reading: the state before each tick, and the last one."""
        return self._states[: self.count + 1]

    @property
    def errors_m(self) -> Array:
        """Return the distances from the target, one for each of `states`."""
        states = self.states
        away = states["position_m"] - states["target_position_m"]
        distances: Array = np.linalg.norm(away.astype(np.float64), axis=1)
        return distances

    @property
    def failsafe(self) -> Event | None:
        """Return the beginning of the fail-safe; None where the policy acted all the time."""
        return next((event for event in self.events if event.is_failsafe), None)

    @property
    def is_over(self) -> bool:
        """Return whether the flight ended, and was not interrupted."""
        return self.count == self.planned or self.broken is not None

    def sha256(self) -> str:
        """Return the SHA-256 of all states and actions; the last state follows the ticks."""
        fields = [(name, tick_record()[name]) for name in ("reading", "action")]
        hashed = np.zeros(self.count, fields)
        hashed["reading"], hashed["action"] = self.ticks["reading"], self.ticks["action"]
        return hashlib.sha256(hashed.tobytes() + self.states[-1].tobytes()).hexdigest()

    def first_difference(self, other: Trace) -> int | None:
        """Return the first tick whose state or action has other bits; None where there is none. An
        interrupted flight is compared as far as it goes."""
        both = min(self.count, other.count)
        differs = np.any(words(self._states[: both + 1]) != words(other._states[: both + 1]), 1)
        actions, theirs = self._ticks["action"][:both], other._ticks["action"][:both]
        differs[:both] |= np.any(words(actions) != words(theirs), 1)
        if differs.any():
            return int(np.argmax(differs))
        ends_equal = self.count == other.count or not (self.is_over and other.is_over)
        return None if ends_equal else both

    def begin(self, state: Array) -> None:
        self._states[0] = state

    def add(self, record: Array, state: Array) -> None:
        """Append a tick, and the state after it."""
        self._ticks[self.count] = record
        self.count += 1
        self._states[self.count] = state


def words(records: Array) -> Array:
    """Return the records as rows of 32-bit words."""
    whole = np.ascontiguousarray(records)
    return whole.view(np.uint32).reshape(len(whole), -1)


def fly(
    flight: Flight,
    pilot: BoardPilot | HostPilot,
    link: DisturbedLink,
    ticks: int,
    before: Callable[[int], None] = lambda _: None,
    after: Callable[[Trace], None] = lambda _: None,
) -> Trace:
    """Fly from the flight's beginning, up to `ticks` or to a limit that breaks; call `before` ahead
    of each tick, and `after` behind it."""
    trace = Trace(ticks)
    observations = np.zeros((ticks, tick_record()["observation"].shape[0]), np.float32)
    record = np.zeros(1, tick_record())
    state = flight.read()
    trace.begin(state)
    status = -1
    for tick in range(ticks):
        observations[tick] = flight.observe()
        before(tick)
        delivery = link.at(tick)
        observation: Float32Array = observations[max(delivery.taken_tick, 0)]
        observation = link.spoil(tick, observation)
        now_us = START_US + tick * TICK_US
        answer = pilot.act(now_us, delivery.taken_us, observation)
        for text in pilot.texts():
            trace.events.append(Event(tick, "", text))
        if answer.status not in (status, HELD):
            status = answer.status
            name = name_of(status, EXECUTOR_STATUSES)
            trace.events.append(Event(tick, name, text_of_number(status, EXECUTOR_STATUSES)))
        record["reading"], record["observation"] = state, observation
        record["action"], record["status"], record["cost"] = answer.action, status, answer.cost
        record["age_us"] = now_us - delivery.taken_us
        trace.broken = flight.step(answer.action)
        state = flight.read()
        trace.add(record[0], state)
        after(trace)
        if trace.broken is not None:
            break
    return trace
