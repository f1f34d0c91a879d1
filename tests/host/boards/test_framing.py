"""The stream decoder against noise, lost, doubled and flipped bytes, in chunks of any size."""

from __future__ import annotations

import math
import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltools_host.boards.framing import SEQUENCE_WINDOW, FrameDecoder, FrameEncoder
from rltools_host.build.cmake import load_dialect

DIALECT: Any = load_dialect()
# Damage that the 16-bit checksum detects for certain: up to three flipped bits, or a burst of two
# bytes. Anything goes in `test_any_damage`, whose examples are always the same ones: one damaged
# frame in 65,536 has a good checksum by chance.
REPEATABLE = settings(derandomize=True, max_examples=150)


def make_message(index: int) -> Any:
    """Messages of the kinds and lengths that a board sends."""
    kind = index % 5
    if kind == 0:
        return DIALECT.MAVLink_heartbeat_message(0, 8, 0, index, 3, 3)
    if kind == 1:
        metrics = [0.5, math.nan, *[0.0] * 13, 0.25]
        return DIALECT.MAVLink_rlt_progress_message(
            index, index, 10_000, index, index // 200, -1.5 * index, -1.0, metrics
        )
    if kind == 2:
        return DIALECT.MAVLink_rlt_evaluation_message(index, index, 10, -150.0, 3.0, -160.0, -1.0)
    if kind == 3:
        content = bytes((index * 7 + i) % 256 for i in range(251 - index % 200))
        return DIALECT.MAVLink_file_transfer_protocol_message(
            0, 255, 190, content.ljust(251, b"\0")
        )
    return DIALECT.MAVLink_statustext_message(6, f"message {index} \xfd\xfd".encode("latin1"))


def make_frames(count: int, first: int = 0) -> list[bytes]:
    encoder = FrameEncoder(DIALECT, 1, 1)
    for _ in range(first):
        encoder.encode(make_message(0))
    return [encoder.encode(make_message(first + index)) for index in range(count)]


def decode(stream: bytes, cuts: list[int] | None = None) -> tuple[list[bytes], FrameDecoder]:
    """The accepted frames, and the decoder; the stream is fed in pieces that end at `cuts`."""
    decoder = FrameDecoder(DIALECT)
    frames: list[bytes] = []
    edges = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts or [])})
    for begin, end in pairwise(edges):
        frames += [bytes(message.get_msgbuf()) for message in decoder.feed(stream[begin:end])]
    return frames, decoder


cuts = st.lists(st.integers(0, 5000), max_size=40)


@given(st.integers(1, 12), cuts)
def test_clean_stream_arrives_whole(count: int, places: list[int]) -> None:
    sent = make_frames(count)
    received, decoder = decode(b"".join(sent), places)
    assert received == sent
    assert (decoder.messages_lost, decoder.bytes_skipped) == (0, 0)


@pytest.mark.parametrize("size", [0, 1, 250])
def test_message_of_bytes_is_that_of_pymavlink_but_for_its_array(size: int) -> None:
    payload = bytes(range(1, 1 + size)).ljust(251, b"\0")
    sent = DIALECT.MAVLink_file_transfer_protocol_message(0, 255, 190, payload)
    frame = FrameEncoder(DIALECT, 7, 9).encode(sent)
    (received,) = FrameDecoder(DIALECT).feed(frame)
    expected = DIALECT.MAVLink(None).decode(bytearray(frame))
    assert received.payload == bytes(expected.payload) == payload
    for name in ("target_network", "target_system", "target_component"):
        assert getattr(received, name) == getattr(expected, name) == getattr(sent, name)
    for name in ("get_type", "get_msgId", "get_srcSystem", "get_srcComponent", "get_msgbuf"):
        assert getattr(received, name)() == getattr(expected, name)()


@pytest.mark.parametrize("kind", ["dropped", "doubled", "flipped"])
@REPEATABLE
@given(st.data())
def test_damaged_bytes(kind: str, data: st.DataObject) -> None:
    """In some of ten frames, never in the last three; all others must arrive."""
    flip = data.draw(st.integers(1, 255))
    sent = make_frames(10, first=data.draw(st.integers(0, 20)))
    damaged = set(data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=3)))
    stream = b""
    whole = []
    for index, frame in enumerate(sent):
        at = data.draw(st.integers(0, len(frame) - 1))
        put = {
            "dropped": b"",
            "doubled": frame[at : at + 1] * 2,
            "flipped": bytes((frame[at] ^ flip,)),
        }
        bytes_sent = frame[:at] + put[kind] + frame[at + 1 :] if index in damaged else frame
        stream += bytes_sent
        if frame in bytes_sent:  # a doubled first or last byte does no harm
            whole.append(frame)
    received, decoder = decode(stream, data.draw(cuts))
    # The issue asks to be back in step within two good messages; this decoder loses none of them.
    assert received == whole
    if received[0] == sent[0]:
        assert decoder.messages_lost == 10 - len(received)


@REPEATABLE
@given(st.data())
def test_any_damage(data: st.DataObject) -> None:
    """Cuts, repeats and overwrites of any length: nothing raised, nothing wrong, in step again."""
    sent = make_frames(8)
    stream = bytearray(b"".join(sent))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream)))
        length = data.draw(st.integers(0, 60))
        kind = data.draw(st.sampled_from(["drop", "repeat", "overwrite"]))
        if kind == "drop":
            del stream[at : at + length]
        elif kind == "repeat":
            stream[at:at] = stream[at : at + length]
        else:
            stream[at : at + length] = data.draw(st.binary(min_size=length, max_size=length))
    tail = make_frames(4, first=8)
    received, _ = decode(bytes(stream) + b"".join(tail), data.draw(cuts))
    assert set(received) <= set(sent + tail), "a value was accepted that nobody sent"
    assert received[-2:] == tail[-2:], "not back in step after two good messages"


@given(st.lists(st.binary(max_size=400), max_size=10))
def test_random_bytes_never_raise(chunks: list[bytes]) -> None:
    decoder = FrameDecoder(DIALECT)
    for chunk in chunks:
        decoder.feed(chunk)
    assert len(decoder._buffer) <= 280, "the buffer grows without bound"


@pytest.mark.parametrize("length_byte", [0, 9, 40, 200, 255])
def test_corrupt_length_holds_nothing_back(length_byte: int) -> None:
    """pymavlink's parser waits for the stated length and swallows what comes meanwhile."""
    sent = make_frames(12)
    long_message = sent[3]
    damaged = bytes((long_message[0], length_byte)) + long_message[2:40]
    decoder = FrameDecoder(DIALECT)
    for frame in sent[:3]:
        decoder.feed(frame)
    decoder.feed(damaged)
    arrived = []
    for good in range(4, 7):  # no more bytes than these come: they must be enough
        arrived += decoder.feed(sent[good])
    assert [bytes(m.get_msgbuf()) for m in arrived][-1] == sent[6]
    assert {bytes(m.get_msgbuf()) for m in arrived} <= set(sent)


def test_frames_inside_a_file_are_not_mistaken_for_messages() -> None:
    """A file that holds recorded messages arrives slowly; its content is not taken for messages."""
    recorded = b"".join(frame for frame in make_frames(12, first=100) if len(frame) < 60)[:251]
    encoder = FrameEncoder(DIALECT, 1, 1)
    message = DIALECT.MAVLink_file_transfer_protocol_message(0, 255, 190, recorded.ljust(251, b"x"))
    sent = [encoder.encode(make_message(0)), encoder.encode(message)]
    decoder = FrameDecoder(DIALECT)
    received = [m for byte in b"".join(sent) for m in decoder.feed(bytes((byte,)))]
    assert [bytes(m.get_msgbuf()) for m in received] == sent


@pytest.mark.parametrize("more", [1, 100])
def test_a_frame_of_a_later_version_is_taken_where_that_is_wanted(more: int) -> None:
    """With more fields than the dialect knows, at the end; what follows it arrives as well."""
    encoder = FrameEncoder(DIALECT, 1, 1)
    payload = struct.pack("<IBBBBB", 7, 1, 2, 3, 4, 3) + bytes(range(1, more + 1))
    stream = encoder.encode_payload(DIALECT.MAVLINK_MSG_ID_HEARTBEAT, payload)
    stream += encoder.encode(make_message(0))
    strict, lenient = FrameDecoder(DIALECT), FrameDecoder(DIALECT, takes_longer=True)
    assert [message.custom_mode for message in strict.feed(stream)] == [0]
    assert [message.custom_mode for message in lenient.feed(stream)] == [7, 0]
    assert lenient.bytes_skipped == 0


def test_repeated_frame_is_given_once() -> None:
    sent = make_frames(3)
    received, decoder = decode(sent[0] + sent[0] + sent[1] + sent[1] + sent[2])
    assert received == sent
    assert (decoder.messages_repeated, decoder.messages_lost) == (2, 0)


def test_unknown_incompatibility_flags_are_refused() -> None:
    encoder = FrameEncoder(DIALECT, 1, 1)
    frame = bytearray(encoder.encode(make_message(0)))
    frame[2] = 2
    extra = DIALECT.mavlink_map[0].crc_extra
    frame[-2:] = DIALECT.x25crc(bytes(frame[1:-2]) + bytes((extra,))).crc.to_bytes(2, "little")
    assert decode(bytes(frame))[0] == []


def test_frame_that_is_longer_than_its_message_is_refused() -> None:
    """Its checksum is right."""
    heartbeat = bytes(range(1, 10))
    encoder = FrameEncoder(DIALECT, 1, 1)
    frames = [encoder.encode_payload(0, heartbeat + tail) for tail in (b"", b"x")]
    received, decoder = decode(b"".join(frames))
    assert received == frames[:1]
    assert decoder.bytes_skipped == len(frames[1])


def test_frame_without_a_payload_is_refused() -> None:
    """MAVLink 2 keeps at least one byte."""
    head = bytes((0, 0, 0, 0, 1, 1, 0, 0, 0))
    checksum = DIALECT.x25crc(head + bytes((DIALECT.mavlink_map[0].crc_extra,))).crc
    assert decode(b"\xfd" + head + checksum.to_bytes(2, "little"))[0] == []


def test_signature_belongs_to_its_frame() -> None:
    """It is not verified, as there are no keys; its bytes are no noise."""
    plain, following = make_frames(2)
    checked = bytes((plain[1], 1)) + plain[3:-2]
    extra = DIALECT.mavlink_map[0].crc_extra
    checksum = DIALECT.x25crc(checked + bytes((extra,))).crc.to_bytes(2, "little")
    signed = plain[:1] + checked + checksum + b"\xfd" * 13
    received, decoder = decode(signed + following)
    assert received == [signed, following]
    assert decoder.bytes_skipped == 0


def frame_with_sequence(sequence: int, index: int) -> bytes:
    encoder = FrameEncoder(DIALECT, 1, 1)
    encoder._mavlink.seq = sequence & 0xFF
    return encoder.encode(make_message(index))


@pytest.mark.parametrize(
    ("ahead", "trusted"),
    [
        (1, True),
        (2, True),
        (SEQUENCE_WINDOW, True),
        (SEQUENCE_WINDOW + 1, False),
        (0, False),
        (-1, False),
        (-2, False),
    ],
)
def test_only_numbers_that_follow_the_last_break_off_a_frame(ahead: int, trusted: bool) -> None:
    """Two frames inside one that is still arriving: messages, or the content of a file?"""
    last = 250
    arriving = frame_with_sequence(last + 1, 3)[:40]
    inside = [frame_with_sequence(last + ahead + i, 100 + 5 * i) for i in range(2)]
    decoder = FrameDecoder(DIALECT)
    assert len(decoder.feed(frame_with_sequence(last, 0))) == 1
    received = [bytes(m.get_msgbuf()) for m in decoder.feed(arriving + b"".join(inside))]
    assert received == (inside if trusted else [])


def test_frames_inside_must_be_of_one_sender_and_adjoin() -> None:
    arriving = frame_with_sequence(8, 3)[:40]
    first = frame_with_sequence(9, 0)
    other = FrameEncoder(DIALECT, 2, 1)
    other._mavlink.seq = 10
    damaged = bytearray(frame_with_sequence(10, 5))
    damaged[-1] ^= 1
    seconds = (other.encode(make_message(5)), frame_with_sequence(11, 5), bytes(damaged))
    for second in seconds:
        decoder = FrameDecoder(DIALECT)
        decoder.feed(frame_with_sequence(7, 0))
        assert decoder.feed(arriving + first + second) == []


def test_unknown_sender_breaks_off_a_frame_only_before_any_message() -> None:
    """Later its frames can as well be the content of a file."""
    encoder = FrameEncoder(DIALECT, 9, 1)
    inside = [encoder.encode(make_message(5 * index)) for index in range(2)]
    arriving = frame_with_sequence(8, 3)[:40]
    first, later = FrameDecoder(DIALECT), FrameDecoder(DIALECT)
    later.feed(frame_with_sequence(7, 0))
    for decoder, expected in ((first, inside), (later, [])):
        received = decoder.feed(arriving + b"".join(inside))
        assert [bytes(m.get_msgbuf()) for m in received] == expected


def test_other_message_with_the_same_number_is_no_repetition() -> None:
    """255 messages were lost, or the board has restarted."""
    sent = [frame_with_sequence(7, index) for index in (0, 5)]
    received, decoder = decode(b"".join(sent))
    assert received == sent
    assert (decoder.messages_repeated, decoder.messages_lost) == (0, 255)


@pytest.mark.parametrize("error", [DIALECT.MAVError("odd"), struct.error("odd"), ValueError("odd")])
def test_message_that_the_dialect_cannot_decode_is_skipped(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: bytearray) -> None:
        raise error

    sent = make_frames(2)
    decoder = FrameDecoder(DIALECT)
    with monkeypatch.context() as patch:
        patch.setattr(decoder._mavlink, "decode", fail)
        assert decoder.feed(sent[0]) == []
    assert decoder.bytes_skipped == len(sent[0])
    assert [bytes(m.get_msgbuf()) for m in decoder.feed(sent[1])] == sent[1:]
