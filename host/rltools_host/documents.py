"""What comes from outside, checked. JSON documents as types: a class names each field, its type and
its bounds, and msgspec reads it. The arguments of a Python program.

What does not fit is one clause that names the place, and is msgspec's own: ``sessions[0].steps:
Expected `int`, got `str` ``. Fields that a class does not have are left alone, unless it forbids
them.
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
LARGEST_BOUND = 1e38  # of a range's ends: their difference is a float
LONGEST_SHOWN = 40
LONGEST_TEXT = 300
# What Python's isprintable() says of the characters that Unicode has, as a regular expression's
# class: controls, formats, surrogates, private ones, and separators but the space.
NOT_PRINTABLE = (
    "\0-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\ud800-\uf8ff\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000f0000-\U0010ffff"
)
PRINTABLE = f"^[^{NOT_PRINTABLE}]"
# As msgspec's messages have it, in which it is longer than all the rest.
ANY_PATTERN = re.compile(re.escape(f" matching regex {PRINTABLE!r}"[:-1]) + r"[*+]\\\\Z'")

Whole = Annotated[int, Meta(ge=0, le=LARGEST_U32)]
FromOne = Annotated[int, Meta(ge=1, le=LARGEST_U32)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Number = Annotated[float, Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]  # finite
NotNegative = Annotated[float, Meta(ge=0, le=LARGEST_FLOAT)]
End = Annotated[float, Meta(ge=-LARGEST_BOUND, le=LARGEST_BOUND)]  # of a range
Value = Annotated[int, Meta(ge=-LARGEST_COUNT, le=LARGEST_COUNT)] | Number  # as it is written
Line = Annotated[str, Meta(pattern=PRINTABLE + r"*\Z", max_length=LONGEST_TEXT)]
Title = Annotated[str, Meta(pattern=PRINTABLE + r"+\Z", max_length=LONGEST_TEXT)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Scalar = Value | Line | bool | None


class Unfit(ValueError):
    """A value that is not what its field promises."""


def printable(text: str) -> str:
    """Return what a stranger wrote, without what commands a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def shown(value: Any) -> str:
    """A value in a sentence: short and in one line."""
    text = json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def unfit(name: str, value: Any, expected: str) -> Unfit:
    return Unfit(f"{name} is {shown(value)}, not {expected}")


def typed(document: Any, kind: type[T] | Any, name: str = "") -> T:
    """Return the document, or its part of this name, as this type; Unfit where it is none."""
    try:
        result: T = msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        what, _, place = printable(ANY_PATTERN.sub(" in one line", str(error))).rpartition(" - at ")
        what, place = (what, place) if what else (place, "")
        place = place.replace("`", "").replace("$.", f"{name}." if name else "")
        place = place.replace("$", name) or name
        raise Unfit(f"{place}: {what}" if place else what) from None
    return result


# -- what a Python program gives: what is of another kind is one sentence, at once -----------------


def whole_number(name: str, value: Any, low: int, high: int) -> int:
    """An int, or what NumPy has in its place; no float, as 1.5 would be cut off."""
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
    """A mapping from names; nothing is an empty one."""
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
    """What was given, in a line that is not long."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 60 else f"{line[:60]}…"
