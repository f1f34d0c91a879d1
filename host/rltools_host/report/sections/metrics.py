"""What the algorithm reported of its learning: a small curve for each metric."""

from __future__ import annotations

from collections.abc import Sequence

from rltools_host.report import plot
from rltools_host.report.markup import Section, text
from rltools_host.report.plot import Curve
from rltools_host.report.run_data import RunData, values_of
from rltools_host.runs.rows import metric_names
from rltools_host.training.metrics_log import words

HEIGHT = 150  # CSS pixels
PAGE = 1020  # of a row of curves
GAP = 20
DECADES = 2  # a positive metric that spans more has a logarithmic axis
STYLE = """
.metrics { display: grid; grid-template-columns: repeat(var(--columns), 1fr); gap: 18px 20px; }
@media (max-width: 720px) { .metrics { grid-template-columns: repeat(2, 1fr); } }
@media (max-width: 480px) { .metrics { grid-template-columns: 1fr; } }
"""


def section(data: RunData) -> Section | None:
    progress = data.rows("progress")
    steps = values_of(progress, "step")
    names = dict.fromkeys(name for row in progress for name in metric_names(row))
    curves = {name: Curve(steps, values_of(progress, name)).finite() for name in names}
    known = {name: curve for name, curve in curves.items() if curve.steps.size}
    if not known:
        return None
    count = columns(len(known))
    width = (PAGE - (count - 1) * GAP) // count
    meanings = {metric.name: metric.description for metric in data.metrics_described}
    figures = "".join(
        f"<figure>{small_curve(words(name), curve, width)}"
        f"<figcaption>{text(meanings.get(name, ''))}</figcaption></figure>\n"
        for name, curve in known.items()
    )
    lead = "What the algorithm says of its learning: means between two reports."
    body = f'<div class="metrics" style="--columns: {count}">\n{figures}</div>'
    return Section("Metrics", lead, body, STYLE)


def columns(count: int) -> int:
    """Three or four: the number that leaves fewer places empty."""
    return min((4, 3), key=lambda columns: -count % columns)


def small_curve(name: str, curve: Curve, width: int) -> str:
    """A metric over steps."""
    with plot.figure_of(width, HEIGHT) as figure:
        axes = figure.add_subplot()
        axes.plot(curve.steps, curve.values, color=plot.FIRST, linewidth=1.3)
        if is_logarithmic(curve.values.tolist()):
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter(lambda _value, _position: "")
        axes.yaxis.set_major_formatter(plot.short_number)
        plot.title(axes, name)
        plot.use_thousands(axes, is_wide=False, both=False)
        axes.set_xlabel("environment steps")
        return plot.svg_of(figure, "metric", f"{name} over environment steps")


def is_logarithmic(values: Sequence[float]) -> bool:
    lowest, highest = min(values), max(values)
    return lowest > 0 and highest > lowest * 10**DECADES
