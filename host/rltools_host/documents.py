"""What comes from outside, checked. JSON documents as types: a class names each field, its type and
its bounds, and msgspec reads it. The arguments of a Python program.

What does not fit is one clause that names the place: `sessions[0].steps is "10", not a whole number
from 0 to 4294967295`. Fields that a class does not have are left alone, unless it forbids them.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import os
import types
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

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
ONE_LINE = "a text in one line"

Whole = Annotated[int, Meta(ge=0, le=LARGEST_U32)]
FromOne = Annotated[int, Meta(ge=1, le=LARGEST_U32)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Number = Annotated[float, Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)]  # finite
NotNegative = Annotated[float, Meta(ge=0, le=LARGEST_FLOAT)]
End = Annotated[float, Meta(ge=-LARGEST_BOUND, le=LARGEST_BOUND)]  # of a range
Value = Annotated[int, Meta(ge=-LARGEST_COUNT, le=LARGEST_COUNT)] | Number  # as it is written
Line = Annotated[
    str, Meta(pattern=PRINTABLE + r"*\Z", max_length=LONGEST_TEXT, description=ONE_LINE)
]
Title = Annotated[
    str, Meta(pattern=PRINTABLE + r"+\Z", max_length=LONGEST_TEXT, description=ONE_LINE)
]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z", description="a SHA-256")]
Scalar = Value | Line | bool | None


class Unfit(ValueError):
    """A value that is not what its field promises."""


def shown(value: Any) -> str:
    """A value in a sentence: short and in one line."""
    text = json.dumps(value, default=str)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def unfit(name: str, value: Any, expected: str) -> Unfit:
    return Unfit(f"{name} is {shown(value)}, not {expected}")


def typed(document: Any, kind: type[T] | Any, name: str = "") -> T:
    """The document, or its part of this name, as this type; Unfit where it is none."""
    try:
        result: T = msgspec.convert(document, kind)
    except msgspec.ValidationError:
        raise Unfit(_misfit(document, kind, name)) from None
    return result


# -- what does not fit, in words -------------------------------------------------------------------


@cache
def _hints(kind: Any) -> Mapping[str, Any] | None:
    """Types of the fields of a class that is a document's; None for another type."""
    if hasattr(kind, "__struct_fields__") or hasattr(kind, "__dataclass_fields__"):
        return get_type_hints(kind, include_extras=True)
    return None


def _required(kind: Any) -> Iterator[str]:
    if hasattr(kind, "__struct_fields__"):
        yield from (field.name for field in msgspec.structs.fields(kind) if field.required)
        return
    for field in dataclasses.fields(kind):
        if field.default is field.default_factory is dataclasses.MISSING:
            yield field.name


def _members(hint: Any) -> Iterator[tuple[Any, Meta]]:
    """Of a union, or the type itself, each with its bounds."""
    if get_origin(hint) in (Union, types.UnionType):
        for member in get_args(hint):
            yield from _members(member)
    elif get_origin(hint) is Annotated:
        yield hint.__origin__, hint.__metadata__[-1]
    else:
        yield hint, Meta()


def _misfit(value: Any, hint: Any, name: str) -> str:
    """A clause about the first place that does not fit; nothing where all of it does."""
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        together = f"{name}.{error}" if name else str(error)  # what a class says of its fields
    else:
        return ""
    members = [member for member in _members(hint) if member[0] is not types.NoneType]
    kind, meta = members[0]
    fields = _hints(kind)
    if fields is not None:
        return _misfit_of_fields(value, kind, fields, name) or together
    inner = ""
    if isinstance(value, dict) and get_origin(kind) is dict:
        key_hint, value_hint = get_args(kind)
        inner = _misfit_of_entries(value, key_hint, value_hint, name)
    elif isinstance(value, list) and get_origin(kind) in (list, tuple):
        inner = _misfit_of_list(value, get_args(kind), meta, name)
    return inner or str(unfit(name, value, _expected(members, value)))


def _misfit_of_fields(value: Any, kind: Any, fields: Mapping[str, Any], name: str) -> str:
    if not isinstance(value, dict):
        return str(unfit(name, value, "an object")) if name else "it is not one object"
    prefix = f"{name}." if name else ""
    config = getattr(kind, "__struct_config__", None)
    unknown = [key for key in value if key not in fields]
    if unknown and config is not None and config.forbid_unknown_fields:
        return f"{prefix}{unknown[0]} is none of {', '.join(fields)}"
    for field, hint in fields.items():
        if field in value:
            if inner := _misfit(value[field], hint, f"{prefix}{field}"):
                return inner
        elif field in _required(kind):
            return f"{prefix}{field} is missing"
    return ""


def _misfit_of_entries(value: Mapping[str, Any], key_hint: Any, hint: Any, name: str) -> str:
    for key, item in value.items():
        place = f"{name}.{key}" if name else key
        of_key = _misfit(key, key_hint, f"a key of {name}" if name else "a key")
        if inner := of_key or _misfit(item, hint, place):
            return inner
    return ""


def _misfit_of_list(value: list[Any], hints: tuple[Any, ...], meta: Meta, name: str) -> str:
    fixed = len(hints) if len(hints) > 1 and Ellipsis not in hints else None
    low, high = (meta.min_length or 0, meta.max_length) if fixed is None else (fixed, fixed)
    if len(value) < low or (high is not None and len(value) > high):
        most = "" if low == high else " or more" if high is None else f" to {high}"
        return f"{name} has {len(value)} entries, not {low}{most}"
    for index, item in enumerate(value):
        hint = hints[0] if fixed is None else hints[index]
        if inner := _misfit(item, hint, f"{name}[{index}]"):
            return inner
    return ""


def _expected(members: list[tuple[Any, Meta]], value: Any) -> str:
    """What a value that does not fit should have been; of a union, what is nearest to it."""
    kind, meta = next((entry for entry in members if type(value) is entry[0]), members[0])
    if meta.description is not None:
        return meta.description
    if kind is int and meta.ge != -LARGEST_COUNT:
        return f"a whole number from {meta.ge} to {meta.le}"
    if kind in (int, float):
        within = "" if meta.ge in (None, -LARGEST_FLOAT, -LARGEST_COUNT) else f" from {meta.ge:g}"
        within += "" if meta.le in (None, LARGEST_FLOAT, LARGEST_COUNT) else f" to {meta.le:g}"
        return f"a number{within}"
    words = {bool: "true or false", str: "text", list: "a list", tuple: "a list"}
    return words.get(get_origin(kind) or kind, "an object")


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


def callable_(name: str, value: Any, what: str) -> None:
    if not callable(value):
        raise UsageError(f"{name}={repr_of(value)}: give {what}")


def repr_of(value: Any) -> str:
    """What was given, in a line that is not long."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 60 else f"{line[:60]}…"
