"""Documents as types: what fits, and the clause about what does not."""

from __future__ import annotations

import re
import sys
import unicodedata
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from rltools_host.documents import (
    NOT_PRINTABLE,
    Count,
    Line,
    NotNegative,
    Number,
    Scalar,
    Unfit,
    Value,
    typed,
)


@dataclass(frozen=True)
class Plain:
    height_m: NotNegative
    note: Line | None = None


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    count: Count
    values: dict[Line, Value] = {}

    def __post_init__(self) -> None:
        if self.count == 13:
            raise Unfit("count is 13, which brings bad luck")


class Outer(Struct, frozen=True):
    title: Line
    inner: Inner | None = None
    all: Annotated[list[Inner], Meta(min_length=1, max_length=2)] = []
    place: tuple[Number, Number, Number] = (0.0, 0.0, 0.0)
    plain: Plain | None = None
    anything: dict[Line, Scalar] = {}


@pytest.mark.parametrize(
    ("document", "clause"),
    [
        ([], "Expected `object`, got `array`"),
        ({}, "Object missing required field `title`"),
        ({"title": "a\u202eb"}, "title: Expected `str` in one line"),
        ({"title": "", "inner": {"count": 13}}, "inner: count is 13, which brings bad luck"),
        ({"title": "", "inner": {"count": 1, "values": {"\x1b": 1}}}, "key in inner.values: "),
        ({"title": "", "plain": {"height_m": float("nan")}}, "plain.height_m: Expected `float`"),
    ],
)
def test_what_does_not_fit_is_named(document: Any, clause: str) -> None:
    with pytest.raises(Unfit) as caught:
        typed(document, Outer)
    assert str(caught.value).startswith(clause)
    with pytest.raises(Unfit, match=r"^(key in )?it[.:[]"):
        typed(document, Outer, "it")


def test_what_fits() -> None:
    document = {
        "title": "a title with µ and 字",
        "unknown": {"to": ["this", "tree"]},
        "inner": {"count": 2**63 - 1, "values": {"whole": 1, "part": 1.5}},
        "place": [1, 2.5, -3],
        "plain": {"height_m": 0, "later": 1},
        "anything": {"a": None, "b": True, "c": "d", "e": 1},
    }
    outer: Outer = typed(document, Outer)
    assert outer.inner is not None
    assert [*map(type, outer.inner.values.values())] == [int, float], "as they are written"
    assert outer.plain == Plain(0.0)
    assert outer.place == (1, 2.5, -3)
    assert outer.anything == document["anything"]


def test_a_line_is_printable_as_python_has_it() -> None:
    """Of all characters that this Python's Unicode has."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    known = [character for character in characters if unicodedata.category(character) != "Cn"]
    found = re.findall(f"[{NOT_PRINTABLE}]", "".join(known))
    assert found == [character for character in known if not character.isprintable()]
