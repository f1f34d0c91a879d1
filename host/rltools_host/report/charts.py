"""The report's plots as inline SVG: drawn by matplotlib, coloured by the page's style sheet.

matplotlib writes colours into the SVG. The ones used here are placeholders that become CSS
variables, so that a plot follows the page from light to dark. Each plot is drawn twice, for a wide
and for a narrow page, as text that is scaled down with its plot cannot be read.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Placeholder colours, and the variable of report.css that takes the place of each.
COLOURS = {
    "ink": "#000101",
    "soft": "#000102",
    "line": "#000103",
    "first": "#000104",
    "second": "#000105",
    "third": "#000106",
    "goal": "#000107",
    "card": "#000108",
}
INK, SOFT, LINE, FIRST, SECOND, THIRD, GOAL, CARD = COLOURS.values()
WIDE, NARROW = 980, 400  # CSS pixels
EPISODE_WIDTH = 720  # beside the picture of the pendulum
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 1.0,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "ytick.major.size": 0.0,
    "text.color": SOFT,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
}

Values = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Curve:
    """Values over training steps."""

    steps: Values
    values: Values

    def finite(self) -> Curve:
        known = np.isfinite(self.values)
        return Curve(self.steps[known], self.values[known])


@dataclass(frozen=True)
class LearningData:
    training: Curve  # return of each training episode
    evaluation: Curve  # mean return of each evaluation
    evaluation_low: Values  # mean minus deviation, but no less than the smallest return
    evaluation_high: Values
    final: tuple[float, float, float] | None  # step, mean and deviation after training
    final_label: str
    goal: float | None


@dataclass(frozen=True)
class EpisodePanel:
    """One quantity of an episode; `wraps` is the width of its circle where it is an angle."""

    label: str
    values: Values
    bounds: tuple[float, float] | None = None
    wraps: float | None = None


def responsive(
    draw: Callable[[Figure, bool], None], heights: tuple[int, int], label: str, width: int = WIDE
) -> str:
    """A plot as two SVGs, of which the style sheet shows one. draw(figure, is_wide)"""
    pictures = []
    for is_wide, size in ((True, (width, heights[0])), (False, (NARROW, heights[1]))):
        with figure_of(*size) as figure:
            draw(figure, is_wide)
            name = "wide" if is_wide else "narrow"
            pictures.append(svg_of(figure, name, label))
    return "".join(pictures)


@contextmanager
def figure_of(width: int, height: int) -> Iterator[Figure]:
    """A figure of this many CSS pixels."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in STYLE.items():
            matplotlib.rcParams[name] = value  # type: ignore[index]
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
        FigureCanvasSVG(figure)
        yield figure


def svg_of(figure: Figure, css_class: str, label: str) -> str:
    """The figure as an SVG element for an HTML page."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', text, count=1)
    for name, colour in COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = unique_names(text, f"{css_class}-{abs(hash_of(label)):x}")
    return text.replace(
        "<svg ", f'<svg class="{css_class}" role="img" aria-label="{escape(label)}" ', 1
    ).strip()


def hash_of(text: str) -> int:
    """The same in every process, unlike hash()."""
    return int.from_bytes(text.encode(), "little") % 0xFFFFFFFB


def unique_names(svg: str, prefix: str) -> str:
    """Prefixes all identifiers, as those of several SVGs share one page."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    return re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)


def thousands(value: float, _position: Any = None) -> str:
    return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")


def use_thousands(axes: Axes, is_wide: bool, *, both: bool = True) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_formatter(thousands)
    axes.xaxis.set_major_locator(MaxNLocator(10 if is_wide else 4, steps=[1, 2, 5, 10]))
    if both:
        axes.yaxis.set_major_formatter(thousands)


def title(axes: Axes, text: str) -> None:
    """What the vertical axis shows, horizontally and above it."""
    axes.set_title(text, loc="left", color=SOFT, pad=8)


def learning_curve(data: LearningData) -> str:
    """Returns over steps: training episodes, evaluations with a band of one deviation, the goal."""

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        training = data.training.finite()
        axes.plot(
            training.steps,
            training.values,
            linestyle="none",
            marker="o",
            markersize=4.5,
            color=SECOND,
            alpha=0.75,
            markeredgewidth=0,
            label="training episode",
        )
        steps, mean = data.evaluation.steps, data.evaluation.values
        if steps.size:
            low, high = data.evaluation_low, data.evaluation_high
            axes.fill_between(steps, low, high, color=FIRST, alpha=0.16, linewidth=0)
            axes.plot(
                steps,
                mean,
                color=FIRST,
                linewidth=2.4,
                marker="o",
                markersize=5,
                label="evaluation, mean ± deviation",
            )
        if data.final is not None:
            step, value, deviation = data.final
            axes.errorbar(
                [step],
                [value],
                [deviation],
                color=INK,
                marker="D",
                markersize=6,
                linestyle="none",
                elinewidth=1.6,
                capsize=3,
                label=data.final_label,
                zorder=5,
            )
        if data.goal is not None:
            axes.axhline(data.goal, color=GOAL, linewidth=1.6, linestyle=(0, (5, 4)))
            axes.annotate(
                f"{thousands(data.goal)} “solved”",
                (0, data.goal),
                xycoords=("axes fraction", "data"),
                xytext=(4, 5),
                textcoords="offset points",
                color=GOAL,
            )
        use_thousands(axes, is_wide)
        axes.set_xlabel("environment steps")
        title(axes, "return")
        legend(figure, axes, is_wide)

    return responsive(draw, (360, 360), "Learning curve: return over environment steps")


def legend(figure: Figure, axes: Axes, is_wide: bool) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper right" if is_wide else "outside lower left",
        ncols=len(labels) if is_wide else 1,
        frameon=False,
        labelcolor=INK,
        handletextpad=0.5,
    )


def loss_curves(critics: Sequence[Curve], actor: Curve) -> str:
    """Losses over steps: critics on a logarithmic axis, actor below."""

    def draw(figure: Figure, is_wide: bool) -> None:
        grid = figure.subplots(1 if is_wide else 2, 2 if is_wide else 1)
        upper, lower = np.asarray(grid).ravel()
        for number, (curve, colour) in enumerate(zip(critics, (FIRST, SECOND), strict=True), 1):
            known = curve.finite()
            upper.plot(
                known.steps, known.values, color=colour, linewidth=1.3, label=f"critic {number}"
            )
        if any((curve.finite().values > 0).any() for curve in critics):
            upper.set_yscale("log")
            upper.yaxis.set_major_formatter(short_number)
            upper.yaxis.set_minor_formatter(lambda _value, _position: "")
        title(upper, "critic loss, mean squared error")
        upper.legend(frameon=False, labelcolor=INK, ncols=2, loc="upper right")
        known = actor.finite()
        lower.plot(known.steps, known.values, color=THIRD, linewidth=1.3)
        title(lower, "actor loss, minus the mean value")
        for axes in (upper, lower):
            use_thousands(axes, is_wide=False, both=axes is lower)
            axes.set_xlabel("environment steps")

    return responsive(draw, (250, 430), "Losses of critics and actor over environment steps")


def return_strip(returns: Sequence[float], goal: float | None) -> str:
    """Every evaluated episode as a dot over its return, stacked where they meet."""
    values = np.sort(np.asarray(returns, float))
    dots = {WIDE: 9.0, NARROW: 7.0}  # CSS pixels

    def stacked(width: int) -> tuple[Values, Values]:
        """Place and height of each dot; no column reaches across the goal."""
        column_width = max(values[-1] - values[0], 1.0) / (width / dots[width] - 8)
        origin = values[0] if goal is None else goal
        column = np.floor((values - origin) / column_width)
        height = [int((column[:i] == column[i]).sum()) for i in range(len(values))]
        return origin + (column + 0.5) * column_width, np.array(height, float)

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        width = WIDE if is_wide else NARROW
        place, height = stacked(width)
        solved = values >= goal if goal is not None else np.full(len(values), True)
        for chosen, colour in ((solved, FIRST), (~solved, SECOND)):
            axes.plot(
                place[chosen],
                height[chosen],
                linestyle="none",
                marker="o",
                markersize=dots[width] - 1.5,
                markeredgewidth=0,
                color=colour,
            )
        mean = float(values.mean())
        axes.axvline(mean, color=INK, linewidth=1.2)
        label_line(axes, mean, f"mean {thousands(mean)}", INK, to_left=mean < (goal or mean))
        if goal is not None and values[0] < goal:
            axes.axvline(goal, color=GOAL, linewidth=1.6, linestyle=(0, (5, 4)))
            label_line(axes, goal, f"{thousands(goal)} “solved”", GOAL, to_left=goal <= mean)
        axes.set_ylim(-0.8, height.max() + 3.5)
        axes.yaxis.set_visible(False)
        axes.grid(False)
        use_thousands(axes, is_wide)
        axes.set_xlabel("return of an episode")

    heights = [
        round(62 + (stacked(width)[1].max() + 4.3) * dots[width]) for width in (WIDE, NARROW)
    ]
    label = f"Returns of {len(returns)} evaluation episodes"
    return responsive(draw, (heights[0], heights[1]), label)


def training_time_bars(bars: Sequence[tuple[str, float, bool]]) -> str:
    """A bar for each library's seconds, the shortest on top: (name, seconds, is ours)."""

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        places = np.arange(len(bars))[::-1]
        drawn = axes.barh(
            places,
            [seconds for _, seconds, _ in bars],
            height=0.62 if is_wide else 0.4,
            color=[FIRST if is_ours else SOFT for _, _, is_ours in bars],
        )
        axes.bar_label(drawn, [f"{seconds:.2f} s" for _, seconds, _ in bars], padding=5, color=INK)
        if is_wide:
            axes.set_yticks(places, [name for name, _, _ in bars], color=INK)
        else:  # the names stand above their bars, as they would take half of the page's width
            axes.set_yticks([])
            for place, (name, _, _) in zip(places, bars, strict=True):
                axes.text(0, place + 0.26, name, color=INK, va="bottom")
        axes.margins(x=0.14 if is_wide else 0.24, y=0.04 if is_wide else 0.06)
        axes.grid(False)
        axes.xaxis.set_major_formatter(short_number)
        axes.set_xlabel("seconds")

    heights = (round(56 + 32 * len(bars)), round(56 + 44 * len(bars)))
    return responsive(draw, heights, f"Training time of {len(bars)} libraries")


def label_line(axes: Axes, value: float, text: str, colour: str, *, to_left: bool) -> None:
    """Text at the top of a vertical line, beside it."""
    axes.annotate(
        text,
        (value, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if to_left else 5, -10),
        textcoords="offset points",
        ha="right" if to_left else "left",
        color=colour,
    )


def episode_panels(panels: Sequence[EpisodePanel], step_s: float) -> str:
    """Quantities of one episode over time, one below the other."""

    def draw(figure: Figure, _is_wide: bool) -> None:
        column = figure.subplots(len(panels), 1, sharex=True)
        colours = (FIRST, THIRD, SECOND, SOFT)
        for number, (axes, panel) in enumerate(zip(np.atleast_1d(column), panels, strict=True)):
            time_s = np.arange(len(panel.values)) * step_s
            times, values = broken_at_wraps(time_s, panel)
            axes.plot(
                times, values, color=colours[number % len(colours)], linewidth=1.8, clip_on=False
            )
            if panel.bounds is not None:
                low, high = panel.bounds
                margin = 0.06 * (high - low)
                axes.set_ylim(low - margin, high + margin)
                axes.set_yticks([low, (low + high) / 2, high])
            axes.yaxis.set_major_formatter(short_number)
            title(axes, panel.label)
            axes.set_xlim(0, time_s[-1] + step_s)
        np.atleast_1d(column)[-1].set_xlabel("time, s")

    count = len(panels)
    heights = (118 * count, 116 * count)
    return responsive(draw, heights, "One episode over time", width=EPISODE_WIDTH)


def short_number(value: float, _position: Any = None) -> str:
    text = f"{value:.3g}" if math.isfinite(value) else ""
    return text.replace("-", "\N{MINUS SIGN}")


def broken_at_wraps(time_s: Values, panel: EpisodePanel) -> tuple[Values, Values]:
    """A gap where an angle jumps from one end of its circle to the other."""
    if panel.wraps is None:
        return time_s, panel.values
    jumps = np.nonzero(np.abs(np.diff(panel.values)) > panel.wraps / 2)[0] + 1
    return np.insert(time_s, jumps, np.nan), np.insert(panel.values, jumps, np.nan)
