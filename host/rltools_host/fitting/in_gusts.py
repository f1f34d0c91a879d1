"""Parameters and gusts together, of a log in which there are gusts.

How long gusts last and how much the rotors do can hardly be told apart where a controller answers
to the gusts: parameters that are found with gusts that are held, and gusts with parameters that are
held, come to rest far from the most likely ones. So the parameters are found for some durations,
the most likely duration is that of the parabola through them, and its error is in the intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rltools_host.fitting.estimate import Estimate
from rltools_host.fitting.gusts import DURATIONS_S, most_likely
from rltools_host.fitting.model import Model

Array = NDArray[np.float64]

FIRST_S, FACTOR = 0.3, 2.0  # the durations that are tried
# Sizes are those of the parameters that were found before: until these move less than this, in
# their standard errors.
UNMOVED, MOST_TIMES = 0.1, 3


@dataclass(frozen=True)
class InGusts:
    """What was found with a duration."""

    model: Model
    estimate: Estimate
    unlikely: float  # the logarithm of the likelihood, negative


def estimate_in_gusts(
    model: Model, start: Array, estimated: Callable[[Model, Array], Estimate]
) -> tuple[InGusts, Array]:
    """With the most likely duration; and how the parameters move with its standard error."""
    tried: dict[int, InGusts] = {}

    def at(place: int, near: Array) -> InGusts:
        if place not in tried:
            tried[place] = with_duration(model, FIRST_S * FACTOR**place, near, estimated)
        return tried[place]

    shortest, longest = (int(np.log(s / FIRST_S) / np.log(FACTOR)) for s in DURATIONS_S)
    best = 0
    near = at(best, start).estimate.theta
    while True:
        beside = [place for place in (best - 1, best + 1) if shortest <= place <= longest]
        better = min(beside, key=lambda place: at(place, near).unlikely)
        if tried[better].unlikely >= tried[best].unlikely:
            break
        best, near = better, tried[better].estimate.theta
    if len(beside) < 2:  # as short or long as can be told
        return tried[best], np.zeros_like(near)
    low, middle, high = (tried[best + side] for side in (-1, 0, 1))
    bend = low.unlikely - 2.0 * middle.unlikely + high.unlikely
    peak = 0.5 * (low.unlikely - high.unlikely) / max(bend, 1e-9)
    duration_s = FIRST_S * FACTOR ** (best + float(np.clip(peak, -0.5, 0.5)))
    by_step = 0.5 * (high.estimate.theta - low.estimate.theta)
    found = with_duration(model, duration_s, near, estimated)
    return found, by_step * min(1.0 / np.sqrt(max(bend, 1e-9)), 1.0)


def with_duration(
    model: Model, duration_s: float, start: Array, estimated: Callable[[Model, Array], Estimate]
) -> InGusts:
    theta = start
    for _ in range(MOST_TIMES):
        gusts = most_likely(model.settled(theta), model.integrated, model.log.step_s, duration_s)
        filtered = Model(model.log, model.rotor_x_m, model.rotor_y_m, gusts)
        found = estimated(filtered, theta)
        moved = np.abs(found.theta - theta)
        theta = found.theta
        if np.all(moved <= UNMOVED * found.errors):
            break
    rows = len(model.log.time_s) - model.windows.rows.start  # of each channel
    return InGusts(filtered, found, rows * float(np.log(found.noise).sum()))


def widened(found: Estimate, moved: Array) -> Estimate:
    """With an error that moves the parameters that are free together."""
    moved = np.where(np.isin(np.arange(len(moved)), found.free), moved, 0.0)
    covariance = found.covariance + np.outer(moved, moved)
    return replace(found, covariance=covariance, errors=np.sqrt(np.diag(covariance)))
