"""Checks of what a Python program gives: what is of another kind is one sentence, at once."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltools_host.errors import UsageError

LARGEST_SEED = 2**32 - 1


def whole_number(name: str, value: Any, low: int, high: int) -> int:
    """An int, or what NumPy has in its place; no float, as 1.5 would be cut off."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise UsageError(f"{name}={shown(value)}: give a whole number from {low} to {high}")
    return number


def optional_whole_number(name: str, value: Any, low: int, high: int) -> int | None:
    return None if value is None else whole_number(name, value, low, high)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name}={shown(value)}: give a text")
    return value


def optional_text(name: str, value: Any) -> str | None:
    return None if value is None else text(name, value)


def table(name: str, value: Any) -> Mapping[str, Any]:
    """A mapping from names; nothing is an empty one."""
    given = {} if value is None else value
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise UsageError(f"{name}={shown(value)}: give a dictionary with names as its keys")
    return given


def optional_path(name: str, value: Any) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise UsageError(f"{name}={shown(value)}: give a path")
    return Path(value)


def callable_(name: str, value: Any, what: str) -> None:
    if not callable(value):
        raise UsageError(f"{name}={shown(value)}: give {what}")


def shown(value: Any) -> str:
    """What was given, in a line that is not long."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 60 else f"{line[:60]}…"
