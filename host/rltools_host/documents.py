"""Checks of JSON documents and of the arguments of a Python program.

A class names each field of a document with its type and bounds, and msgspec reads it. An error is
msgspec's own message after the field's path: ``sessions[0].steps: Expected `int`, got `str` ``.
Fields that a class does not have are ignored, unless it forbids them.
"""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from rltools_host.errors import UsageError

T = TypeVar("T")

LARGEST_U32 = 2**32 - 1
LARGEST_COUNT = 2**63 - 1
LARGEST_FLOAT = 1.7976931348623157e308
LARGEST_BOUND = 1e38  # of a range: the difference of its bounds is a float too
LONGEST_SHOWN = 40
LONGEST_TEXT = 300
# The characters that Python's isprintable() refuses, as a class of a regular expression: controls,
# formats, surrogates, private ones, and separators but the space.
NOT_PRINTABLE = (
    "\0-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\ud800-\uf8ff\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000f0000-\U0010ffff"
)
PRINTABLE = f"^[^{NOT_PRINTABLE}]"
# How msgspec's messages quote such a pattern, which is longer than the rest of the message.
ANY_PATTERN = re.compile(re.escape(f" matching regex {PRINTABLE!r}"[:-1]) + r"[*+]\\\\Z'")

Whole = Annotated[int, Meta(ge=0, le=LARGEST_U32)]
FromOne = Annotated[int, Meta(ge=1, le=LARGEST_U32)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Number = Annotated[float, Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]  # finite
NotNegative = Annotated[float, Meta(ge=0, le=LARGEST_FLOAT)]
End = Annotated[float, Meta(ge=-LARGEST_BOUND, le=LARGEST_BOUND)]  # of a range
Value = Annotated[int, Meta(ge=-LARGEST_COUNT, le=LARGEST_COUNT)] | Number  # an int stays one
Line = Annotated[str, Meta(pattern=PRINTABLE + r"*\Z", max_length=LONGEST_TEXT)]
Title = Annotated[str, Meta(pattern=PRINTABLE + r"+\Z", max_length=LONGEST_TEXT)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Scalar = Value | Line | bool | None


class Unfit(ValueError):
    """A value that does not have the type or the bounds of its field."""


def printable(text: str) -> str:
    """Replace the characters that are not printable by question marks."""
    return "".join(character if character.isprintable() else "?" for character in text)


def shown(value: Any) -> str:
    """Return a value for a sentence: in one line, and cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def unfit(name: str, value: Any, expected: str) -> Unfit:
    """Return the error `NAME is VALUE, not EXPECTED`."""
    return Unfit(f"{name} is {shown(value)}, not {expected}")


def typed(document: Any, kind: type[T] | Any, name: str = "") -> T:
    """Return the document, or its part `name`, as this type; raise Unfit where it does not fit."""
    try:
        result: T = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        what, _, field = printable(ANY_PATTERN.sub(" in one line", str(error))).rpartition(" - at ")
        what, field = (what, field) if what else (field, "")
        field = field.replace("`", "").replace("$.", f"{name}." if name else "")
        field = field.replace("$", name) or name
        what = what if len(what) <= LONGEST_TEXT else f"{what[:LONGEST_TEXT]}…"  # quotes the value
        raise Unfit(f"{field}: {what}" if field else what) from None
    return result


# -- arguments of a Python program -----------------------------------------------------------------


def whole_number(name: str, value: Any, low: int, high: int) -> int:
    """Return an int, also of NumPy's kinds; raise UsageError for a float, as it would be cut."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise UsageError(f"{name}={repr_of(value)}: give a whole number from {low} to {high}")
    return number


def optional_whole_number(name: str, value: Any, low: int, high: int) -> int | None:
    return None if value is None else whole_number(name, value, low, high)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name}={repr_of(value)}: give a text")
    return value


def optional_text(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def table(name: str, value: Any) -> Mapping[str, Any]:
    """Return a mapping from names, an empty one for None; raise UsageError for another value."""
    given = {} if value is None else value
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise UsageError(f"{name}={repr_of(value)}: give a dictionary with names as its keys")
    return given


def optional_path(name: str, value: Any) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise UsageError(f"{name}={repr_of(value)}: give a path")
    return Path(value)


def repr_of(value: Any) -> str:
    """Return a value's repr in one line of at most 61 characters."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 60 else f"{line[:60]}…"
