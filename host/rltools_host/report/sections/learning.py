"""Returns over training: each training episode, evaluations, the policy at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rltools_host.report import plot
from rltools_host.report.markup import Section, number
from rltools_host.report.plot import Curve, Values, thousands
from rltools_host.report.run_data import RunData, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class LearningData:
    training: Curve  # return of each training episode
    evaluation: Curve  # mean return of each evaluation
    evaluation_low: Values  # mean minus deviation, but no less than the smallest return
    evaluation_high: Values
    final: tuple[float, float, float] | None  # step, mean and deviation after training
    final_label: str
    goal: float | None


def section(data: RunData) -> Section | None:
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
        lead += f" A return of {number(data.goal)} is what the environment calls solved."
    return Section("Learning", lead, learning_curve(learning_data(data)))


def learning_data(data: RunData) -> LearningData:
    progress, evaluations = data.rows("progress"), data.rows("evaluation")
    mean, std = values_of(evaluations, "return_mean"), values_of(evaluations, "return_std")
    episodes = values_of(progress, "episodes")
    is_new = np.diff(episodes, prepend=0) > 0  # an episode ended since the row before
    final, final_label = None, ""
    if data.evaluation is not None:
        final = (float(data.steps_done), data.evaluation.mean, data.evaluation.std)
        final_label = f"{data.evaluation.episodes} episodes afterwards"
    return LearningData(
        training=Curve(
            values_of(progress, "step")[is_new], values_of(progress, "last_return")[is_new]
        ),
        evaluation=Curve(values_of(evaluations, "step"), mean),
        evaluation_low=np.maximum(mean - std, values_of(evaluations, "return_min")),
        evaluation_high=np.minimum(mean + std, values_of(evaluations, "return_max")),
        final=final,
        final_label=final_label,
        goal=data.goal,
    )


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
            color=plot.SECOND,
            alpha=0.75,
            markeredgewidth=0,
            label="training episode",
        )
        steps, mean = data.evaluation.steps, data.evaluation.values
        if steps.size:
            low, high = data.evaluation_low, data.evaluation_high
            axes.fill_between(steps, low, high, color=plot.FIRST, alpha=0.16, linewidth=0)
            axes.plot(
                steps,
                mean,
                color=plot.FIRST,
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
                color=plot.INK,
                marker="D",
                markersize=6,
                linestyle="none",
                elinewidth=1.6,
                capsize=3,
                label=data.final_label,
                zorder=5,
            )
        if data.goal is not None:
            is_highest = bool(data.goal >= axes.dataLim.y1)
            axes.axhline(data.goal, color=plot.GOAL, linewidth=1.6, linestyle=(0, (5, 4)))
            axes.annotate(
                f"{thousands(data.goal)} “solved”",
                (0, data.goal),
                xycoords=("axes fraction", "data"),
                xytext=(4, -5 if is_highest else 5),  # the title of the axis is above
                textcoords="offset points",
                va="top" if is_highest else "baseline",
                color=plot.GOAL,
            )
        plot.use_thousands(axes, is_wide)
        axes.set_xlabel("environment steps")
        plot.title(axes, "return")
        legend(figure, axes, is_wide)

    return plot.responsive(draw, (360, 360), "Learning curve: return over environment steps")


def legend(figure: Figure, axes: Axes, is_wide: bool) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper right" if is_wide else "outside lower left",
        ncols=len(labels) if is_wide else 1,
        frameon=False,
        labelcolor=plot.INK,
        handletextpad=0.5,
    )
