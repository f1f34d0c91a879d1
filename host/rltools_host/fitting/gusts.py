"""What gusts leave in a log's sensors, made white, so that least squares are as sure as they say.

A gust is taken as an acceleration of the first order: it is forgotten within its duration. An
accelerometer shows it beside its white noise; a gyroscope (and a velocity) shows its integral. A
Kalman filter of that predicts each row from those before it; what it does not predict is white
where the noise is as taken, and what a controller did by then cannot be correlated with it. Sizes
and durations are the most likely ones of the differences at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.signal import lfilter

Array = NDArray[np.float64]

# Where the search begins, how far it goes: size over the sensor's noise (per second, for what is
# integrated), duration in seconds.
FIRST, FIRST_INTEGRATED = (0.5, 0.3), (10.0, 0.3)
SIZES, DURATIONS_S = (1e-3, 1e4), (0.02, 10.0)
FIRST_STEP, LAST_STEP = 1.4, 0.05  # of the logarithms


@dataclass(frozen=True)
class Gusts:
    """In one channel."""

    size: float  # standard deviation over that of the sensor's noise, in a row
    duration_s: float
    integrated: bool  # the channel shows the integral of the gusts' acceleration

    def filter(self, step_s: float) -> tuple[Array, ...]:
        """What a Kalman filter does not predict of a row, as a filter of the rows: numerator and
        denominator in powers of a delay of one row.

        What the channel shows is white where it is multiplied by the numerator's roots, 1 for the
        integral and what is kept of a gust, and divided by those of its spectrum that lie within
        the unit circle. With w = z + 1/z - 2 a root p of the numerator is (1 - p)^2 - p w.
        """
        kept = np.exp(-step_s / self.duration_s)
        pushed, forgotten = self.size**2 * (1.0 - kept**2), (1.0 - kept) ** 2
        if self.integrated:
            poles = [1.0, kept]
            w = np.roots([kept, -forgotten, pushed * step_s**2]).astype(complex)
        else:
            poles = [kept]
            w = np.array([(forgotten + pushed) / kept], complex)
        inside = (np.sqrt(1.0 + 0.25 * w) + np.sqrt(0.25 * w)) ** -2
        return tuple(np.real(np.poly(roots)) for roots in (poles, inside))


class Filter:
    """Of [channel, row] differences: what is not predicted of each row by those before it."""

    def __init__(self, gusts: list[Gusts], step_s: float, rows: int) -> None:
        self.gusts = gusts
        self._filters = [each.filter(step_s) for each in gusts]
        integrated = np.array([each.integrated for each in gusts])
        starts = self._filtered(np.ones((len(gusts), rows)) * integrated[:, None])
        lengths = np.linalg.norm(starts, axis=1, keepdims=True)
        self._starts = starts / np.where(integrated[:, None], lengths, 1.0)

    def _filtered(self, values: Array) -> Array:
        return np.stack(
            [lfilter(*each, row) for each, row in zip(self._filters, values, strict=True)]
        )

    def __call__(self, values: Array) -> Array:
        """The start of what is integrated is free."""
        filtered = self._filtered(values)
        result: Array = filtered - (filtered * self._starts).sum(axis=1, keepdims=True) * (
            self._starts
        )
        return result


def most_likely(
    differences: Array, integrated: list[bool], step_s: float, duration_s: float
) -> Filter:
    """The filter of the gusts of which [channel, row] differences are the most likely ones, where
    those of what is integrated have a duration that is given."""
    gusts = [
        most_likely_gusts(values, each, step_s, duration_s if each else None)
        for values, each in zip(differences, integrated, strict=True)
    ]
    return Filter(gusts, step_s, differences.shape[1])


def most_likely_gusts(
    values: Array, integrated: bool, step_s: float, duration_s: float | None = None
) -> Gusts:
    """By a search over the logarithms of size and, if it is not given, duration."""
    first = np.log(FIRST_INTEGRATED if integrated else FIRST)
    searched = 2 if duration_s is None else 1

    def of(place: Array) -> Gusts:
        size, duration = np.exp(place[0]), duration_s or np.exp(place[1])
        return Gusts(float(size), float(duration), integrated)

    def unlikely(place: Array) -> float:
        left = Filter([of(place)], step_s, len(values))(values[None])
        return float((left**2).sum())

    corners = first + FIRST_STEP * np.eye(3, 2, -1)
    found = minimize(
        unlikely,
        first[:searched],
        method="Nelder-Mead",
        bounds=np.log([SIZES, DURATIONS_S])[:searched],
        options={
            "initial_simplex": corners[: searched + 1, :searched],
            "xatol": LAST_STEP,
            "fatol": np.inf,
        },
    )
    return of(found.x)
