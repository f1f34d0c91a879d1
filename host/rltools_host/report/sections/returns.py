"""Every evaluation episode as a dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rltools_host.policies.evaluation import GYMNASIUM, Evaluation
from rltools_host.report import plot
from rltools_host.report.markup import Section, number, text
from rltools_host.report.plot import Values, thousands
from rltools_host.report.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def section(data: RunData) -> Section | None:
    evaluation = data.evaluation
    if evaluation is None:
        return None
    lead = (
        f"Every one of the {evaluation.episodes} evaluation episodes, {text(evaluation.simulator)}"
        f"{seeds_of(evaluation)}: worst {number(min(evaluation.returns), 1)}, median "
        f"{number(float(np.median(evaluation.returns)), 1)}, best "
        f"{number(max(evaluation.returns), 1)}."
    )
    strip = return_strip(evaluation.returns, evaluation.success_return)
    return Section("All evaluation episodes", lead, strip)


def seeds_of(evaluation: Evaluation) -> str:
    if evaluation.simulator.startswith(GYMNASIUM):
        return f", seeds {evaluation.seed} to {evaluation.seed + evaluation.episodes - 1}"
    return f", seed {evaluation.seed}"


def return_strip(returns: Sequence[float], goal: float | None) -> str:
    """Every evaluated episode as a dot over its return, stacked where they meet."""
    values = np.sort(np.asarray(returns, float))
    dots = {plot.WIDE: 9.0, plot.NARROW: 7.0}  # CSS pixels

    def stacked(width: int) -> tuple[Values, Values]:
        """Place and height of each dot; no column reaches across the goal."""
        column_width = max(values[-1] - values[0], 1.0) / (width / dots[width] - 8)
        origin = values[0] if goal is None else goal
        column = np.floor((values - origin) / column_width)
        height = [int((column[:i] == column[i]).sum()) for i in range(len(values))]
        return origin + (column + 0.5) * column_width, np.array(height, float)

    def draw(figure: Figure, is_wide: bool) -> None:
        axes = figure.add_subplot()
        width = plot.WIDE if is_wide else plot.NARROW
        place, height = stacked(width)
        solved = values >= goal if goal is not None else np.full(len(values), True)
        for chosen, colour in ((solved, plot.FIRST), (~solved, plot.SECOND)):
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
        axes.axvline(mean, color=plot.INK, linewidth=1.2)
        plot.label_line(
            axes, mean, f"mean {thousands(mean)}", plot.INK, to_left=mean < (goal or mean)
        )
        if goal is not None and values[0] < goal:
            axes.axvline(goal, color=plot.GOAL, linewidth=1.6, linestyle=(0, (5, 4)))
            plot.label_line(
                axes, goal, f"{thousands(goal)} “solved”", plot.GOAL, to_left=goal <= mean
            )
        axes.set_ylim(-0.8, height.max() + 3.5)
        axes.yaxis.set_visible(False)
        axes.grid(False)
        plot.use_thousands(axes, is_wide)
        axes.set_xlabel("return of an episode")

    heights = [
        round(62 + (stacked(width)[1].max() + 4.3) * dots[width])
        for width in (plot.WIDE, plot.NARROW)
    ]
    label = f"Returns of {len(returns)} evaluation episodes"
    return plot.responsive(draw, (heights[0], heights[1]), label)
