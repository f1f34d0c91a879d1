"""What is taken from published drones where a log does not show it: values and how sure they are.

They enter the least squares as measurements do. So the intervals of what the log shows have the
assumption's error in them; a value that is held would make them too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from rltools_host.fitting.model import P, stepped

Array = NDArray[np.float64]
Assumption = Callable[[Array], list[float]]  # differences in standard deviations

# Of x and y together: the published tables have 0.78 to 0.95.
USUAL_INERTIA_Z, INERTIA_Z_DEVIATION = 0.87, 0.08
SHAPE = (P.SHAPE_0, P.SHAPE_1)
# Parts of the greatest thrust at rest, 0 to 0.10 in published curves, and proportional to speed,
# 0 to 0.34; the rest is its square.
USUAL_SHAPE, SHAPE_DEVIATION = (0.03, 0.1), (0.06, 0.2)


def usual_curve(theta: Array) -> list[float]:
    """Of a rotor's thrust over its speed."""
    return [
        (float(theta[place]) - usual) / deviation
        for place, usual, deviation in zip(SHAPE, USUAL_SHAPE, SHAPE_DEVIATION, strict=True)
    ]


def inertia_x_and_y(theta: Array) -> float:
    """Together."""
    return 1.0 / float(theta[P.GAIN_X]) + 1.0 / float(theta[P.GAIN_Y])


def usual_inertia_z(theta: Array) -> list[float]:
    ratio = float(theta[P.INERTIA_Z]) / inertia_x_and_y(theta)
    return [(ratio - USUAL_INERTIA_Z) / INERTIA_Z_DEVIATION]


def differences(assumed: Iterable[Assumption], theta: Array) -> Array:
    return np.array([value for assumption in assumed for value in assumption(theta)], dtype=float)


def derivatives(assumed: Iterable[Assumption], theta: Array, free: list[int]) -> Array:
    """Of the differences by the free parameters: [difference, parameter]."""
    assumed = tuple(assumed)
    here = differences(assumed, theta)
    columns = []
    for place in free:
        moved = stepped(theta, place)
        columns.append((differences(assumed, moved) - here) / (moved[place] - theta[place]))
    return np.stack(columns, axis=1)
