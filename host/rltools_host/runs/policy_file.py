"""The header of a policy image (docs/policy_image.md): which training state it comes from. Format
2 has a record behind it.

Without NumPy, which training does not load.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

MAGIC = b"RLTP"
VERSION, RECURRENT_VERSION = 1, 2
HEADER = struct.Struct("<4sHHIIHHHHIIIIII32s32s32s")
RECURRENCE = struct.Struct("<IIHHI")  # behind the header of format 2
CRC32_PLACE = slice(12, 16)  # in the header
STEP_PLACE, STATE_PLACE = 11, 15  # among the header's fields
MOST_STEP_INTERVAL_US = 600_000_000  # kMostStepInterval_us of policy/contract.h


def image_crc32(data: bytes) -> int:
    """CRC-32 of all bytes but the four that hold it."""
    return zlib.crc32(data[CRC32_PLACE.stop :], zlib.crc32(data[: CRC32_PLACE.start]))


def header_bytes(version: int) -> int:
    """Of the header and what lies behind it."""
    return HEADER.size + (RECURRENCE.size if version == RECURRENT_VERSION else 0)


def state_of_policy(data: bytes) -> str | None:
    """SHA-256 of the training state that the image states; None where it is damaged."""
    fields = _fields(data)
    state: bytes | None = None if fields is None else fields[STATE_PLACE]
    return None if state is None else state.hex()


def step_of_policy(data: bytes) -> int | None:
    """The step of training that the image states; None where it is damaged."""
    fields = _fields(data)
    return None if fields is None else int(fields[STEP_PLACE])


def _fields(data: bytes) -> tuple[Any, ...] | None:
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        return None
    if image_crc32(data) != int.from_bytes(data[CRC32_PLACE], "little"):
        return None
    return HEADER.unpack_from(data)
