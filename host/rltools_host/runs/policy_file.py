"""The header of a policy image (docs/policy_image.md): which training state it comes from; format
2 has a record behind it. And the texts of a policy: what the name of a channel, an environment, an
experiment or a contract, and a unit, may be wherever it is read, and how C++ has it. They go into
headers, pages, CSV files and terminals.

Without NumPy, which training does not load.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import Any

# Bytes of UTF-8 in an image's and a message's field, less its end.
LONGEST_NAME, LONGEST_CHANNEL_NAME, LONGEST_UNIT = 31, 23, 15
MOST_CHOICES = 256  # of one action
SUBJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
UNQUOTABLE = re.compile(r'["\\?]')  # what C++ could misread in quotes


def is_policy_text(value: object, longest: int) -> bool:
    """Whether it is printable text in one line, of 1 to `longest` bytes, that quotes can hold."""
    if not isinstance(value, str) or not value.isprintable() or UNQUOTABLE.search(value):
        return False
    return 1 <= len(value.encode()) <= longest


def is_subject_name(value: object) -> bool:
    """Whether an experiment or a contract, whose header it names, can be called so."""
    return is_policy_text(value, LONGEST_NAME) and bool(SUBJECT_NAME.fullmatch(str(value)))


def described(longest: int) -> str:
    """What is expected, for a sentence."""
    return f'plain text of 1 to {longest} bytes, without ", \\ and ?'


def string_literal(text: str) -> str:
    """A C string literal; whatever is not plain ASCII is escaped."""
    plain = {byte: chr(byte) for byte in range(0x20, 0x7F) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def comment_text(text: str) -> str:
    """Text that cannot end a comment's line, and cannot go on in the next one."""
    return "".join(c if c.isprintable() and c != "\\" else "?" for c in text)


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
