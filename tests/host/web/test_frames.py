"""The page's codec of frames, in node, against pymavlink and the host's own decoder."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from programs import in_node
from rltools_host.boards.framing import FrameDecoder, FrameEncoder, payload_of
from rltools_host.build.cmake import load_dialect
from rltools_host.tree import TREE
from rltools_host.web.site import dialect_document

PAGE = TREE.file("host/rltools_host/web/page")
DIALECT: Any = load_dialect()
STREAMS = [1000, pytest.param(4000, marks=pytest.mark.all)]  # that are damaged
LIMITS = {"uint8_t": 8, "uint16_t": 16, "uint32_t": 32, "uint64_t": 53}


def decoded_in_node(streams: list[list[str]], messages: list[Any]) -> dict[str, Any]:
    given = {"document": dialect_document(), "streams": streams, "messages": messages}
    script = TREE.root / "tests" / "host" / "web" / "frames_in_node.mjs"
    answer: dict[str, Any] = json.loads(in_node(script, PAGE, given=given))
    return answer


def drawn_value(kind: str, count: int, draws: random.Random) -> Any:
    if kind == "char":
        letters = "abcdefghijklmnopqrstuvwxyz_0123456789"
        return "".join(draws.choices(letters, k=draws.randrange(count + 1)))
    if count:
        return [drawn_value(kind, 0, draws) for _ in range(draws.randrange(count + 1))]
    if kind == "float":
        return float(draws.randrange(-(1 << 20), 1 << 20)) / 64
    if kind == "int32_t" or kind == "int16_t":
        return draws.randrange(-(1 << 15), 1 << 15)
    return draws.randrange(1 << LIMITS[kind])


def drawn_message(kind: Any, draws: random.Random) -> dict[str, Any]:
    """Values of every field; arrays may be shorter, for zeros at the end."""
    lengths = dict(zip(kind.ordered_fieldnames, kind.array_lengths, strict=True))
    types = dict(zip(kind.fieldnames, kind.fieldtypes, strict=True))
    return {name: drawn_value(types[name], lengths[name], draws) for name in kind.fieldnames}


def packed(kind: Any, values: dict[str, Any]) -> Any:
    """The message with its arrays filled up."""
    lengths = dict(zip(kind.ordered_fieldnames, kind.array_lengths, strict=True))
    arguments = []
    for name in kind.fieldnames:
        value = values[name]
        if isinstance(value, str):
            value = value.encode()
        elif isinstance(value, list):
            value = value + [0] * (lengths[name] - len(value))
        arguments.append(value)
    return kind(*arguments)


def test_every_message_of_the_xml_has_pymavlinks_bytes_and_fields() -> None:
    draws = random.Random(53000)
    kinds = [kind for kind in DIALECT.mavlink_map.values() for _ in range(20)]
    drawn = [(kind, drawn_message(kind, draws)) for kind in kinds]
    # What carries zeros only keeps one byte.
    drawn += [(kind, {}) for kind in DIALECT.mavlink_map.values()]
    encoder = FrameEncoder(DIALECT, 255, 190)
    expected = [
        encoder.encode(packed(kind, values)).hex() if values else empty(encoder, kind)
        for kind, values in drawn
    ]
    answer = decoded_in_node([], [[kind.msgname, values] for kind, values in drawn])
    assert answer["encoded"] == expected
    assert len(answer["fields"]) == len(drawn)
    for (kind, values), found in zip(drawn, answer["fields"], strict=True):
        assert (found["kind"], found["system"], found["component"]) == (kind.msgname, 255, 190)
        for name, value in values.items():
            stated = found[name]
            if isinstance(value, list):
                value = value + [0] * (len(stated) - len(value))
            assert stated == value, (kind.msgname, name)


def empty(encoder: FrameEncoder, kind: Any) -> str:
    return encoder.encode_payload(kind.id, bytes(kind.unpacker.size)).hex()


def damaged_stream(draws: random.Random) -> list[bytes]:
    """Frames of one or two senders, with bytes changed, lost, added, repeated, and in chunks."""
    encoders = [FrameEncoder(DIALECT, 1, 191), FrameEncoder(DIALECT, draws.choice((1, 7)), 190)]
    kinds = list(DIALECT.mavlink_map.values())
    stream = bytearray()
    for _ in range(draws.randrange(2, 9)):
        kind = draws.choice(kinds)
        size = draws.randrange(kind.unpacker.size + 1)
        payload = bytes(draws.choice((0, 0xFD, draws.randrange(256))) for _ in range(size))
        frame = draws.choice(encoders).encode_payload(kind.id, payload)
        stream += frame * draws.choice((1, 1, 1, 2))
        if draws.random() < 0.2:
            stream += draws.randbytes(draws.randrange(30))
    for _ in range(draws.randrange(5)):
        place = draws.randrange(len(stream))
        match draws.randrange(4):
            case 0:
                stream[place] ^= 1 << draws.randrange(8)
            case 1:
                del stream[place : place + draws.randrange(1, 20)]
            case 2:
                stream[place:place] = draws.choice((b"\xfd", draws.randbytes(3)))
            case _:
                stream[place] = 0xFD
        if not stream:
            break
    chunks = []
    while stream:
        count = draws.choice((1, 7, 64, len(stream)))
        chunks.append(bytes(stream[:count]))
        del stream[:count]
    return chunks


def expected_of(chunks: list[bytes]) -> dict[str, Any]:
    decoder = FrameDecoder(DIALECT)
    told = []
    for chunk in chunks:
        for message in decoder.feed(chunk):
            kind = DIALECT.mavlink_map[message.get_msgId()]
            payload = payload_of(message).ljust(kind.unpacker.size, b"\0").hex()
            sender = (message.get_srcSystem(), message.get_srcComponent())
            told.append([kind.msgname, *sender, payload])
    counts = [
        decoder.messages_received,
        decoder.messages_repeated,
        decoder.messages_lost,
        decoder.bytes_skipped,
    ]
    return {"messages": told, "counts": counts}


@pytest.mark.parametrize("count", STREAMS)
def test_damaged_streams_are_read_as_the_host_reads_them(count: int) -> None:
    draws = random.Random(count)
    streams = [damaged_stream(draws) for _ in range(count)]
    answer = decoded_in_node([[chunk.hex() for chunk in chunks] for chunks in streams], [])
    damaged = 0
    for chunks, found in zip(streams, answer["decoded"], strict=True):
        assert found == expected_of(chunks), b"".join(chunks).hex()
        damaged += found["counts"][3] > 0
    assert damaged > count / 2
