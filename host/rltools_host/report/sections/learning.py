"""The learning over training: returns of episodes and evaluations, and the algorithm's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rltools_host.report import markup
from rltools_host.report.markup import Curve, Section, number, text
from rltools_host.report.run_data import RunData, values_of
from rltools_host.runs.contents import metric_names
from rltools_host.training.metrics_log import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 150  # CSS pixels, of a metric
PAGE = 1020  # of a row of curves
GAP = 20
MAX_EPISODES = 3000  # that are drawn: each is 100 bytes, and more of them hide each other
DECADES = 2  # a positive metric that spans more has a logarithmic axis
STYLE = """
.metrics { display: grid; grid-template-columns: repeat(var(--columns), 1fr); gap: 18px 20px; }
@media (max-width: 720px) { .metrics { grid-template-columns: repeat(2, 1fr); } }
@media (max-width: 480px) { .metrics { grid-template-columns: 1fr; } }
"""


def returns(data: RunData) -> Section | None:
    if not data.rows("progress") and not data.rows("evaluation"):
        return None
    evaluations = data.rows("evaluation")
    lead = "Return of each training episode, which explores"
    if evaluations:
        episodes = number(float(evaluations[-1].get("episodes") or 0))
        lead += (
            f", and of deterministic evaluations on the board, {episodes} episodes each; the "
            "band is one standard deviation, within the smallest and largest return"
        )
    lead += "."
    if data.goal is not None:
        lead += f" From a mean of {number(data.goal)} on the environment counts as solved."
    return Section("Learning", lead, learning_curve(data))


def learning_curve(data: RunData) -> str:
    """Draw returns over steps: training episodes, evaluations with a band of one deviation, the
    goal."""
    progress, evaluations = data.rows("progress"), data.rows("evaluation")
    # Where an episode ended since the row before.
    is_new = np.diff(values_of(progress, "episodes"), prepend=0) > 0
    training = Curve(values_of(progress, "step"), values_of(progress, "last_return"))
    training = Curve(training.steps[is_new], training.values[is_new]).finite()
    drawn = training.thinned(MAX_EPISODES)
    steps = values_of(evaluations, "step")
    mean, std = values_of(evaluations, "return_mean"), values_of(evaluations, "return_std")

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        axes.plot(
            drawn.steps,
            drawn.values,
            linestyle="none",
            marker="o",
            markersize=4.5,
            color=markup.SECOND,
            alpha=0.75,
            markeredgewidth=0,
            label="training episode"
            if drawn is training
            else f"{len(drawn.steps):,} training episodes",
        )
        if steps.size:
            low = np.maximum(mean - std, values_of(evaluations, "return_min"))
            high = np.minimum(mean + std, values_of(evaluations, "return_max"))
            markup.band(axes, steps, low, high, color=markup.FIRST, alpha=0.16)
            axes.plot(
                steps,
                mean,
                color=markup.FIRST,
                linewidth=2.4,
                marker="o",
                markersize=5,
                label="evaluation, mean ± deviation",
            )
        if data.evaluation is not None:
            axes.errorbar(
                [data.steps_done],
                [data.evaluation.mean],
                [data.evaluation.std],
                color=markup.INK,
                marker="D",
                markersize=6,
                linestyle="none",
                elinewidth=1.6,
                capsize=3,
                label=f"{data.evaluation.episodes} episodes afterwards",
                zorder=5,
            )
        if data.goal is not None:
            is_highest = bool(data.goal >= axes.dataLim.y1)
            axes.axhline(data.goal, color=markup.GOAL, linewidth=1.6, linestyle=(0, (5, 4)))
            axes.annotate(
                f"{number(data.goal)} “solved”",
                (0, data.goal),
                xycoords=("axes fraction", "data"),
                xytext=(4, -5 if is_highest else 5),  # the title of the axis is above
                textcoords="offset points",
                va="top" if is_highest else "baseline",
                color=markup.GOAL,
            )
        markup.use_thousands(axes, is_wide)
        axes.set_xlabel("environment steps")
        markup.title(axes, "return")
        markup.legend(figure, axes, is_wide)

    return markup.responsive(draw, (360, 360), "Learning curve: return over environment steps")


# -- metrics ---------------------------------------------------------------------------------------


def metrics(data: RunData) -> Section | None:
    progress = data.rows("progress")
    steps = values_of(progress, "step")
    own = dict.fromkeys(name for row in progress for name in metric_names(row))
    names = [*own, "episode_length"]
    curves = {name: Curve(steps, values_of(progress, name)).finite() for name in names}
    evaluations = data.rows("evaluation")
    lengths = Curve(values_of(evaluations, "step"), values_of(evaluations, "length_mean"))
    curves["evaluation_length"] = lengths.finite()
    known = {name: curve for name, curve in curves.items() if curve.steps.size}
    if not known.keys() - {"episode_length", "evaluation_length"}:
        return None
    count = columns(len(known))
    width = (PAGE - (count - 1) * GAP) // count
    meanings = {metric.name: metric.description for metric in data.metrics_described}
    meanings["episode_length"] = "Mean steps of the training episodes that ended lately."
    meanings["evaluation_length"] = "Mean steps of an evaluation's episodes."
    figures = "".join(
        f"<figure>{small_curve(words(name), curve, width)}"
        f"<figcaption>{text(meanings.get(name, ''))}</figcaption></figure>\n"
        for name, curve in known.items()
    )
    lead = "The metrics of the algorithm: means between two reports."
    body = f'<div class="metrics" style="--columns: {count}">\n{figures}</div>'
    return Section("Metrics", lead, body, STYLE)


def columns(count: int) -> int:
    """Return three or four: the number that leaves fewer cells empty."""
    return min((4, 3), key=lambda columns: -count % columns)


def small_curve(name: str, curve: Curve, width: int) -> str:
    """Draw a metric over steps."""
    with markup.figure_of(width, HEIGHT) as figure:
        axes = figure.add_subplot()
        axes.plot(curve.steps, curve.values, color=markup.FIRST, linewidth=1.3)
        if is_logarithmic(curve.values.tolist()):
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter(lambda _value, _position: "")
        axes.yaxis.set_major_formatter(markup.short_number)
        markup.title(axes, name)
        markup.use_thousands(axes, is_wide=False, both=False)
        axes.set_xlabel("environment steps")
        return markup.svg_of(figure, "metric", f"{name} over environment steps")


def is_logarithmic(values: Sequence[float]) -> bool:
    lowest, highest = min(values), max(values)
    return lowest > 0 and highest > lowest * 10**DECADES
