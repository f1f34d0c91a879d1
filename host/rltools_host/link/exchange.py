"""A request to a board and its answer. A request is repeated until it is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from rltools_host.errors import LinkLostError
from rltools_host.link.connection import Connection
from rltools_host.link.framing import Message, StatusText

ANSWER_TIMEOUT_S = 1.0  # then a request is sent again
ANSWER_LIMIT_S = 15.0  # then the board is taken for lost; a step on an emulated board takes a while

Value = TypeVar("Value")


class Exchange:
    """Listens for messages of some types, and for error texts, from its construction on.

    The link keeps the order of messages, and a board answers in the order of the requests. So the
    late answer to an earlier request can arrive in an exchange only where no other exchange lies
    between: who must know how a board stands after a request asks behind that request's answer.
    """

    def __init__(self, connection: Connection, *types: str) -> None:
        self.connection = connection
        self.sent = 0  # requests
        self.error_text = ""  # the last one
        connection.deliver_now()
        self._queue = connection.open_queue(*types, "STATUSTEXT")

    def ask(
        self, send: Callable[[], None], answer_of: Callable[[Message], Value | None], what: str
    ) -> Value:
        """Sends a request, again and again, until `answer_of` finds its answer."""
        for _ in self.attempts(send):
            answer = self.wait(answer_of)
            if answer is not None:
                return answer
        raise self.unanswered(what)

    def attempts(self, send: Callable[[], None]) -> Iterator[int]:
        """Sends a request, again and again, for as long as an answer can be expected."""
        clock = self.connection.clock
        deadline = clock() + ANSWER_LIMIT_S
        while True:
            if self.connection.is_excused():
                deadline = clock() + ANSWER_LIMIT_S
            if clock() >= deadline:
                return
            self.sent += 1
            send()
            yield self.sent

    def wait(
        self, answer_of: Callable[[Message], Value | None], timeout_s: float | None = None
    ) -> Value | None:
        """The first answer among the messages; None after the time."""
        clock = self.connection.clock
        deadline = clock() + (ANSWER_TIMEOUT_S if timeout_s is None else timeout_s)
        while (item := self._queue.wait(deadline - clock())) is not None:
            if isinstance(item, StatusText):
                self._take_text(item)
            elif (answer := answer_of(item)) is not None:
                return answer
        return None

    def unanswered(self, what: str) -> LinkLostError:
        return LinkLostError(
            f"the board on {self.connection.description} does not answer for {what}: "
            f"check the cable or reset the board{self.because()}"
        )

    def because(self) -> str:
        """What the board said of an error meanwhile, as a clause."""
        while (item := self._queue.take()) is not None:
            if isinstance(item, StatusText):
                self._take_text(item)
        return f' (it says "{self.error_text}")' if self.error_text else ""

    def _take_text(self, text: StatusText) -> None:
        if text.is_error:
            self.error_text = text.text

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.close()
