"""Least squares: the parameters that leave the smallest residuals, and how sure they are.

Levenberg's and Marquardt's method. The covariance is the larger of two, parameter by parameter:
that of white noise, and that of errors which are alike within blocks of time (a sandwich of the
blocks' gradients, to first order what a bootstrap of blocks gives).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rltools_host.fitting.assumptions import Assumption, derivatives, differences
from rltools_host.fitting.model import COUNT, Model, P, Residuals

Array = NDArray[np.float64]

MOST_STEPS = 40
SMALLEST_GAIN = 1e-7  # of the sum of squares, relative
LOWEST = np.full(COUNT, -np.inf)
HIGHEST = np.full(COUNT, np.inf)
LOWEST[[P.LAG_UP, P.LAG_DOWN]] = np.log(5e-4)
HIGHEST[[P.LAG_UP, P.LAG_DOWN]] = np.log(1.0)
LOWEST[P.LATENCY], HIGHEST[P.LATENCY] = -0.02, 0.06
LOWEST[P.SHAPE_0], HIGHEST[P.SHAPE_0] = -0.3, 0.6
LOWEST[P.SHAPE_1], HIGHEST[P.SHAPE_1] = -0.6, 1.5


@dataclass(frozen=True)
class Estimate:
    """Parameters with standard errors; 0 for those that were held."""

    theta: Array
    errors: Array
    covariance: Array  # [COUNT, COUNT]
    free: tuple[int, ...]
    blocks: int
    noise: Array  # standard deviation of the residuals, by channel
    steps: int

    def quantile(self, outside: float = 0.05) -> float:
        """Half an interval in standard errors: Student's, for the blocks."""
        return student(self.blocks - 1, outside)

    def half_width(self, place: int) -> float:
        return self.quantile() * float(self.errors[place])


def student(freedom: int, outside: float) -> float:
    """What is exceeded, to either side, with a probability (Cornish and Fisher)."""
    n = max(freedom, 5)
    z = NormalDist().inv_cdf(1.0 - 0.5 * outside)
    return float(z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2))


def noise_of(residuals: Residuals) -> Array:
    """Standard deviation of each channel's residuals."""
    squares = np.bincount(residuals.channel, residuals.values**2)
    counts = np.bincount(residuals.channel)
    result: Array = np.sqrt(squares / (counts * residuals.freedom)) + 1e-9
    return result


def estimate(
    model: Model,
    start: Array,
    free: list[int],
    assumed: Sequence[Assumption] = (),
    lowest_latency_s: float | None = None,
) -> Estimate:
    """From a start, with the parameters that are free and what is assumed of them."""
    lowest = LOWEST.copy()
    if lowest_latency_s is not None:
        lowest[P.LATENCY] = lowest_latency_s
    lowest[[place for place in range(COUNT) if place not in free]] = -np.inf
    theta = start.copy()
    damping = 1e-3
    residuals, jacobian = model.jacobian(theta, free)
    steps = 0
    for _ in range(MOST_STEPS):
        steps += 1
        noise = noise_of(residuals)
        weight = 1.0 / noise[residuals.channel]
        r, j = residuals.values * weight, jacobian * weight[:, None]
        normal, gradient = j.T @ j, j.T @ r
        there, slope = differences(assumed, theta), derivatives(assumed, theta, free)
        normal, gradient = normal + slope.T @ slope, gradient + slope.T @ there
        cost = float(r @ r + there @ there)
        better = False
        while damping < 1e8:
            damped = normal + damping * np.diag(np.diag(normal) + 1e-12)
            step = np.linalg.solve(damped, gradient)
            if (2.0 * gradient - normal @ step) @ step < SMALLEST_GAIN * cost:
                break  # it would gain too little, were the residuals linear
            trial = theta.copy()
            trial[free] -= step
            trial = np.clip(trial, lowest, HIGHEST)
            values = model.residuals(trial, model.motions([trial])[0]).values * weight
            there = differences(assumed, trial)
            trial_cost = float(values @ values + there @ there)
            if trial_cost < cost:
                better = True
                damping = max(damping / 10.0, 1e-9)
                break
            damping *= 6.0
        if not better:
            break
        theta = trial
        residuals, jacobian = model.jacobian(theta, free)
        if cost - trial_cost < SMALLEST_GAIN * cost:
            break
    noise = noise_of(residuals)
    weight = 1.0 / noise[residuals.channel]
    r, j = residuals.values * weight, jacobian * weight[:, None]
    covariance, blocks = covariance_of(j, r, residuals.block, derivatives(assumed, theta, free))
    whole = np.zeros((COUNT, COUNT))
    whole[np.ix_(free, free)] = covariance
    errors = np.sqrt(np.maximum(np.diag(whole), 0.0))
    return Estimate(theta, errors, whole, tuple(free), blocks, noise, steps)


def covariance_of(
    j: Array, r: Array, block: NDArray[np.int64], assumed: Array
) -> tuple[Array, int]:
    """The sandwich, made at least as wide as white noise's in each parameter. `assumed`: the
    derivatives of what is assumed, in its standard deviations."""
    prior = assumed.T @ assumed
    normal = j.T @ j + prior
    scales = np.sqrt(np.diag(normal)) + 1e-300
    inverse = np.linalg.pinv(normal / np.outer(scales, scales), rcond=1e-12)
    white = inverse / np.outer(scales, scales)
    count = int(block.max()) + 1
    gradients = np.zeros((count, j.shape[1]))
    np.add.at(gradients, block, j * r[:, None])
    spread = gradients.T @ gradients * (count / max(count - 1, 1)) + prior
    sandwich = white @ spread @ white
    widening = np.sqrt(np.maximum(1.0, np.diag(white) / np.maximum(np.diag(sandwich), 1e-300)))
    return sandwich * np.outer(widening, widening), count
