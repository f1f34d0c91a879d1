"""Losses of critics and actor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rltools_host.report import plot
from rltools_host.report.markup import Section
from rltools_host.report.plot import Curve
from rltools_host.report.run_data import RunData, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def section(data: RunData) -> Section | None:
    progress = data.rows("progress")
    steps = values_of(progress, "step")
    critics = [Curve(steps, values_of(progress, f"critic_{number}_loss")) for number in (1, 2)]
    actor = Curve(steps, values_of(progress, "actor_loss"))
    if not critics[0].finite().steps.size or not actor.finite().steps.size:
        return None
    lead = (
        "Means between two reports. The critics' target moves with the policy, so their loss need "
        "not fall; a rising actor loss means falling values."
    )
    return Section("Losses", lead, loss_curves(critics, actor))


def loss_curves(critics: Sequence[Curve], actor: Curve) -> str:
    """Losses over steps: critics on a logarithmic axis, actor below."""

    def draw(figure: Figure, is_wide: bool) -> None:
        grid = figure.subplots(1 if is_wide else 2, 2 if is_wide else 1)
        upper, lower = np.asarray(grid).ravel()
        for number, (curve, colour) in enumerate(
            zip(critics, (plot.FIRST, plot.SECOND), strict=True), 1
        ):
            known = curve.finite()
            upper.plot(
                known.steps, known.values, color=colour, linewidth=1.3, label=f"critic {number}"
            )
        if any((curve.finite().values > 0).any() for curve in critics):
            upper.set_yscale("log")
            upper.yaxis.set_major_formatter(plot.short_number)
            upper.yaxis.set_minor_formatter(lambda _value, _position: "")
        plot.title(upper, "critic loss, mean squared error")
        upper.legend(frameon=False, labelcolor=plot.INK, ncols=2, loc="upper right")
        known = actor.finite()
        lower.plot(known.steps, known.values, color=plot.THIRD, linewidth=1.3)
        plot.title(lower, "actor loss, minus the mean value")
        for axes in (upper, lower):
            plot.use_thousands(axes, is_wide=False, both=axes is lower)
            axes.set_xlabel("environment steps")

    return plot.responsive(draw, (250, 430), "Losses of critics and actor over environment steps")
