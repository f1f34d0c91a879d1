"""A connection with one board: messages to it, and its messages in queues by type.

A client opens a queue for the message types of its service (`Connection.open_queue`). A queue has
what arrived while it was open, in order; types without a queue are dropped. A request opens a queue
of its own (Exchange), so that a message from before the request is not taken for its answer.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from rltools_host.boards.framing import (
    Dialect,
    FrameDecoder,
    FrameEncoder,
    Message,
    StatusText,
    TextAssembler,
)
from rltools_host.boards.transport import Link
from rltools_host.build.boards import Address as Address
from rltools_host.errors import LinkLostError

SILENCE_LIMIT_S = 20.0  # without any message, heartbeats included


HOST = Address(255, 190)
EVERYONE = Address(0, 0)
ANSWER_TIMEOUT_S = 1.0  # then a request is sent again
ANSWER_LIMIT_S = 15.0  # then the board is taken for lost; a step on an emulated board takes a while
LARGEST_U8 = 255  # repetitions of a command that differ: a waiting client may repeat it for hours
Value = TypeVar("Value")


class MessageQueue:
    """Messages of some types, in order of arrival, until it is closed."""

    def __init__(self, connection: Connection, types: tuple[str, ...]) -> None:
        self._connection = connection
        self._types = types
        self._items: deque[Message | StatusText] = deque()

    def put(self, item: Message | StatusText) -> None:
        self._items.append(item)

    def take(self) -> Message | StatusText | None:
        """Return the next message that has arrived; None if there is none."""
        return self._items.popleft() if self._items else None

    def wait(self, timeout_s: float) -> Message | StatusText | None:
        """Return the next message, or None after the time."""
        clock = self._connection.clock
        deadline = clock() + timeout_s
        while not self._items:
            left_s = deadline - clock()
            if left_s <= 0.0:
                return None
            self._connection.deliver(left_s)
        return self._items.popleft()

    def drop(self, *types: str) -> None:
        """Remove the messages of these types."""
        self._items = deque(
            item
            for item in self._items
            if isinstance(item, StatusText) or item.get_type() not in types
        )

    def close(self) -> None:
        self._connection.close_queue(self, self._types)

    def __len__(self) -> int:
        return len(self._items)

    def __enter__(self) -> MessageQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Connection:
    """Messages to and from the node `target`; from any node while there is none."""

    def __init__(
        self,
        link: Link,
        dialect: Dialect,
        target: Address | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.link = link
        self.description = link.description
        self.dialect = dialect
        self.target = target
        self.clock = clock
        # Whether the board may be silent now, as it waits for an environment server.
        self.is_excused: Callable[[], bool] = lambda: False
        self.decoder = FrameDecoder(dialect)
        self.bytes_received = 0
        self._encoder = FrameEncoder(dialect, *HOST)
        self._arrived: deque[Message] = deque()
        self._queues: dict[str, list[MessageQueue]] = {}
        self._texts = TextAssembler()
        self._last_heard = clock()

    # -- queues ------------------------------------------------------------------------------------

    def open_queue(self, *types: str) -> MessageQueue:
        """Open a queue of the messages of these types that arrive from now on."""
        queue = MessageQueue(self, types)
        for name in types:
            self._queues.setdefault(name, []).append(queue)
        return queue

    def close_queue(self, queue: MessageQueue, types: tuple[str, ...]) -> None:
        for name in types:
            self._queues[name] = [other for other in self._queues[name] if other is not queue]

    # -- receiving ---------------------------------------------------------------------------------

    def deliver(self, timeout_s: float) -> bool:
        """Put one message into its queues; read the link once if none has arrived.

        One at a time: when the answer to a request is taken, what came after it is in no queue yet,
        so that a client can tell what came before from what came after.
        """
        if not self._arrived:
            self._read(timeout_s)
        if not self._arrived:
            return False
        message = self._arrived.popleft()
        name = message.get_type()
        if queues := self._queues.get(name):
            item = self._texts.add(message) if name == "STATUSTEXT" else message
            if item is not None:
                for queue in queues:
                    queue.put(item)
        return True

    def deliver_arrived(self) -> None:
        """Put all that has been read into the queues, also from a link that is lost since."""
        while self._arrived:
            self.deliver(0.0)

    def deliver_now(self) -> None:
        """Read what waits at the link, and put it into the queues."""
        self._read(0.0)
        self.deliver_arrived()

    def _read(self, timeout_s: float) -> bool:
        """Read once from the link, and return whether anything came."""
        chunk = self.link.read(timeout_s)
        if not chunk:
            return False
        self.bytes_received += len(chunk)
        for message in self.decoder.feed(chunk):
            if self._is_from_target(message) and is_for_host(message):
                self._last_heard = self.clock()
                self._arrived.append(message)
        return True

    def _is_from_target(self, message: Message) -> bool:
        return self.target is None or self.target == sender_of(message)

    # -- silence -----------------------------------------------------------------------------------

    def expect_signs(self) -> None:
        """Count silence from now on."""
        self._last_heard = self.clock()

    @property
    def silence_s(self) -> float:
        """Return the seconds since the target's last message, or since silence counts."""
        return self.clock() - self._last_heard

    def check_silence(self) -> None:
        """Raise LinkLostError if the board has been silent for too long, and nothing excuses
        that."""
        if self.is_excused():
            self.expect_signs()
        if self.silence_s > SILENCE_LIMIT_S:
            raise LinkLostError(
                f"the board on {self.description} has been silent for {SILENCE_LIMIT_S:.0f} s: "
                "check the cable or reset the board"
            )

    @property
    def messages_lost(self) -> int:
        """Return how many messages of the target did not arrive, by its sequence numbers."""
        if self.target is None:
            return self.decoder.messages_lost
        return self.decoder.messages_lost_from(self.target)

    # -- sending -----------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        self._write(self._encoder.encode(message))

    def send_payload(self, message_id: int, payload: bytes) -> None:
        """Send a payload that is packed already."""
        self._write(self._encoder.encode_payload(message_id, payload))

    def send_command(
        self,
        command: int,
        *parameters: float,
        confirmation: int = 0,
        target: Address | None = None,
    ) -> None:
        address = target or self.target or EVERYONE
        confirmation = min(confirmation, LARGEST_U8)
        all_seven = (*parameters, *(0.0,) * (7 - len(parameters)))
        self.send(
            self.dialect.MAVLink_command_long_message(*address, command, confirmation, *all_seven)
        )

    def request_message(self, message_id: int, target: Address | None = None) -> None:
        """Ask for a message; the board acknowledges, then sends it."""
        self.send_command(self.dialect.MAV_CMD_REQUEST_MESSAGE, float(message_id), target=target)

    def _write(self, data: bytes) -> None:
        """Write to the link; if that is lost, first read what the board sent before."""
        try:
            self.link.write(data)
        except LinkLostError:
            with contextlib.suppress(LinkLostError):
                while self._read(0.0):
                    pass
            raise

    def close(self) -> None:
        self.link.close()


def sender_of(message: Message) -> Address:
    return Address(message.get_srcSystem(), message.get_srcComponent())


def is_for_host(message: Message) -> bool:
    """Return whether a message is for this node; address 0 and messages without one are for all."""
    return getattr(message, "target_system", 0) in (0, HOST.system) and getattr(
        message, "target_component", 0
    ) in (0, HOST.component)


class Exchange:
    """A request and its answers: messages of some types, and error texts, from its construction on.

    The link keeps the order of messages, and a board answers in the order of the requests. So the
    late answer to an earlier request can arrive in an exchange only if no other exchange lies
    between. A client that must know a board's state after a request asks for it after that
    request's answer.
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
        """Send a request, again and again, until `answer_of` finds its answer."""
        for _ in self.attempts(send):
            answer = self.wait(answer_of)
            if answer is not None:
                return answer
        raise self.unanswered(what)

    def command(self, number: int, what: str, *parameters: float) -> bool:
        """Send a command until it is acknowledged, and return whether the board accepts it.

        COMMAND_ACK must be among the exchange's types.
        """

        def result_of(message: Message) -> int | None:
            is_answer = message.get_type() == "COMMAND_ACK" and message.command == number
            return message.result if is_answer else None

        connection = self.connection
        result = self.ask(
            lambda: connection.send_command(number, *parameters, confirmation=self.sent - 1),
            result_of,
            f"the command to {what}",
        )
        return bool(result == connection.dialect.MAV_RESULT_ACCEPTED)

    def attempts(self, send: Callable[[], None]) -> Iterator[int]:
        """Send a request, again and again, for as long as an answer can be expected."""
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
        """Return the first answer among the messages; None after the time."""
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
        """Return the board's last error text as a clause; empty if there was none."""
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


def ask(
    connection: Connection, name: str, answer_of: Callable[[Message], Value | None], what: str
) -> Value:
    """Ask for the message of this name, again and again, until `answer_of` finds its answer."""
    number: int = getattr(connection.dialect, f"MAVLINK_MSG_ID_{name}")
    with Exchange(connection, name) as exchange:
        return exchange.ask(lambda: connection.request_message(number), answer_of, what)
