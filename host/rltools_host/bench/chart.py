"""Bars in an SVG, the first entry on top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

OUR_COLOUR, OTHER_COLOUR = "#c2410c", "#64748b"


class Bar(NamedTuple):
    title: str
    value: float
    label: str
    is_ours: bool


def draw_bars(bars: Sequence[Bar], title: str, unit: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    drawn = bars[::-1]
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 11}
    with matplotlib.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(8, 0.8 + 0.42 * len(drawn)), layout="constrained")
        rectangles = axes.barh(
            [bar.title for bar in drawn],
            [bar.value for bar in drawn],
            color=[OUR_COLOUR if bar.is_ours else OTHER_COLOUR for bar in drawn],
        )
        axes.bar_label(rectangles, [bar.label for bar in drawn], padding=4)
        axes.margins(x=0.12)
        axes.set_xlabel(unit)
        figure.suptitle(title, fontsize=11)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
