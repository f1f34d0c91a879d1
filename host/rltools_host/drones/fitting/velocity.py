"""The velocity with less noise: what it says slowly, and the accelerometer says quickly.

A rotor's flapping is seen by quick turns, so the velocity is integrated there and its noise is as
large as its motion: errors of an input make the effect look too small. Attitude and accelerometer
say how the velocity changes. What they do not explain of it is a random walk with white noise on
it, of which the rows before and after tell the walk. The sizes are the most likely ones. A
velocity whose noise is not white, as that of another estimator, stays nearly as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.signal import filtfilt, lfilter

Array = NDArray[np.float64]

LEAST_GAIN = 1e-3
FORGOTTEN = 10.0  # time constants


def steadied(measured: Array, changes: Array) -> Array:
    """Return a [row, n] velocity with less noise; `changes` is the integral of what is known of its
    acceleration."""
    columns = [smoothed(column) for column in (measured - changes).T]
    result: Array = changes + np.stack(columns, axis=1)
    return result


def smoothed(values: Array) -> Array:
    """Return the random walk under white noise, by the rows before and after."""
    gain = most_likely_gain(values)
    rows = min(int(FORGOTTEN / gain), len(values) - 1)
    result: Array = filtfilt([gain], [1.0, gain - 1.0], values, padlen=rows)
    return result


def most_likely_gain(values: Array) -> float:
    """Return the part of a row's surprise by which a Kalman filter moves the walk."""
    rows = np.arange(len(values))

    def unlikely(point: float) -> float:
        kept = 1.0 - float(np.exp(point))
        left, start = lfilter([1.0, -1.0], [1.0, -kept], values), kept**rows
        return float(left @ left - (left @ start) ** 2 / (start @ start))

    bounds = np.log(LEAST_GAIN), 0.0
    return float(np.exp(minimize_scalar(unlikely, bounds=bounds, method="bounded").x))
