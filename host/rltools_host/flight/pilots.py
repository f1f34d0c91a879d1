"""Who flies: the policy on a board, or the same one on this machine, behind one interface."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from rltools_host.build import cmake
from rltools_host.clients.ticks import TickLoop
from rltools_host.errors import RltError
from rltools_host.policies.image import Float32Array, PolicyImage

BOUNDARY = 64  # bytes, on which the library's memory begins


class Answer(NamedTuple):
    """Of the executor (docs/executor.md)."""

    action: Float32Array  # (4), thrusts as parts of the greatest ones
    status: int
    cost: int = 0  # in counts of a board's counter


class Pilot(Protocol):
    def act(self, now_us: int, taken_us: int, observation: Float32Array) -> Answer: ...

    def texts(self) -> list[str]:
        """What it has said since the last call."""
        ...


class BoardPilot:
    """The policy on a board."""

    def __init__(self, loop: TickLoop) -> None:
        self._loop = loop

    def act(self, now_us: int, taken_us: int, observation: Float32Array) -> Answer:
        action = self._loop.act(now_us, taken_us, observation.tolist())
        values = np.array(action.action_bits, np.uint32).view(np.float32)
        return Answer(values, action.status, action.cost)

    def texts(self) -> list[str]:
        found = [text.text for text in self._loop.texts]
        self._loop.texts.clear()
        return found


@cache
def pilot_library() -> ctypes.CDLL:
    """host/native/pilot_library.cpp, built where it is not up to date."""
    library = ctypes.CDLL(str(cmake.host_library("pilot")))
    pointer, word = ctypes.c_void_p, ctypes.c_uint32
    library.rlt_pilot_bytes.restype = ctypes.c_size_t
    library.rlt_pilot_begin.argtypes = [pointer, pointer, word, ctypes.c_int]
    library.rlt_pilot_tick.argtypes = [pointer, word, word, pointer, pointer]
    return library


class HostPilot:
    """The policy on this machine, in the hands of what runs on boards, policy/deployment.h.

    A policy in trial is dropped where it gives a number that is not finite.
    """

    def __init__(self, image: PolicyImage, in_trial: bool) -> None:
        self._library = pilot_library()
        memory = np.zeros(self._library.rlt_pilot_bytes() + BOUNDARY, np.uint8)
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
