"""Queues, requests and their answers, texts in pieces, silence: over a link in memory."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltools_host.boards import connection as connection_module
from rltools_host.boards.connection import (
    ANSWER_LIMIT_S,
    HOST,
    SILENCE_LIMIT_S,
    Address,
    Connection,
    Exchange,
    MessageQueue,
)
from rltools_host.boards.framing import UNFINISHED_LIMIT, TextAssembler
from rltools_host.build.cmake import load_dialect
from rltools_host.documents import printable
from rltools_host.errors import LinkLostError
from scripted_link import BOARD, ScriptedLink

DIALECT: Any = load_dialect()
OTHERS = [Address(2, 191), Address(1, 1), Address(255, 190)]


def connected(target: Address | None = BOARD) -> tuple[ScriptedLink, Connection]:
    link = ScriptedLink(DIALECT)
    return link, Connection(link, DIALECT, target, link.clock)


def heartbeat(mode: int = 0) -> Any:
    return DIALECT.MAVLink_heartbeat_message(0, 8, 0, mode, 3, 3)


def value(name: bytes, number: int) -> Any:
    return DIALECT.MAVLink_named_value_int_message(0, name, number)


def acknowledgement(command: int, result: int = 0, target: Address = HOST) -> Any:
    return DIALECT.MAVLink_command_ack_message(command, result, 0, 0, *target)


def taken(queue: MessageQueue) -> list[Any]:
    items = []
    while (item := queue.take()) is not None:
        items.append(item)
    return items


# -- queues ----------------------------------------------------------------------------------------


def test_queues_have_their_types_in_order_and_nothing_from_before() -> None:
    link, connection = connected()
    link.put(value(b"early", 0))
    connection.deliver_now()
    with connection.open_queue("NAMED_VALUE_INT", "HEARTBEAT") as both:
        beats = connection.open_queue("HEARTBEAT")
        link.put(value(b"a", 1), heartbeat(7), acknowledgement(1), value(b"b", 2))
        connection.deliver_now()
        assert [m.get_type() for m in taken(both)] == [
            "NAMED_VALUE_INT",
            "HEARTBEAT",
            "NAMED_VALUE_INT",
        ]
        assert [m.custom_mode for m in taken(beats)] == [7]
    link.put(value(b"late", 3), heartbeat(8))
    connection.deliver_now()
    assert not both
    assert len(beats) == 1


def test_what_follows_an_answer_is_in_no_queue_while_it_is_taken() -> None:
    link, connection = connected()
    values = connection.open_queue("NAMED_VALUE_INT")
    link.answer = lambda _: link.put(value(b"before", 1), acknowledgement(5), value(b"after", 2))
    with Exchange(connection, "COMMAND_ACK") as exchange:
        command = exchange.ask(
            lambda: connection.send_command(5), lambda message: message.command, "the test"
        )
    assert command == 5
    assert [m.name for m in taken(values)] == ["before"]
    connection.deliver_arrived()
    assert [m.name for m in taken(values)] == ["after"]


# -- other nodes and other hosts -------------------------------------------------------------------


@pytest.mark.parametrize("other", OTHERS)
def test_messages_of_other_nodes_are_not_taken(other: Address) -> None:
    link, connection = connected()
    queue = connection.open_queue("NAMED_VALUE_INT", "STATUSTEXT")
    wrong = [value(b"x", 1), DIALECT.MAVLink_statustext_message(2, b"wrong")]
    link.put(*wrong, sender=other)
    link.put(value(b"x", 2))
    link.put(*wrong, sender=other)
    for _ in range(3):
        connection.deliver_now()
    assert [m.value for m in taken(queue)] == [2]


@pytest.mark.parametrize("other", OTHERS)
def test_other_nodes_are_no_sign_of_the_board(
    other: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "SILENCE_LIMIT_S", 5.0)
    link, connection = connected()
    for _ in range(3):
        link.put(heartbeat(), sender=other)
        link.put(heartbeat())
        for _ in range(2):
            connection.deliver(0.0)
        link.now += 4.0
        connection.check_silence()
    link.put(heartbeat(), sender=other)
    link.now += 2.0
    connection.deliver_now()
    with pytest.raises(LinkLostError, match="the board on the script has been silent for 5 s"):
        connection.check_silence()
    connection.expect_signs()
    connection.check_silence()


@pytest.mark.parametrize(
    ("target", "arrives"),
    [
        (HOST, True),
        (Address(0, 0), True),
        (Address(HOST.system, 0), True),
        (Address(HOST.system, 230), False),
        (Address(1, HOST.component), False),
    ],
)
def test_messages_for_other_hosts_are_not_taken(target: Address, arrives: bool) -> None:
    link, connection = connected()
    queue = connection.open_queue("COMMAND_ACK")
    link.put(acknowledgement(1, target=target))
    connection.deliver_now()
    assert bool(queue) == arrives


def test_messages_go_to_the_target() -> None:
    link, connection = connected()
    connection.request_message(53000)
    connection.target = None
    connection.request_message(53000)
    assert [(m.target_system, m.target_component, m.param1) for m in link.written] == [
        (*BOARD, 53000.0),
        (0, 0, 53000.0),
    ]
    assert {(m.get_srcSystem(), m.get_srcComponent()) for m in link.written} == {(255, 190)}


# -- requests --------------------------------------------------------------------------------------


def test_answer_from_before_the_request_is_not_taken() -> None:
    link, connection = connected()
    link.put(value(b"x", 1))  # waits at the link
    link.answer = lambda _: link.put(value(b"x", 2))
    with Exchange(connection, "NAMED_VALUE_INT") as exchange:
        answer = exchange.ask(lambda: connection.send_command(1), lambda m: m.value, "the test")
    assert answer == 2


def test_request_is_repeated_until_its_answer_comes() -> None:
    link, connection = connected()

    def answer(message: Any) -> None:
        link.put(value(b"other", 1))
        if message.confirmation == 3:
            link.put(value(b"right", 2))

    link.answer = answer
    with Exchange(connection, "NAMED_VALUE_INT") as exchange:
        found = exchange.ask(
            lambda: connection.send_command(1, confirmation=exchange.sent - 1),
            lambda m: m.value if m.name == "right" else None,
            "the test",
        )
    assert (found, exchange.sent) == (2, 4)
    assert link.now == pytest.approx(3.0, abs=0.01)


def test_lost_link_gives_what_came_before() -> None:
    link, connection = connected()
    queue = connection.open_queue("NAMED_VALUE_INT")
    link.put(value(b"a", 1))
    link.put(value(b"b", 2))
    link.lost = True
    with pytest.raises(LinkLostError):
        connection.send_command(1)
    connection.deliver_arrived()
    assert [m.value for m in taken(queue)] == [1, 2]


# -- texts -----------------------------------------------------------------------------------------


def pieces_of(text: str, number: int = 7) -> list[Any]:
    """The messages of a text; a last piece of 50 bytes is followed by an empty one."""
    raw = text.encode()
    pieces = [raw[i : i + 50] for i in range(0, len(raw) + 1, 50)]
    messages = [
        DIALECT.MAVLink_statustext_message(3, piece, number if len(pieces) > 1 else 0, index)
        for index, piece in enumerate(pieces)
    ]
    link = ScriptedLink(DIALECT)
    link.put(*messages)
    return list(connection_module.FrameDecoder(DIALECT).feed(link.read(0.0)))


def assembled(messages: list[Any]) -> list[str]:
    assembler = TextAssembler()
    found = [assembler.add(message) for message in messages]
    return [text.text for text in found if text is not None]


@given(
    st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1), max_size=5)
)
def test_texts_are_put_together(texts: list[str]) -> None:
    messages = [m for number, text in enumerate(texts, 1) for m in pieces_of(text, number)]
    ends = re.compile(r"[\x00-\x1f\x7f]+\Z")
    assert assembled(messages) == [printable(ends.sub("", text)) for text in texts]


def test_texts_without_an_end_take_no_more_memory() -> None:
    assembler = TextAssembler()
    for number in range(1, 100):
        assert assembler.add(pieces_of("a" * 60, number)[0]) is None
    assert len(assembler._unfinished) == UNFINISHED_LIMIT


def test_silence_that_is_excused_does_not_count() -> None:
    """The board waits for somebody else; afterwards it counts from the beginning."""
    link, connection = connected()
    excused = [True]
    connection.is_excused = lambda: excused[0]
    for _ in range(10):
        link.now += SILENCE_LIMIT_S + 1.0
        connection.check_silence()
    excused[0] = False
    link.now += SILENCE_LIMIT_S - 1.0
    connection.check_silence()
    link.now += 2.0
    with pytest.raises(LinkLostError, match="has been silent"):
        connection.check_silence()


def test_an_answer_is_waited_for_as_long_as_its_delay_is_excused() -> None:
    link, connection = connected()
    sent: list[float] = []

    def send() -> None:
        sent.append(link.now)
        link.now += 1.0

    connection.is_excused = lambda: link.now < 100.0
    attempts = list(Exchange(connection, "RLT_RESULT").attempts(send))
    assert len(attempts) == len(sent) == pytest.approx(100.0 + ANSWER_LIMIT_S, abs=2.0)
