"""Numbers, names and sizes of plots; what is drawn in them is in test_report.py."""

from __future__ import annotations

import math
import re

import numpy as np

from rltools_host.report import markup


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
