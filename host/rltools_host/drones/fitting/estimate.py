"""Least squares: their start, the parameters with the smallest residuals, and their errors.

What a log does not show is taken from published drones with its standard deviation, and enters as a
measurement does: so the intervals of what the log shows contain that error too. The covariance is
the larger of two, parameter by parameter: that of white noise, and that of errors which are equal
within blocks of time (a sandwich of the blocks' gradients, to first order a bootstrap of blocks).

The duration of gusts and the effect of the rotors can hardly be distinguished where a controller
answers to the gusts: a search that alternates between parameters and gusts ends far from the most
likely ones. So the parameters are found for some durations; the most likely duration is that of the
parabola through them, and its error is in the intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.special import stdtrit  # the quantiles of stats.t, whose import takes a second

from rltools_host.drones.fitting.formats import GRAVITY_M_S2, ROTORS
from rltools_host.drones.fitting.model import (
    COUNT,
    DURATIONS_S,
    X_SIGNS,
    Y_SIGNS,
    YAW_SIGNS,
    Model,
    P,
    Residuals,
    most_likely,
    stepped,
    summed,
)
from rltools_host.drones.fitting.rotors import RotorMotion

Array = NDArray[np.float64]
Assumption = Callable[[Array], list[float]]  # differences in standard deviations

SMALLEST_GAIN = 1e-7  # of the sum of squares, relative
# Each channel is weighted by its residuals' noise, again after some steps, until that changes less.
MAX_STEPS, MAX_WEIGHTINGS, SAME_NOISE = 3, 20, 1e-3
LOWEST = np.full(COUNT, -np.inf)
HIGHEST = np.full(COUNT, np.inf)
LOWEST[[P.LAG_UP, P.LAG_DOWN]] = np.log(5e-4)
HIGHEST[[P.LAG_UP, P.LAG_DOWN]] = np.log(1.0)
LOWEST[P.LATENCY], HIGHEST[P.LATENCY] = -0.02, 0.06
LOWEST[P.FORCE_LAG], HIGHEST[P.FORCE_LAG] = np.log(5e-4), np.log(0.2)
LOWEST[P.FORCE_DELAY], HIGHEST[P.FORCE_DELAY] = -0.1, 0.1
LOWEST[P.SHAPE_0], HIGHEST[P.SHAPE_0] = -0.3, 0.6
LOWEST[P.SHAPE_1], HIGHEST[P.SHAPE_1] = -0.6, 1.5

# Of x and y together: the published tables have 0.78 to 0.95.
USUAL_INERTIA_Z, INERTIA_Z_DEVIATION = 0.87, 0.08
SHAPE = (P.SHAPE_0, P.SHAPE_1)
# Parts of the greatest thrust at rest, 0 to 0.10 in published curves, and proportional to speed,
# 0 to 0.34; the rest is its square.
USUAL_SHAPE, SHAPE_DEVIATION = (0.03, 0.1), (0.06, 0.2)

MAX_REVERSE = 1.0  # of what least squares find, that may be missing: more is not shown
PAIRS, ADDED = 3, 0.004  # of added errors of speeds, parts of the greatest
FIRST_S, FACTOR = 0.3, 2.0  # the durations that are tried
# Sizes are those of the parameters that were found before: until these move less than this, in
# their standard errors.
UNMOVED, MAX_TIMES = 0.1, 3


# -- what is assumed ------------------------------------------------------------------------------


def usual_curve(theta: Array) -> list[float]:
    """Return the differences from the usual curve of a rotor's thrust over its speed."""
    return [
        (float(theta[index]) - usual) / deviation
        for index, usual, deviation in zip(SHAPE, USUAL_SHAPE, SHAPE_DEVIATION, strict=True)
    ]


def inertia_x_and_y(theta: Array) -> float:
    """Return the sum of both inertias."""
    return 1.0 / float(theta[P.GAIN_X]) + 1.0 / float(theta[P.GAIN_Y])


def usual_inertia_z(theta: Array) -> list[float]:
    ratio = float(theta[P.INERTIA_Z]) / inertia_x_and_y(theta)
    return [(ratio - USUAL_INERTIA_Z) / INERTIA_Z_DEVIATION]


def differences(assumed: Iterable[Assumption], theta: Array) -> Array:
    return np.array([value for assumption in assumed for value in assumption(theta)], dtype=float)


def derivatives(assumed: Iterable[Assumption], theta: Array, free: list[int]) -> Array:
    """Return the derivatives of the differences by the free parameters: [difference, parameter]."""
    assumed = tuple(assumed)
    here = differences(assumed, theta)
    columns = []
    for index in free:
        moved = stepped(theta, index)
        columns.append((differences(assumed, moved) - here) / (moved[index] - theta[index]))
    return np.stack(columns, axis=1)


# -- least squares --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """Parameters with their covariance; 0 for those that were held."""

    theta: Array
    covariance: Array  # [COUNT, COUNT]
    free: tuple[int, ...]
    blocks: int
    noise: Array  # standard deviation of the residuals, by channel

    @cached_property
    def errors(self) -> Array:
        """Return the standard errors."""
        result: Array = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return result

    def quantile(self, outside: float = 0.05) -> float:
        """Return half an interval in standard errors: Student's, for the number of blocks."""
        return float(stdtrit(max(self.blocks - 1, 5), 1.0 - 0.5 * outside))

    def half_width(self, index: int) -> float:
        return self.quantile() * float(self.errors[index])


def noise_of(residuals: Residuals) -> Array:
    """Return the standard deviation of each channel's residuals."""
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
    """Estimate the free parameters from a start, with what is assumed of them."""
    lowest = LOWEST.copy()
    if model.log.rotor_speeds is not None:  # stamped with no relation to commands
        lowest[P.LATENCY] = -HIGHEST[P.LATENCY]
    if lowest_latency_s is not None:
        lowest[P.LATENCY] = lowest_latency_s
    bounds = lowest[free], HIGHEST[free]
    theta = start.copy()
    theta[free] = np.clip(theta[free], *bounds)
    residuals = model.residuals(theta)
    noise = noise_of(residuals)

    def at(values: Array) -> Array:
        point: Array = theta.copy()
        point[free] = values
        return point

    for _ in range(MAX_WEIGHTINGS):
        weight = 1.0 / noise[residuals.channel]

        def weighted(values: Array, weight: Array = weight) -> Array:
            point = at(values)
            return np.concatenate(
                [model.residuals(point).values * weight, differences(assumed, point)]
            )

        def slopes(values: Array, weight: Array = weight) -> Array:
            point = at(values)
            of_log = model.jacobian(point, free) * weight[:, None]
            return np.concatenate([of_log, derivatives(assumed, point, free)])

        found = least_squares(
            weighted,
            theta[free],
            slopes,
            bounds,
            x_scale="jac",
            ftol=SMALLEST_GAIN,
            max_nfev=MAX_STEPS,
        )
        theta = at(found.x)
        count = len(weight)
        residuals = replace(residuals, values=found.fun[:count] / weight)
        jacobian = found.jac[:count] / weight[:, None]
        before, noise = noise, noise_of(residuals)
        if np.all(np.abs(noise / before - 1.0) < SAME_NOISE):
            break
    weight = 1.0 / noise[residuals.channel]
    r, j = residuals.values * weight, jacobian * weight[:, None]
    covariance, blocks = covariance_of(j, r, residuals.block, derivatives(assumed, theta, free))
    whole = np.zeros((COUNT, COUNT))
    whole[np.ix_(free, free)] = covariance
    return Estimate(theta, whole, tuple(free), blocks, noise)


def covariance_of(
    j: Array, r: Array, block: NDArray[np.int64], assumed: Array
) -> tuple[Array, int]:
    """Return the sandwich covariance, at least as wide as that of white noise in each parameter,
    and the number of blocks. `assumed` has the derivatives of the assumptions, in their standard
    deviations."""
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


# -- errors of measured speeds --------------------------------------------------------------------

# The parameters that errors of the speeds make too small, and the channels that show them.
TOO_SMALL = {P.GAIN_X: 3, P.GAIN_Y: 4, P.GAIN_Z: 5, P.MOMENTUM: 5}
# Not of an axis alone.
SHARED = (P.THRUST, P.LATENCY, P.FORCE_LAG, P.FORCE_DELAY)


def between_regressions(model: Model, found: Estimate) -> Estimate:
    """Return the estimate in the middle between two regressions, for measured speeds.

    What a residual has beyond its sensor's noise is of gusts, which least squares allow for, or of
    errors of the measured speeds and their times, which make the gains and a rotor's momentum too
    small. How much, for white errors that explain all of it, is known by adding more of them: the
    residual and the gradient grow with their variance (corrected scores, Stefanski 1989). The truth
    is between none and all of it: the error has that distance as a uniform distribution.
    """
    free = list(found.free)
    residuals, jacobian = model.residuals(found.theta), model.jacobian(found.theta, free)
    rng = np.random.default_rng(0)
    tried = []
    for _ in range(PAIRS):
        errors = ADDED * rng.standard_normal(model.log.attitude.shape)
        for sign in (1.0, -1.0):
            noisy = model.with_errors(sign * errors)
            left = noisy.residuals(found.theta).values
            tried.append((left, noisy.jacobian(found.theta, free)))
    theta, covariance = found.theta.copy(), found.covariance.copy()
    for index, channel in TOO_SMALL.items():
        if index not in free:
            continue
        rows = residuals.channel == channel
        columns = [column for column, each in enumerate(free) if each not in SHARED]
        left, j = residuals.values[rows], jacobian[np.ix_(rows, columns)]
        others = [(r[rows], d[np.ix_(rows, columns)]) for r, d in tried]
        explained = np.mean([(r**2).sum() for r, _ in others]) - (left**2).sum()
        pull = j.T @ left - np.mean([d.T @ r for r, d in others], axis=0)
        rates = model.log.angular_velocity[:, channel - 3]
        white = model.whitened_noise(channel, white_noise(rates))
        excess = max(float((left**2).sum()) - rows.sum() * white**2, 0.0)
        step = np.linalg.lstsq(j.T @ j, pull, rcond=1e-10)[0] * excess / max(explained, 1e-300)
        # The Jacobian is of residuals: it has the other sign than that of what is predicted.
        whole = -float(step[columns.index(free.index(index))]) / theta[index]
        reverse = float(np.clip(whole, 0.0, MAX_REVERSE))
        factor, spread = 1.0 + 0.5 * reverse, reverse / np.sqrt(12.0)
        covariance[index, :] *= factor
        covariance[:, index] *= factor
        covariance[index, index] += (spread * theta[index]) ** 2
        theta[index] *= factor
    return replace(found, theta=theta, covariance=covariance)


def white_noise(values: Array) -> float:
    """Return the standard deviation of white noise that a sensor's values can have at most: a
    signal is in their differences too, the least in those of a high order if it is smooth."""
    return min(
        float(np.diff(values, n=order).std()) / float(np.sqrt(comb(2 * order, order)))
        for order in range(2, 7)
    )


# -- in gusts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InGusts:
    """An estimate with gusts of one duration."""

    model: Model
    estimate: Estimate
    unlikely: float  # the logarithm of the likelihood, negative


def estimate_in_gusts(
    model: Model, start: Array, estimated: Callable[[Model, Array], Estimate]
) -> tuple[InGusts, Array]:
    """Estimate with the most likely duration; return that, and how the parameters move with the
    standard error of the duration."""
    tried: dict[int, InGusts] = {}

    def at(index: int, near: Array) -> InGusts:
        if index not in tried:
            tried[index] = with_duration(model, FIRST_S * FACTOR**index, near, estimated)
        return tried[index]

    shortest, longest = (int(np.log(s / FIRST_S) / np.log(FACTOR)) for s in DURATIONS_S)
    best = 0
    near = at(best, start).estimate.theta
    while True:
        beside = [index for index in (best - 1, best + 1) if shortest <= index <= longest]
        better = min(beside, key=lambda index: at(index, near).unlikely)
        if tried[better].unlikely >= tried[best].unlikely:
            break
        best, near = better, tried[better].estimate.theta
    if len(beside) < 2:  # as short or long as can be distinguished
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
    for _ in range(MAX_TIMES):
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
    """Return the estimate with an additional error that moves the free parameters together."""
    moved = np.where(np.isin(np.arange(len(moved)), found.free), moved, 0.0)
    return replace(found, covariance=found.covariance + np.outer(moved, moved))


# -- where a fit begins: which rotor does what -----------------------------------------------------

LATENCIES_S = (-0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03)
FIRST_FORCE_LAG_S = 0.01
LAGS_S = (0.002, 0.01, 0.03, 0.06, 0.1, 0.16, 0.25)  # that are tried for a beginning
CLEAR = 8.0  # standard errors, by which a sign is known
AXES = ("roll", "pitch", "yaw")
PATTERNS = np.stack([Y_SIGNS, -X_SIGNS, YAW_SIGNS])


def begin(model: Model) -> Array:
    """Return a start for the fit; raise DamagedFileError where rotors or axes are not where they
    should be."""
    started, each, errors = answers_of_rotors(model)
    check_rotors(model, each, errors)
    together, clear = answers_of_axes(model, started)
    log = model.log
    for axis, name in enumerate(AXES):
        if clear[axis] < -CLEAR:
            what = (
                "its rotors turn the other way: the front right one turns counter-clockwise seen "
                "from above, or yaw is about an axis that points down"
                if name == "yaw"
                else "the signs of the angular velocity or the order of the rotors are others"
            )
            raise log.fault(f"{name} answers to the commands with the opposite sign: {what}")
    for axis, name in enumerate(AXES[:2]):
        if clear[axis] < CLEAR:
            raise log.fault(
                f"it has no {name} motion that its commands explain: fly quick turns about that "
                "axis too, or look whether commands and gyroscope are of the same time"
            )
    theta = started.copy()
    theta[P.FORCE_LAG] = np.log(FIRST_FORCE_LAG_S)
    motion = model.motions([theta])[0]
    lift = GRAVITY_M_S2 if log.acceleration is None else float(log.acceleration[:, 2].mean())
    theta[P.THRUST] = lift / float(motion.thrust.sum(axis=1).mean())
    arms = np.array([model.rotor_y_m, model.rotor_x_m, 1.0])
    gains = np.maximum(together, 1e-6) / (theta[P.THRUST] * arms)
    theta[[P.GAIN_X, P.GAIN_Y, P.GAIN_Z]] = gains
    theta[P.INERTIA_Z] = USUAL_INERTIA_Z * inertia_x_and_y(theta)
    return theta


def regression(model: Model, inputs: Array) -> tuple[Array, Array, float]:
    """Fit angular accelerations to inputs [row, n], which are integrals; return coefficients
    [axis, n], their standard errors, and the residual relative to the whole."""
    windows = model.windows
    columns = [windows.differences(column) for column in inputs.T]
    columns.append(windows.differences(model.log.time_s - model.log.time_s[0]))
    design = np.stack(columns, axis=1)
    scale = np.sqrt((design**2).sum(axis=0)) + 1e-12
    inverse = np.linalg.pinv((design / scale).T @ (design / scale), rcond=1e-9)
    values, errors, left = [], [], 0.0
    for column in model.log.angular_velocity.T:
        measured = windows.differences(column)
        solution = inverse @ ((design / scale).T @ measured)
        rest = measured - (design / scale) @ solution
        deviation = float(np.sqrt((rest**2).mean()))
        left += np.log(deviation / (float(np.sqrt((measured**2).mean())) + 1e-12) + 1e-12)
        values.append(solution / scale)
        errors.append(deviation * np.sqrt(np.maximum(np.diag(inverse), 1e-12)) / scale)
    return np.array(values)[:, :-1], np.array(errors)[:, :-1], left


def starts(model: Model) -> list[Array]:
    """Return the parameters that are tried for a beginning: lags of rotors, or delays of their
    measured speeds."""
    sets = []
    measured = model.log.rotor_speeds is not None
    for each in LATENCIES_S if measured else LAGS_S:
        theta = np.zeros(COUNT)
        if measured:
            theta[P.LATENCY] = each
        else:
            theta[[P.LAG_UP, P.LAG_DOWN]] = np.log(each)
        sets.append(theta)
    return sets


def answers_of_rotors(model: Model) -> tuple[Array, Array, Array]:
    """Return the start that explains the most, and each rotor's part in each axis, with standard
    errors."""
    sets = starts(model)
    tried = [
        (theta, *regression(model, np.hstack([summed(motion.impulse), *beside(model, motion)])))
        for theta, motion in zip(sets, model.motions(sets), strict=True)
    ]
    theta, values, errors, _ = min(tried, key=lambda entry: entry[3])
    return theta, values[:, :4], errors[:, :4]


def answers_of_axes(model: Model, theta: Array) -> tuple[Array, Array]:
    """Return the common effect of the rotors of an axis, and its distance from 0 in standard
    errors."""
    motion = model.motions([theta])[0]
    inputs = [summed(motion.impulse) @ PATTERNS.T, *beside(model, motion)]
    values, errors, _ = regression(model, np.hstack(inputs))
    each, error = np.diag(values), np.diag(errors)
    return each, each / np.maximum(error, 1e-12)


def beside(model: Model, motion: RotorMotion) -> list[Array]:
    """Return what else turns a body whose rotors' speeds were measured: [row, n]."""
    if model.log.rotor_speeds is None:
        return []
    drift = [] if model.drift is None else [model.drift[:, :2]]
    return [motion.speed @ YAW_SIGNS[:, None], *drift]


def check_rotors(model: Model, values: Array, errors: Array) -> None:
    """Raise DamagedFileError where the answers of roll and pitch show a rotor in another
    position."""
    if np.any(np.abs(values[:2]) <= CLEAR * errors[:2]):
        return  # not seen
    signs = np.sign(values[:2])
    seen = [
        next(index for index in range(4) if np.array_equal(PATTERNS[:2, index], signs[:, rotor]))
        for rotor in range(4)
    ]
    if seen == [0, 1, 2, 3]:
        return
    if sorted(seen) != [0, 1, 2, 3]:
        raise model.log.fault(
            "its rotors do not turn the body as four rotors of an x do: look at the order of the "
            "commands and at the signs of the angular velocity"
        )
    kind = "thrust" if model.log.commands_thrust else "speed"
    if model.log.rotor_speeds is not None:
        kind = "rad_s"
    moved = [
        f"{kind}_{ROTORS[rotor]} is of the {ROTORS[index].replace('_', ' ')} one"
        for rotor, index in enumerate(seen)
        if rotor != index
    ]
    raise model.log.fault(
        f"its rotors are in another order, as roll and pitch show: {', '.join(moved)}"
    )
