"""Measured rotor speeds beside the commands of the same log: lags, latency, greatest speed.

The commands have no error, and what is measured is the answer itself, so this needs no model of the
body: w' = (s - w) / lag as in rotors.py, where the set point s is an offset and a factor times the
command, or times its square root where it is a thrust. The factor falls with the battery.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from rltools_host.drones.fitting.estimate import LAGS_S, Estimate, covariance_of
from rltools_host.drones.fitting.log import FlightLog
from rltools_host.drones.fitting.model import BLOCKS, COUNT, SETTLING_S, SHORTEST_BLOCK_S, P
from rltools_host.drones.fitting.rotors import RotorParameters, motions

Array = NDArray[np.float64]
SEEN = (P.LAG_UP, P.LAG_DOWN, P.LATENCY)
BOUNDS = ([np.log(5e-4)] * 2 + [-0.06], [np.log(1.0)] * 2 + [0.06])
STEPS = (0.01, 0.01, 2e-4)


@dataclass(frozen=True)
class Response:
    """Lags and latency as an estimate; the speed at the greatest command, rad/s, with its standard
    error; what the commands leave of the measured speeds."""

    estimate: Estimate
    greatest_rad_s: float
    greatest_error: float
    left_rad_s: float


def fit_response(log: FlightLog) -> Response:
    """Fit the rotors' answer to the commands."""
    assert log.commands is not None
    assert log.rotor_speeds is not None
    start = int(np.searchsorted(log.time_s, log.time_s[0] + SETTLING_S))
    commands = np.clip(log.commands, 0.0, None)
    set_points = np.sqrt(commands) if log.commands_thrust else commands
    measured = log.rotor_speeds[start:]
    later = (log.time_s[start:] / log.duration_s - log.time_s[start:].mean() / log.duration_s)[
        :, None
    ]

    def followed(points: list[Array]) -> list[Array]:
        sets = [RotorParameters(np.exp(p[0]), np.exp(p[1]), p[2]) for p in points]
        return [each.speed[start:] for each in motions(log.time_s, set_points, False, sets)]

    def solved(w: Array) -> tuple[Array, Array]:
        """Return the best offset, factor and its fall, and what they leave: [row * 4]."""
        columns = np.stack([np.ones_like(w), w, w * later], axis=2).reshape(-1, 3)
        factors = np.linalg.lstsq(columns, measured.ravel())[0]
        return factors, measured.ravel() - columns @ factors

    def left(point: Array) -> Array:
        return solved(followed([point])[0])[1]

    def slopes(point: Array) -> Array:
        points = [point.copy() for _ in range(4)]
        for index, step in enumerate(STEPS):
            points[index + 1][index] += step
        here, *moved = (solved(w)[1] for w in followed(points))
        return np.stack([(m - here) / s for m, s in zip(moved, STEPS, strict=True)], axis=1)

    starts = [np.array([np.log(lag_s), np.log(lag_s), 0.0]) for lag_s in LAGS_S]
    first = min(starts, key=lambda point: float((left(point) ** 2).sum()))
    found = least_squares(left, first, slopes, BOUNDS, x_scale="jac", ftol=1e-7)
    w = followed([found.x])[0]
    factors, residuals = solved(w)
    deviation = float(residuals.std()) + 1e-9
    offset_and_factor = np.stack([-np.ones_like(w), -w, -w * later], axis=2).reshape(-1, 3)
    jacobian = np.hstack([found.jac, offset_and_factor]) / deviation
    block_s = max(log.duration_s / BLOCKS, SHORTEST_BLOCK_S)
    block = np.repeat(((log.time_s[start:] - log.time_s[start]) / block_s).astype(np.int64), 4)
    covariance, blocks = covariance_of(
        jacobian, residuals / deviation, block, np.zeros((0, jacobian.shape[1]))
    )
    theta, whole = np.zeros(COUNT), np.zeros((COUNT, COUNT))
    theta[list(SEEN)] = found.x
    whole[np.ix_(SEEN, SEEN)] = covariance[:3, :3]
    estimate = Estimate(theta, whole, SEEN, blocks, np.array([deviation]))
    at_greatest = np.array([1.0, 1.0])
    error = float(np.sqrt(at_greatest @ covariance[3:5, 3:5] @ at_greatest))
    return Response(estimate, float(factors[0] + factors[1]), error, deviation)
