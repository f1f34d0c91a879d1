"""What run.json holds: what it does not state is nothing, and moments are in a reader's range."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from rltools_host.runs import contents
from rltools_host.runs.names import LAST_US

STRUCTS = [
    each
    for _, each in inspect.getmembers(contents, inspect.isclass)
    if issubclass(each, msgspec.Struct) and each.__module__ == contents.__name__
]


def defaults() -> list[tuple[str, Any]]:
    found = []
    for each in STRUCTS:
        for field in msgspec.structs.fields(each):
            if field.default is not msgspec.NODEFAULT:
                found.append((f"{each.__name__}.{field.name}", field.default))
            elif field.default_factory is not msgspec.NODEFAULT:
                found.append((f"{each.__name__}.{field.name}", field.default_factory()))
    return found


def test_what_is_not_stated_is_nothing() -> None:
    """But for a tuning, which prunes; of its parts nothing is stated then."""
    stated = {}
    for name, value in defaults():
        if isinstance(value, msgspec.Struct):
            assert value == type(value)(), name
        elif value:
            stated[name] = value
    assert stated == {"Tune.prunes": True}
    assert len(defaults()) > 40


@pytest.mark.parametrize(
    ("value", "is_good"), [(0, True), (-1, False), (LAST_US, True), (LAST_US + 1, False)]
)
def test_moments(value: int, is_good: bool) -> None:
    try:
        found = msgspec.convert(value, contents.BegunUs)
    except msgspec.ValidationError:
        found = None
    assert found == (value if is_good else None)
