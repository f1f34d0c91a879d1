"""Pictures of a gate whose airframes are drawn: the map of those that a policy flies, and a
linear probe over time of what its hidden state knows of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.drones.flight.airframes import LIFT, MASS_KG, AirframeMap
from rltools_host.drones.flight.gate import Gate
from rltools_host.drones.flight.gate_result import GateResult
from rltools_host.drones.flight.simulator import HIDDEN_TICKS, airframes, flight_library, fly
from rltools_host.policies.image import PolicyImage
from rltools_host.report import markup
from rltools_host.system import processors

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLORS = (markup.FIRST, markup.SECOND, markup.GOAL)
Values = NDArray[np.float64]
FLIGHTS = 800  # half of them for the fit, the other half for the judgment
SECONDS = 3.0
MIN_PER_UNIT = 5  # flights that still fly, of those that count
RIDGE = 1e-6  # of the states' variances
# Logarithms of these, by their names in a figure. Of what moves a drone all is ratios: a policy has
# no other way to a mass than by what the airframes of one mass have in common.
KNOWN = {
    "thrust to weight": "lift",
    "torque to inertia": "turn_x",
    "mass": "mass_kg",
}


def maps(result: GateResult) -> str:
    """Return the rates of success by mass and thrust to weight, of the first part and of all, as
    HTML."""
    first = next(iter(result.by_part.items()), None)
    found = [] if first is None else [(first[0], first[1].map)]
    found.append(("all parts" if found else "all flights", result.map))
    drawn = [(name, each) for name, each in found if each is not None]
    if not drawn:
        return ""

    def draw(figure: Figure, is_wide: bool) -> None:
        shape = (1, len(drawn)) if is_wide else (len(drawn), 1)
        grid = figure.subplots(*shape, squeeze=False).flat
        for axes, (name, each) in zip(grid, drawn, strict=True):
            draw_map(axes, each)
            markup.title(axes, f"{name}: successful flights, %")

    picture = markup.responsive(
        draw, (250, 230 * len(drawn)), f"Map of airframes, gate {result.gate.name}"
    )
    caption = "Drawn airframes, by mass and by greatest thrust to weight."
    return f'<figure>{picture}<figcaption class="caption">{caption}</figcaption></figure>'


def draw_map(axes: Any, found: AirframeMap) -> None:
    rates = found.rates
    for row, column in np.ndindex(rates.shape):
        rate = rates[row, column]
        if np.isnan(rate):
            continue
        x, y = column + np.array([0, 1, 1, 0]), row + np.array([0, 0, 1, 1])
        axes.fill(x, y, color=markup.FIRST, alpha=0.45 * rate, linewidth=0)
        center = (column + 0.5, row + 0.5)
        axes.text(*center, f"{100 * rate:.0f}", ha="center", va="center", color=markup.INK)
    axes.set_xticks(range(len(LIFT)), [f"{bound:g}" for bound in LIFT])
    axes.set_yticks(range(len(MASS_KG)), [f"{bound:g}" for bound in MASS_KG])
    axes.set_xlim(0, len(LIFT) - 1)
    axes.set_ylim(0, len(MASS_KG) - 1)
    axes.grid(visible=False)
    axes.set_xlabel("thrust to weight")
    axes.set_ylabel("mass, kg")


def knowledge(result: GateResult, image: PolicyImage) -> str:
    """Return the plot of a linear probe of the hidden state over time, as HTML; empty where
    there is none."""
    first = next(iter(result.gate.kinds.values()))
    if image.recurrence is None or not first.draws_airframes:
        return ""
    found = probe(first, image)

    def draw(figure: Figure, _is_wide: bool) -> None:
        axes = figure.add_subplot()
        for color, (name, determined) in zip(COLORS, found.found.items(), strict=True):
            axes.plot(found.time_s, determined, color=color, linewidth=1.8, label=name)
        axes.set_xlim(0, found.time_s[-1])
        axes.set_ylim(-0.2, 1.02)
        axes.set_xlabel("time, s")
        markup.title(axes, "R\N{SUPERSCRIPT TWO} of a linear probe of the hidden state")
        figure.legend(loc="outside lower center", ncols=3, frameon=False)

    picture = markup.responsive(
        draw, (250, 250), f"What the hidden state knows, gate {result.gate.name}"
    )
    caption = (
        "What the hidden state knows: 1 is all, 0 nothing. A linear function of it is fitted to "
        "the logarithms of half of the airframes, and judged by the other half. Only ratios move a "
        "drone, so a policy cannot see its mass."
    )
    return f'<figure>{picture}<figcaption class="caption">{caption}</figcaption></figure>'


@dataclass(frozen=True)
class Probe:
    """The coefficient of determination R^2 of each quantity at each time, on airframes that the
    fit has not seen: 1 is all, 0 no more than their mean."""

    time_s: Values
    found: Mapping[str, Values]


def probe(gate: Gate, image: PolicyImage, flights: int = FLIGHTS) -> Probe:
    """Fly a gate without parts, whose airframes are drawn, with a policy that has a hidden
    state; fit the probe to half of the flights."""
    assert image.recurrence is not None
    short = replace(gate.rule, seconds=SECONDS, last_seconds=SECONDS)
    ticks, _, _ = short.in_ticks(flight_library().tick_s)
    count = -(-ticks // HIDDEN_TICKS)
    hidden = np.zeros((flights, count, image.recurrence.state_dim), np.float32)
    outcomes, _ = fly(
        image,
        short,
        gate.settings,
        gate.seed,
        count=flights,
        limits=gate.executor,
        threads=processors(),
        hidden=hidden,
    )
    drawn = airframes(gate.settings, gate.seed, range(flights))
    wanted = {name: np.log(drawn[field].astype(float)) for name, field in KNOWN.items()}
    flies = outcomes["ticks"][:, None] > np.arange(count) * HIDDEN_TICKS
    found = {
        name: np.array(
            [determined(hidden[flies[:, step], step], of[flies[:, step]]) for step in range(count)]
        )
        for name, of in wanted.items()
    }
    time_s = np.arange(count, dtype=np.float64) * (HIDDEN_TICKS * flight_library().tick_s)
    return Probe(time_s, found)


def determined(states: NDArray[np.float32], values: Values) -> float:
    """Return R^2 of a linear function of the states (n, dim), fitted to every other row, for the
    rest; NaN where there are too few rows to judge."""
    if len(states) < MIN_PER_UNIT * states.shape[1]:
        return math.nan
    rows = np.column_stack([states.astype(float), np.ones(len(states))])
    fit, judged = rows[::2], rows[1::2]
    normal = fit.T @ fit
    normal[np.diag_indices_from(normal)] += RIDGE * np.trace(normal) / len(normal)
    weights = np.linalg.solve(normal, fit.T @ values[::2])
    rest = values[1::2]
    left = float(((judged @ weights - rest) ** 2).sum())
    return 1.0 - left / float(((rest - rest.mean()) ** 2).sum())
