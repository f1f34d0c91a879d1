"""What a policy's hidden state knows of the airframe that it flies: a linear probe, over time."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rltools_host.flight.gate import Gate
from rltools_host.flight.simulator import HIDDEN_TICKS, airframes, flight_library, fly
from rltools_host.policies.image import PolicyImage

Values = NDArray[np.float64]
FLIGHTS = 800  # half of them for the fit, the other half for what is told
SECONDS = 3.0
LEAST_PER_UNIT = 5  # flights that still fly, of those that count
RIDGE = 1e-6  # of the states' variances
# Logarithms of these, by their names in a figure. Of what moves a drone all is ratios: a policy has
# no other way to a mass than by what is alike in the airframes of one mass.
KNOWN = {
    "thrust to weight": "lift",
    "torque to inertia": "turn_x",
    "mass": "mass_kg",
}


@dataclass(frozen=True)
class Probe:
    """The coefficient of determination R^2 of each, at each time, on airframes that the fit has not
    seen: 1 is all, 0 no more than their mean."""

    time_s: Values
    found: Mapping[str, Values]


def probe(gate: Gate, image: PolicyImage, flights: int = FLIGHTS) -> Probe:
    """Of a gate without parts, whose airframes are drawn, flown by a policy with a hidden state."""
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
        threads=len(os.sched_getaffinity(0)),
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
    """R^2 of a linear function of the states (n, dim): fitted to every other row, for the rest. NaN
    of a few rows, which say nothing of the others."""
    if len(states) < LEAST_PER_UNIT * states.shape[1]:
        return math.nan
    rows = np.column_stack([states.astype(float), np.ones(len(states))])
    fit, told = rows[::2], rows[1::2]
    normal = fit.T @ fit
    normal[np.diag_indices_from(normal)] += RIDGE * np.trace(normal) / len(normal)
    weights = np.linalg.solve(normal, fit.T @ values[::2])
    rest = values[1::2]
    left = float(((told @ weights - rest) ** 2).sum())
    return 1.0 - left / float(((rest - rest.mean()) ** 2).sum())
