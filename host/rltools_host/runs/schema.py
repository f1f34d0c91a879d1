"""Checks of JSON documents that have no type yet (documents.py).

A check takes a value and returns nothing, or raises Unfit with a clause such as `steps is "10", not
a whole number from 0 to 4294967295`. Keys that are not known are left alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from rltools_host.documents import LARGEST_U32, LONGEST_TEXT, Unfit, shown, unfit

__all__ = ["LARGEST_U32", "Unfit", "shown"]

Check = Callable[[str, Any], None]
Keys = Mapping[str, Check]


def whole(low: int = 0, high: int = LARGEST_U32) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise unfit(name, value, f"a whole number from {low} to {high}")

    return check


def number(low: float = -math.inf, high: float = math.inf) -> Check:
    """A finite number; JSON's largest whole numbers have no float."""

    def check(name: str, value: Any) -> None:
        try:
            good = not isinstance(value, bool) and low <= value <= high and math.isfinite(value)
        except (TypeError, OverflowError):
            good = False
        if not good:
            within = "" if low == -math.inf else f" from {low:g}"
            within += "" if high == math.inf else f" to {high:g}"
            raise unfit(name, value, f"a number{within}")

    return check


def text(
    pattern: str = "", expected: str = "a text in one line", longest: int = LONGEST_TEXT
) -> Check:
    def check(name: str, value: Any) -> None:
        good = isinstance(value, str) and value.isprintable() and len(value) <= longest
        if not good or (pattern and not re.fullmatch(pattern, value, re.ASCII)):
            raise unfit(name, value, expected)

    return check


def string(name: str, value: Any) -> None:
    """Any text, as what a board says of itself."""
    if not isinstance(value, str):
        raise unfit(name, value, "text")


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise unfit(name, value, "true or false")


def optional(inner: Check) -> Check:
    def check(name: str, value: Any) -> None:
        if value is not None:
            inner(name, value)

    return check


def list_of(inner: Check, fewest: int = 0, most: int | None = None) -> Check:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, list):
            raise unfit(name, value, "a list")
        if len(value) < fewest or (most is not None and len(value) > most):
            raise Unfit(f"{name} has {len(value)} entries, not {fewest} to {most}")
        for index, item in enumerate(value):
            inner(f"{name}[{index}]", item)

    return check


def values_of(inner: Check) -> Check:
    """An object whose keys are texts and whose values are alike."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise unfit(name, value, "an object")
        for key, item in value.items():
            text()(f"a key of {name}", key)
            inner(f"{name}.{key}", item)

    return check


def record(keys: Keys, required: bool = False) -> Check:
    """An object with these keys; each of them may be left out unless they are required."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise unfit(name, value, "an object")
        prefix = f"{name}." if name else ""
        for key, inner in keys.items():
            if key in value:
                inner(f"{prefix}{key}", value[key])
            elif required:
                raise Unfit(f"{prefix}{key} is missing")

    return check


def known_keys(document: Mapping[str, Any], keys: Keys, prefix: str = "") -> None:
    """Unfit where an object has a key that is none of these."""
    if unknown := [key for key in document if key not in keys]:
        raise Unfit(f"{prefix}{unknown[0]} is none of {', '.join(keys)}")


DIGEST = text(r"[0-9a-f]{64}", "a SHA-256")
