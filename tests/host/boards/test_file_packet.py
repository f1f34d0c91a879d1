"""Packets of MAVLink FTP byte by byte, and what is missing of a file."""

from __future__ import annotations

import pytest

from rltools_host.boards.messages import (
    DATA_BYTES,
    Packet,
    bytes_missing,
    insert_data,
    mavlink_crc32,
)

HEAD = bytes([0x34, 0x12, 5, 15, 3, 4, 1, 0, 0x78, 0x56, 0x34, 0x12])


def test_a_packet_is_of_251_bytes_with_its_fields_in_order() -> None:
    packet = Packet(0x1234, 5, 15, 4, True, 0x12345678, b"abc")
    assert packet.pack() == HEAD + b"abc" + bytes(236)
    assert Packet.parse(HEAD + b"abc") == packet
    wanted = Packet(1, 0, 5, size=239)  # of a read
    assert wanted.pack()[4] == 239
    assert wanted.pack()[5:7] == bytes(2)
    assert Packet.parse(b"") == Packet(0, 0, 0)
    assert Packet.parse(bytes(4) + bytes((DATA_BYTES + 1,)) + bytes(246)) is None


def test_crc_of_mavlink() -> None:
    assert mavlink_crc32(b"") == 0
    # Reflected polynomial 0xEDB88320, register from 0, not inverted, computed bit by bit.
    assert mavlink_crc32(bytearray(b"123456789")) == 0x2DFD2D88


@pytest.mark.parametrize(
    ("offset", "data", "missing", "left"),
    [
        (0, b"ab", [(0, 8)], [(2, 8)]),
        (6, b"ab", [(0, 8)], [(0, 6)]),
        (3, b"ab", [(0, 8)], [(0, 3), (5, 8)]),
        (0, b"abcdefgh", [(0, 2), (4, 8)], []),
        (1, b"abcd", [(0, 2), (4, 8)], [(0, 1), (5, 8)]),
        (2, b"ab", [(0, 2), (4, 8)], [(0, 2), (4, 8)]),
        (7, b"ab", [(0, 8)], [(0, 8)]),  # it goes beyond the file
        (3, b"", [(0, 8)], [(0, 8)]),
    ],
)
def test_what_is_missing_after_a_reply(
    offset: int, data: bytes, missing: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    content = bytearray(8)
    reply = Packet(0, 0, 128, offset=offset, data=data)
    assert insert_data(reply, content, missing) == left
    fits = offset + len(data) <= 8
    assert bytes(content) == (bytes(offset) + data if fits else b"").ljust(8, b"\0")
    assert bytes_missing([(0, 2), (4, 8)]) == 6
    assert bytes_missing(left) == sum(last - first for first, last in left)
