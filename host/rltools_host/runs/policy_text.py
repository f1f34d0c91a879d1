"""The texts of a policy: what the name of a channel, an environment, an experiment or a contract,
and a unit, may be wherever it is read, and how C++ has it. They go into headers, pages, CSV files
and terminals.
"""

from __future__ import annotations

import re

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
