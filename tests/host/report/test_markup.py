"""Tables and texts as HTML, and times in words."""

from __future__ import annotations

import numpy as np

from rltools_host.report import markup
from rltools_host.report.markup import Html, extremes, figure_of, text


def test_texts() -> None:
    assert text("<a b='\"'>&") == "&lt;a b=&#x27;&quot;&#x27;&gt;&amp;"
    assert text(Html("<b>")) == "<b>"
    assert text("\ud800") == "?"


def test_a_long_curve_is_small_and_keeps_its_extremes() -> None:
    """A report of 100,000 rows was 38 MB."""
    values = np.random.default_rng(0).normal(size=100_000)
    values[31_234], values[77_777], values[5] = 50.0, -40.0, np.nan
    chosen = extremes(values, 1000)
    assert len(chosen) <= 1000
    assert {0, 31_234, 77_777, 99_999} <= set(chosen.tolist())
    assert np.array_equal(chosen, extremes(values, 1000))
    steps = np.arange(values.size, dtype=float)
    with figure_of(400, 200) as figure:
        axes = figure.add_subplot()
        axes.plot(steps, values)
        markup.band(axes, steps, values - 1.0, values + 1.0)
        whole = axes.dataLim.get_points()
        picture = markup.svg_of(figure, "metric", "noise")
        (line,) = axes.lines
        assert (np.nanmin(line.get_ydata()), np.nanmax(line.get_ydata())) == (-40.0, 50.0)
        assert (whole[0, 1], whole[1, 1]) == (-41.0, 51.0)
    assert len(picture) < 150_000
