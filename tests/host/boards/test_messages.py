"""Messages of the dialect as values, whatever a sender has written into them."""

from __future__ import annotations

from typing import Any

from rltools_host.boards.framing import FrameDecoder, FrameEncoder
from rltools_host.boards.messages import action_of, identity_of, text_of
from rltools_host.build.cmake import load_dialect

DIALECT: Any = load_dialect()


def received(sent: Any) -> Any:
    (message,) = FrameDecoder(DIALECT).feed(FrameEncoder(DIALECT, 1, 1).encode(sent))
    return message


def test_only_a_counter_of_1_counts_instructions() -> None:
    """Take any other number, also one of a later revision, for real time."""
    for counter in range(3):
        texts = (b"pendulum-td3", b"host", b"x86", b"abc")
        sent = DIALECT.MAVLink_rlt_identity_message(
            7, 10, 20, 30, 1, 2, counter, *texts, list(range(16))
        )
        found = identity_of(received(sent))
        assert found is not None
        assert (found.counts_instructions, found.program) == (counter == 1, "train")


def test_an_action_has_no_more_elements_than_its_message() -> None:
    """Zeros at its end are not sent."""
    elements, layers = [1.0, *[0.0] * 23], [0] * 16
    sent = DIALECT.MAVLink_rlt_action_message(7, 8, 1, 255, 255, elements, layers)
    found = action_of(received(sent))
    assert found is not None
    assert (found.tick, found.cost, found.status) == (7, 8, 1)
    assert found.action_bits == (0x3F800000, *[0] * 23)
    assert found.layers == (0,) * 16


def test_texts_end_at_their_first_zero_and_are_printable() -> None:
    fields = (b"ab\0cd", "ab\0cd", b"ab", b"\0", b"", b"a\xff\0", 5)
    assert [text_of(field) for field in fields] == ["ab", "ab", "ab", "", "", "a\ufffd", "5"]
    assert "\x1b" not in text_of("x86\x1b")
