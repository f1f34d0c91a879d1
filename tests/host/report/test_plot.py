"""Numbers, names and sizes of plots; what is drawn in them is in test_report.py."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.report import markup

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (999.4, "999"),
        (1000.0, "1,000"),
        (-1500.0, f"{MINUS}1,500"),
        (999_999.0, "999,999"),
        (1e6, "1e+06"),
        (0.12345, "0.123"),
        (-0.001, f"{MINUS}0.001"),
        (0.0, "0"),
        (math.nan, ""),
        (math.inf, ""),
    ],
)
def test_short_numbers(value: float, expected: str) -> None:
    assert markup.short_number(value) == expected


def test_thousands() -> None:
    assert [markup.thousands(value) for value in (12.4, -1234.6)] == ["12", f"{MINUS}1,235"]


def test_a_curve_without_what_is_not_known() -> None:
    curve = markup.Curve(np.array([1.0, 2.0, 3.0]), np.array([math.nan, 5.0, math.inf])).finite()
    assert (list(curve.steps), list(curve.values)) == ([2.0], [5.0])


def test_names_within_a_plot_are_its_own() -> None:
    svg = '<a id="x"/><b fill="url(#x)" xlink:href="#x" idle="x"/>'
    assert markup.unique_names(svg, "p") == (
        '<a id="p-x"/><b fill="url(#p-x)" xlink:href="#p-x" idle="x"/>'
    )


def test_a_plot_is_drawn_for_a_wide_and_a_narrow_page() -> None:
    drawn: list[bool] = []
    svg = markup.responsive(lambda _, is_wide: drawn.append(is_wide), (100, 200), 'a "b"')
    assert drawn == [True, False]
    assert re.findall('<svg class="(.*?)" role="img" aria-label="(.*?)" viewBox="(.*?)"', svg) == [
        ("wide", "a &quot;b&quot;", "0 0 980 100"),
        ("narrow", "a &quot;b&quot;", "0 0 400 200"),
    ]
    assert svg.count("<svg") == svg.count("</svg>") == 2
    assert "<metadata" not in svg
    half = markup.responsive(lambda *_: None, (100, 200), "c", 490)
    assert re.findall('viewBox="(.*?)"', half) == ["0 0 490 100", "0 0 400 200"]


class Axes:
    """Keeps what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.xaxis: Any = SimpleNamespace(set_major_formatter=self.of("x"))
        self.yaxis: Any = SimpleNamespace(set_major_formatter=self.of("y"))
        self.xaxis.set_major_locator = self.of("locator")
        self.annotate, self.set_title = self.of("annotate"), self.of("title")

    def of(self, name: str) -> Any:
        return lambda *given, **named: self.calls.append((name, given, named))


@pytest.mark.parametrize(("to_left", "offset", "side"), [(True, -5, "right"), (False, 5, "left")])
def test_the_label_of_a_line_is_beside_it(to_left: bool, offset: int, side: str) -> None:
    axes: Any = Axes()
    markup.label_line(axes, 3.0, "goal", markup.GOAL, to_left=to_left)
    ((_, given, named),) = axes.calls
    assert given == ("goal", (3.0, 1))
    assert named == {
        "xycoords": ("data", "axes fraction"),
        "xytext": (offset, -10),
        "textcoords": "offset points",
        "ha": side,
        "color": markup.GOAL,
    }


@pytest.mark.parametrize(("is_wide", "count"), [(True, 11), (False, 3)])
def test_a_narrow_axis_has_fewer_ticks(is_wide: bool, count: int) -> None:
    """Every 10 of 100 makes 10 intervals; four at most are 50 each."""
    axes: Any = Axes()
    markup.use_thousands(axes, is_wide)
    calls = {name: given for name, given, _ in axes.calls}
    assert calls["x"] == calls["y"] == (markup.thousands,)
    assert len(calls["locator"][0].tick_values(0, 100)) == count
    alone: Any = Axes()
    markup.use_thousands(alone, is_wide, both=False)
    assert [name for name, _, _ in alone.calls] == ["x", "locator"]
