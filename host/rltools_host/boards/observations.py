"""Observations to a board and its actions: several pending at once, or one by one.

Several, so that a slow link is not waited for after each; one by one for a client that needs the
last answer to decide on the next. There a repeated call, whose request or answer the link lost, has
the same time. The executor makes no second tick of it: it holds the action, so that the answer is
the same except for its status, which is then `held`. The first call resets the executor, also when
it is repeated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from rltools_host.boards.connection import (
    ANSWER_LIMIT_S,
    ANSWER_TIMEOUT_S,
    EVERYONE,
    Connection,
    Exchange,
)
from rltools_host.boards.framing import Message, StatusText
from rltools_host.boards.messages import PART_FLOATS, Action, Progress, action_of

# A board without flow control holds what comes while it computes: 1,024 bytes on the smallest
# (docs/protocol.md, "On an emulator"), where an RLT_OBSERVATION has up to 224.
MESSAGES_UNDER_WAY = 4


def send_observation(
    connection: Connection,
    tick: int,
    observation: Sequence[float],
    mode: int,
    now_us: int = 0,
    taken_us: int = 0,
) -> None:
    """Send an observation, in parts if it is longer than one message."""
    dimension, target = len(observation), connection.target or EVERYONE
    times = now_us & 0xFFFFFFFF, taken_us & 0xFFFFFFFF
    for first in range(0, dimension, PART_FLOATS):
        part = [float(value) for value in observation[first : first + PART_FLOATS]]
        part += [0.0] * (PART_FLOATS - len(part))
        connection.send(
            connection.dialect.MAVLink_rlt_observation_message(
                tick, *times, first, dimension, *target, mode, part
            )
        )


def action_at(tick: int) -> Callable[[Message], Action | None]:
    """Return the function that finds the answer to the observation with this tick."""

    def answer_of(message: Message) -> Action | None:
        action = action_of(message)
        return action if action is not None and action.tick == tick else None

    return answer_of


def answers_to(
    connection: Connection,
    send: Callable[[int], None],
    ticks: Sequence[int],
    window: int,
    progress: Progress | None,
) -> list[Action]:
    """Send the observation of each tick, `window` at once, and return the answers.

    An answer must not depend on how often its observation is sent. The board answers in the order
    in which it is asked, and names the tick. So an observation that was sent before an answered
    one, and has no answer itself, was lost: it is sent again.
    """
    waiting = deque(ticks)
    under_way: dict[int, None] = {}  # in the order of their last sending
    answers: dict[int, Action] = {}
    deadline = connection.clock() + ANSWER_LIMIT_S

    def send_last(tick: int) -> None:
        under_way.pop(tick, None)
        under_way[tick] = None
        send(tick)

    with Exchange(connection, "RLT_ACTION") as exchange:
        while waiting or under_way:
            while waiting and len(under_way) < window:
                send_last(waiting.popleft())
            action = exchange.wait(action_of)
            if action is None and connection.clock() >= deadline:
                raise exchange.unanswered("an action")
            if action is not None and action.tick not in under_way:
                continue  # answered before
            lost = list(under_way)
            if action is not None:
                lost = lost[: lost.index(action.tick)]
                del under_way[action.tick]
                answers[action.tick] = action
                deadline = connection.clock() + ANSWER_LIMIT_S
            for tick in lost:
                send_last(tick)
            if progress is not None:
                progress(len(answers), len(ticks))
    return [answers[tick] for tick in ticks]


FIRST_TICK = 0x40000000  # numbers of these calls; PolicyClient counts from 1


class TickLoop:
    """An open exchange of observations and actions; `texts` are the board's texts meanwhile."""

    def __init__(self, connection: Connection) -> None:
        self.texts: deque[StatusText] = deque()
        self.repeated = 0  # calls that were sent again
        self._connection = connection
        self._tick = FIRST_TICK
        self._queue = connection.open_queue("RLT_ACTION", "STATUSTEXT")

    def act(self, now_us: int, taken_us: int, observation: Sequence[float]) -> Action:
        """Return what the executor does at `now_us` with an observation of `taken_us`."""
        dialect = self._connection.dialect
        is_first = self._tick == FIRST_TICK
        mode = dialect.RLT_OBSERVE_BEGIN if is_first else dialect.RLT_OBSERVE_STEP
        clock = self._connection.clock
        deadline = clock() + ANSWER_LIMIT_S
        while clock() < deadline:
            send_observation(self._connection, self._tick, observation, mode, now_us, taken_us)
            if (action := self._answer()) is not None:
                self._tick += 1
                return action
            self.repeated += 1
        with Exchange(self._connection) as exchange:
            raise exchange.unanswered("an action")

    def _answer(self) -> Action | None:
        clock = self._connection.clock
        deadline = clock() + ANSWER_TIMEOUT_S
        while (item := self._queue.wait(deadline - clock())) is not None:
            if isinstance(item, StatusText):
                self.texts.append(item)
            elif (action := action_at(self._tick)(item)) is not None:
                return action
        return None

    def __enter__(self) -> TickLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.close()
