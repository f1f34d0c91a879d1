"""Requests of MAVLink FTP over a link of any delay and bandwidth: as many pending as the link
carries, each sent again until its answer comes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rltools_host.boards.messages import Opcode, Packet
from rltools_host.errors import LinkLostError

REPLY_TIMEOUT_S = 1.0
TICK_S = 1e-6  # less than that is no time to wait for
# Without anything new for so many times the shortest timeout, and half as often the link's own, the
# board is taken for lost.
PATIENCE = 60
# Their answers carry the session's number.
SESSION_OPERATIONS = (
    Opcode.READ_FILE,
    Opcode.BURST_READ_FILE,
    Opcode.WRITE_FILE,
    Opcode.TERMINATE_SESSION,
)


class SessionClosedError(LinkLostError):
    """A transfer whose session the board has closed."""


class Channel(Protocol):
    """A carrier of the payloads of FILE_TRANSFER_PROTOCOL messages."""

    description: str

    def send(self, payload: bytes) -> None: ...

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next payload from the board, or None after the time."""


class Pace:
    """The timeout of requests on this link, and how many it carries at once.

    The time after which a request counts as lost is RFC 6298's, from the answers' times, and not
    below REPLY_TIMEOUT_S. It doubles with the second and the third silence, and is
    LONGEST_S at most. As many requests are pending as are sent in the time of the fastest answer,
    one each SPACING_S: a link without delay has one, and a narrow one is not filled up.
    """

    SPACING_S = 0.015
    MAX_PENDING = 40
    LONGEST_S = 10.0
    MAX_DOUBLINGS = 2

    def __init__(self) -> None:
        self._mean_s: float | None = None
        self._deviation_s = 0.0
        self._fastest_s = 0.0
        self._silences = 0

    def took(self, seconds: float) -> None:
        """Record that a request that was sent once was answered after this time."""
        if self._mean_s is None:
            self._mean_s, self._deviation_s, self._fastest_s = seconds, seconds / 2, seconds
        else:
            self._deviation_s += (abs(seconds - self._mean_s) - self._deviation_s) / 4
            self._mean_s += (seconds - self._mean_s) / 8
            self._fastest_s = min(self._fastest_s, seconds)

    def heard(self) -> None:
        """Record that something came that was asked for."""
        self._silences = 0

    def lost(self) -> None:
        """Record that nothing came in time."""
        self._silences += 1

    @property
    def _patience(self) -> int:
        return 1 << min(max(0, self._silences - 1), self.MAX_DOUBLINGS)

    @property
    def usual_s(self) -> float:
        """Return the timeout while the link carries something."""
        estimate = 0.0 if self._mean_s is None else self._mean_s + 4 * self._deviation_s
        return max(REPLY_TIMEOUT_S, min(estimate, self.LONGEST_S))

    @property
    def timeout_s(self) -> float:
        return min(self.usual_s * self._patience, self.LONGEST_S)

    @property
    def under_way(self) -> int:
        """Return how many requests may be pending."""
        wished = min(int(self._fastest_s / self.SPACING_S), self.MAX_PENDING)
        return max(1, wished // self._patience)


@dataclass
class PendingRequest:
    """A request that is pending."""

    request: Packet
    since: float
    is_repeated: bool = False
    passed: int = 0  # by answers to later requests: a link keeps the order


class PendingRequests:
    """The requests that wait for their answers, the oldest first."""

    PASSED_IS_LOST = 3

    def __init__(self, pace: Pace, clock: Callable[[], float]) -> None:
        self._pace = pace
        self._clock = clock
        self._asked: OrderedDict[int, PendingRequest] = OrderedDict()  # by number of the answer

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def has_room(self) -> bool:
        return len(self._asked) < self._pace.under_way

    def add(self, request: Packet) -> None:
        self._asked[(request.sequence + 1) & 0xFFFF] = PendingRequest(request, self._clock())

    def of(self, reply: Packet) -> Packet | None:
        """Return the request that this packet's number answers; None if there is none."""
        asked = self._asked.get(reply.sequence)
        return None if asked is None else asked.request

    def answered(self, reply: Packet) -> None:
        """Remove a request, and count that its answer passed those before it."""
        number = reply.sequence
        if not self._asked[number].is_repeated:
            self._pace.took(self._clock() - self._asked[number].since)
            for earlier, asked in self._asked.items():
                if earlier == number:
                    break
                asked.passed += 1
        self._pace.heard()
        del self._asked[number]

    def drop(self) -> None:
        """Remove all requests."""
        self._asked.clear()

    @property
    def patience_s(self) -> float:
        """Return the seconds until the oldest request counts as lost."""
        oldest = next(iter(self._asked.values()))
        return max(0.0, oldest.since + self._pace.timeout_s - self._clock())

    def lost(self) -> list[Packet]:
        """Return the requests that are to be sent again now."""
        now, timeout_s = self._clock(), self._pace.timeout_s
        items = self._asked.items()
        over = now - timeout_s + TICK_S
        late = [number for number, asked in items if asked.since <= over]
        passed = [number for number, asked in items if asked.passed >= self.PASSED_IS_LOST]
        if late:
            self._pace.lost()
        numbers = [*late, *(number for number in passed if number not in late)]
        for number in numbers:
            asked = self._asked[number]
            asked.since, asked.is_repeated, asked.passed = now, True, 0
            self._asked.move_to_end(number)
        return [self._asked[number].request for number in numbers]


def answers(reply: Packet, request: Packet) -> bool:
    """Return whether a reply answers a request of this kind, in the same session."""
    if reply.opcode not in (Opcode.ACK, Opcode.NAK) or reply.request_opcode != request.opcode:
        return False
    return reply.session == request.session or request.opcode not in SESSION_OPERATIONS


def reason_of(reply: Packet) -> int:
    return reply.data[0] if reply.data else 0
