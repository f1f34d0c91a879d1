"""Several observations under way at once, so that a slow link is not waited for after each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from rltools_host.clients.file_packet import Progress
from rltools_host.clients.messages import Action, action_of
from rltools_host.link.connection import Connection
from rltools_host.link.exchange import ANSWER_LIMIT_S, Exchange

# A board without flow control holds what comes while it computes: 1,024 bytes on the smallest
# (docs/protocol.md, "On an emulator"), where an RLT_OBSERVATION has up to 224.
MESSAGES_UNDER_WAY = 4


class Pipeline:
    """Observations that the board answers alike as often as they are sent.

    The board answers in the order in which it is asked, and names the tick. So what was sent before
    an observation that is answered, and is not answered itself, was lost: it is sent again.
    """

    def __init__(self, connection: Connection, send: Callable[[int], None], window: int) -> None:
        self._connection = connection
        self._send = send  # the observation with this tick
        self._window = window

    def run(self, ticks: Sequence[int], progress: Progress | None = None) -> list[Action]:
        """The answers to the observations with these ticks, in their order."""
        waiting = deque(ticks)
        under_way: dict[int, None] = {}  # in the order of their last sending
        answers: dict[int, Action] = {}
        clock = self._connection.clock
        deadline = clock() + ANSWER_LIMIT_S

        def send(tick: int) -> None:
            under_way.pop(tick, None)
            under_way[tick] = None
            self._send(tick)

        with Exchange(self._connection, "RLT_ACTION") as exchange:
            while waiting or under_way:
                while waiting and len(under_way) < self._window:
                    send(waiting.popleft())
                action = exchange.wait(action_of)
                if action is None and clock() >= deadline:
                    raise exchange.unanswered("an action")
                if action is not None and action.tick not in under_way:
                    continue  # answered before
                lost = list(under_way)
                if action is not None:
                    lost = lost[: lost.index(action.tick)]
                    del under_way[action.tick]
                    answers[action.tick] = action
                    deadline = clock() + ANSWER_LIMIT_S
                for tick in lost:
                    send(tick)
                if progress is not None:
                    progress(len(answers), len(ticks))
        return [answers[tick] for tick in ticks]
