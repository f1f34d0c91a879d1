"""The sensors of a log as parameters predict them: the differences are the residuals.

The equations are those of docs/fit.md. Nothing that is measured is differentiated. An accelerometer
is compared row by row; angular velocity (and velocity, where there is no accelerometer) within
short windows, in which each has a start of its own: the predicted change is integrated, and a
window's mean difference is subtracted. Where there are gusts, all is compared row by row, after a
filter that subtracts what earlier rows predict: otherwise a controller that answers to gusts would
look like rotors that answer to commands less than they do.

A gust is modeled as an acceleration of the first order: it is forgotten within its duration. An
accelerometer shows it beside its white noise; a gyroscope (and a velocity) shows its integral. A
Kalman filter of that predicts each row from those before it; the rest is white where the noise is
as assumed, so that least squares are as certain as they state, and what a controller did by then
cannot be correlated with it. Sizes and durations are the most likely ones of the differences at
hand.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.optimize import minimize
from scipy.signal import lfilter, lfiltic
from scipy.spatial.transform import Rotation

from rltools_host.drones.fitting.formats import GRAVITY_M_S2, nearest_signs
from rltools_host.drones.fitting.log import FlightLog
from rltools_host.drones.fitting.rotors import (
    RotorMotion,
    RotorParameters,
    delayed,
    measured_motion,
    motions,
)
from rltools_host.drones.fitting.velocity import steadied

Array = NDArray[np.float64]

# Where the search begins, how far it goes: size over the sensor's noise (per second, for what is
# integrated), duration in seconds.
FIRST, FIRST_INTEGRATED = (0.5, 0.3), (10.0, 0.3)
SIZES, DURATIONS_S = (1e-3, 1e4), (0.02, 10.0)
PULSE_ROWS = 5000  # after which a filter's answer to one is over
FIRST_STEP, LAST_STEP = 1.4, 0.05  # of the logarithms


@dataclass(frozen=True)
class Gusts:
    """The gusts in one channel."""

    size: float  # standard deviation over that of the sensor's noise, in a row
    duration_s: float
    integrated: bool  # the channel shows the integral of the gusts' acceleration

    def filter(self, step_s: float) -> tuple[Array, ...]:
        """Return the innovation of a Kalman filter as a filter of the rows: numerator and
        denominator in powers of a delay of one row.

        The channel becomes white where it is multiplied by the numerator's roots, 1 for the
        integral and the fraction that is kept of a gust, and divided by those of its spectrum that
        lie within the unit circle. With w = z + 1/z - 2 a root p of the numerator is (1 - p)^2 - p
        w.
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
    """A filter of [channel, row] differences, which leaves what the rows before do not predict of
    each row."""

    def __init__(self, gusts: list[Gusts], step_s: float, rows: int) -> None:
        self.gusts = gusts
        self._filters = [each.filter(step_s) for each in gusts]
        integrated = np.array([each.integrated for each in gusts])
        starts = self._filtered(np.ones((len(gusts), rows)) * integrated[:, None])
        lengths = np.linalg.norm(starts, axis=1, keepdims=True)
        self._starts = starts / np.where(integrated[:, None], lengths, 1.0)

    def amplification(self, channel: int) -> float:
        """Return the factor by which white noise gets larger or smaller."""
        b, a = self._filters[channel]
        pulse = np.zeros(PULSE_ROWS)
        pulse[0] = 1.0
        return float(np.linalg.norm(lfilter(b, a, pulse)))

    def _filtered(self, values: Array) -> Array:
        return np.stack(
            [lfilter(*each, row) for each, row in zip(self._filters, values, strict=True)]
        )

    def __call__(self, values: Array) -> Array:
        """Filter the values; the start of what is integrated is free."""
        filtered = self._filtered(values)
        result: Array = filtered - (filtered * self._starts).sum(axis=1, keepdims=True) * (
            self._starts
        )
        return result


def most_likely(
    differences: Array, integrated: list[bool], step_s: float, duration_s: float
) -> Filter:
    """Return the filter of the gusts of which [channel, row] differences are the most likely ones;
    those of integrated channels have the given duration."""
    gusts = [
        most_likely_gusts(values, each, step_s, duration_s if each else None)
        for values, each in zip(differences, integrated, strict=True)
    ]
    return Filter(gusts, step_s, differences.shape[1])


def most_likely_gusts(
    values: Array, integrated: bool, step_s: float, duration_s: float | None = None
) -> Gusts:
    """Search over the logarithms of size and, where it is not given, duration."""
    first = np.log(FIRST_INTEGRATED if integrated else FIRST)
    searched = 2 if duration_s is None else 1

    def of(point: Array) -> Gusts:
        size, duration = np.exp(point[0]), duration_s or np.exp(point[1])
        return Gusts(float(size), float(duration), integrated)

    def unlikely(point: Array) -> float:
        left = Filter([of(point)], step_s, len(values))(values[None])
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


# Front right, rear right, rear left, front left. A rotor that turns counter-clockwise seen from
# above, as the first one, turns the body clockwise (policy/contracts/quadrotor.h).
X_SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
Y_SIGNS = np.array([-1.0, -1.0, 1.0, 1.0])
YAW_SIGNS = np.array([-1.0, 1.0, -1.0, 1.0])

SETTLING_S = 0.6  # what the rotors did before the log began is forgotten
RATE_WINDOW_S = 0.2
VELOCITY_WINDOW_S = 0.4
BLOCKS = 40  # of time, whose errors are taken as independent
SHORTEST_BLOCK_S = 0.4


class P(IntEnum):
    """The indices in the vector of parameters. Those of a mass are divided by it."""

    LAG_UP = 0  # natural logarithm of seconds
    LAG_DOWN = 1
    LATENCY = 2  # s
    SHAPE_0 = 3
    SHAPE_1 = 4
    THRUST = 5  # the greatest of a rotor, m/s^2
    GAIN_X = 6  # 1 / inertia, 1/m^2
    GAIN_Y = 7
    GAIN_Z = 8  # torque per thrust / inertia, 1/m
    INERTIA_Z = 9  # m^2
    SPIN_DRAG = 10  # m^2/s
    DRAG_X = 11  # 1/s
    DRAG_Y = 12
    DRAG_Z = 13
    OFFSET_X = 14  # of the accelerometer, m/s^2
    OFFSET_Y = 15
    TWIST_X = 16  # what the rotors' differences leave over, rad/s^2
    TWIST_Y = 17
    TWIST_Z = 18
    # Of the body's sideways velocity, which turns it back (the rotors' flapping), m/s.
    FLAPPING = 19
    # Momentum of a rotor at its greatest speed, by inertia_z: what a rotor takes as it gets faster.
    MOMENTUM = 20
    FORCE_LAG = 21  # of the accelerometer's filter, natural logarithm of seconds
    FORCE_DELAY = 22  # of the accelerometer against the gyroscope, s


ROTOR_INDICES = (P.LAG_UP, P.LAG_DOWN, P.LATENCY, P.SHAPE_0, P.SHAPE_1)
COUNT = len(P)
# For finite differences; each is small against what matters and large against rounding.
STEPS = np.full(COUNT, 1e-4)
STEPS[[P.LAG_UP, P.LAG_DOWN]] = 0.01
STEPS[[P.LATENCY, P.FORCE_DELAY]] = 2e-4
STEPS[P.FORCE_LAG] = 0.01
STEPS[[P.SHAPE_0, P.SHAPE_1]] = 1e-3


def rotor_parameters(theta: Array) -> RotorParameters:
    return RotorParameters(
        float(np.exp(theta[P.LAG_UP])),
        float(np.exp(theta[P.LAG_DOWN])),
        float(theta[P.LATENCY]),
        float(theta[P.SHAPE_0]),
        float(theta[P.SHAPE_1]),
    )


@dataclass(frozen=True)
class Residuals:
    """All differences in one vector, with their channels and times."""

    values: Array
    channel: NDArray[np.int64]
    block: NDArray[np.int64]
    freedom: Array  # by channel: the part of its differences that windows leave free


class Windows:
    """Rows in windows of equal length, after the rotors have settled."""

    def __init__(self, log: FlightLog, duration_s: float, block_s: float) -> None:
        start = int(np.searchsorted(log.time_s, log.time_s[0] + SETTLING_S))
        self.length = max(round(duration_s / log.step_s), 4)
        count = (len(log.time_s) - start) // self.length
        self.freedom = 1.0 - 1.0 / self.length
        self.rows = slice(start, start + count * self.length)
        times = log.time_s[self.rows].reshape(count, self.length)[:, 0] - log.time_s[start]
        self.block = np.repeat((times / block_s).astype(np.int64), self.length)

    def differences(self, values: Array) -> Array:
        """Return [row] values, less each window's mean."""
        parts = values[self.rows].reshape(-1, self.length)
        left: Array = parts - parts.mean(axis=1, keepdims=True)
        return left.ravel()


class Model:
    """A prepared log; `residuals` compares it with what parameters predict."""

    def __init__(
        self, log: FlightLog, rotor_x_m: float, rotor_y_m: float, gusts: Filter | None = None
    ) -> None:
        self.log, self.gusts = log, gusts
        self.errors: Array | None = None  # that are added to measured speeds
        self.rotor_x_m, self.rotor_y_m = rotor_x_m, rotor_y_m
        self._x, self._y = rotor_x_m * X_SIGNS, rotor_y_m * Y_SIGNS
        block_s = max(log.duration_s / BLOCKS, SHORTEST_BLOCK_S)
        self.windows = Windows(log, RATE_WINDOW_S, block_s)
        long = Windows(log, VELOCITY_WINDOW_S, block_s)
        start = self.windows.rows.start
        self._rows = slice(start, None)
        # By channel: what is integrated is so from an unknown start.
        self.integrated = [log.acceleration is None] * 3 + [True] * 3
        self._windows_of: list[Windows | None] = [None] * 6
        if gusts is None:
            self._windows_of[:3] = [long if log.acceleration is None else None] * 3
            self._windows_of[3:] = [self.windows] * 3
        row_block = ((log.time_s[self._rows] - log.time_s[start]) / block_s).astype(np.int64)
        blocks = [row_block if each is None else each.block for each in self._windows_of]
        self._block = np.concatenate(blocks)
        self._channel = np.repeat(np.arange(6), [len(block) for block in blocks])
        self._freedom = np.array([1.0 if w is None else w.freedom for w in self._windows_of])
        rates = log.angular_velocity
        self._rates = self._integral(rates)
        self._products = self._integral(rates[:, [1, 2, 0]] * rates[:, [2, 0, 1]])
        self._time = log.time_s - log.time_s[0]
        self._air = None if log.velocity is None else back(log.attitude, steady_velocity(log))
        self.drift = (
            None
            if self._air is None
            else self._integral(self._air[:, [1, 0, 2]] * np.array([1.0, -1.0, 0.0]))
        )
        if log.acceleration is None:
            assert log.velocity is not None
            assert self._air is not None
            attitude = nearest_signs(log.attitude)
            self._up = turn(attitude[1:] + attitude[:-1], np.array([0.0, 0.0, 1.0]))
            self._fallen = np.outer(self._time, [0.0, 0.0, -GRAVITY_M_S2])
            axes = np.eye(3)[:, None, :] * self._air[None, :, :]
            self._resisted = [self._integral(turn(log.attitude, part)) for part in axes]

    def _integral(self, values: Array) -> Array:
        """Integrate [row, n] values from the first row to each."""
        return integral(values, self.log.time_s)

    def motions(self, sets: list[Array]) -> list[RotorMotion]:
        """Return the motion of the rotors for each vector of parameters."""
        log = self.log
        parameters = [rotor_parameters(theta) for theta in sets]
        if log.rotor_speeds is not None:
            speeds = log.speed_fractions()
            if self.errors is not None:
                speeds = speeds + self.errors
            return [measured_motion(log.time_s, speeds, each) for each in parameters]
        assert log.commands is not None
        return motions(log.time_s, log.commands, log.commands_thrust, parameters)

    def with_errors(self, errors: Array) -> Model:
        """Return the model with errors added to the measured speeds, as fractions: [row, 4]."""
        other = copy(self)
        other.errors = errors
        return other

    def turning(self, motion: RotorMotion) -> Array:
        """Return the integrals of the rotors' torques, as fractions of the maximum thrust: [row,
        3]."""
        return summed(motion.impulse @ np.stack([self._y, -self._x, YAW_SIGNS], axis=1))

    def rates(self, theta: Array, motion: RotorMotion) -> Array:
        """Return the angular velocity without its start, which each window has for itself: [row,
        3]."""
        jx, jy = 1.0 / theta[P.GAIN_X], 1.0 / theta[P.GAIN_Y]
        jz = theta[P.INERTIA_Z]
        coupling = np.array([jy - jz, jz - jx, jx - jy]) * self._products
        other = coupling - theta[P.SPIN_DRAG] * self._rates
        driven = theta[P.THRUST] * self.turning(motion)
        twists = theta[[P.TWIST_X, P.TWIST_Y, P.TWIST_Z]] * self._time[:, None]
        if self.drift is not None and theta[P.FLAPPING]:
            other = other + theta[P.FLAPPING] * self.drift
        gains = theta[[P.GAIN_X, P.GAIN_Y, P.GAIN_Z]]
        momentum = theta[P.MOMENTUM] * (motion.speed @ YAW_SIGNS)
        if theta[P.MOMENTUM]:  # which the body's turns also tilt
            tilted = self.log.angular_velocity[:, [1, 0]] * (jz * momentum)[:, None]
            other[:, :2] += self._integral(tilted * np.array([1.0, -1.0]))
        result: Array = gains * driven + np.array([1.0 / jx, 1.0 / jy, 1.0 / jz]) * other + twists
        result[:, 2] += momentum
        return result

    def driven(self, theta: Array) -> Array:
        """Return, by axis, the standard deviation in windows of the angular velocity that the
        rotors cause."""
        turned = self.turning(self.motions([theta])[0]) * theta[P.THRUST]
        gains = theta[[P.GAIN_X, P.GAIN_Y, P.GAIN_Z]]
        columns = (turned * gains).T
        return np.array([self.windows.differences(column).std() for column in columns])

    def differences(self, theta: Array, motion: RotorMotion) -> Array:
        """Return the sensors' values less the predicted ones: [channel, row]. Those of integrated
        channels have any start."""
        log = self.log
        drag = theta[[P.DRAG_X, P.DRAG_Y, P.DRAG_Z]]
        if log.acceleration is not None:
            force = np.zeros_like(log.acceleration)
            force[:, 2] = theta[P.THRUST] * motion.thrust.sum(axis=1)
            force[:, :2] += theta[[P.OFFSET_X, P.OFFSET_Y]]
            if self._air is not None:
                force = force - drag * self._air
            other = log.acceleration - self._filtered(force, theta)
        else:
            lifted = theta[P.THRUST] * motion.impulse.sum(axis=1, keepdims=True) * self._up
            speed = summed(lifted) + self._fallen
            for value, resisted in zip(drag, self._resisted, strict=True):
                speed -= value * resisted
            assert log.velocity is not None
            if log.rotor_speeds is not None and theta[P.FORCE_DELAY]:
                speed = delayed(speed, log.time_s, theta[P.FORCE_DELAY])
            other = log.velocity - speed
        turning = log.angular_velocity - self.rates(theta, motion)
        result: Array = np.concatenate([other, turning], axis=1).T
        return result

    def _filtered(self, force: Array, theta: Array) -> Array:
        """Return what an accelerometer with a filter of the first order and a delay shows."""
        if self.log.rotor_speeds is None:
            return force
        kept = float(np.exp(-self.log.step_s / np.exp(theta[P.FORCE_LAG])))
        # Of lines from row to row: the filter of a ramp, exact at a constant one.
        lines = 0.5 * (force[1:] + force[:-1])
        b, a = np.array([1.0 - kept]), np.array([1.0, -kept])
        later = [
            lfilter(b, a, column, zi=lfiltic(b, a, [first]))[0]
            for column, first in zip(lines.T, force[0], strict=True)
        ]
        slow = np.concatenate([force[:1], np.stack(later, axis=1)])
        time_s = self.log.time_s
        return delayed(slow, time_s, theta[P.FORCE_DELAY])

    def settled(self, theta: Array) -> Array:
        """Return the differences after the rotors have settled."""
        return self.differences(theta, self.motions([theta])[0])[:, self._rows]

    def _left(self, differences: Array) -> Array:
        """Return the residuals, which are linear in the differences."""
        if self.gusts is not None:
            return self.gusts(differences[:, self._rows]).ravel()
        parts = [
            values[self._rows] if windows is None else windows.differences(values)
            for windows, values in zip(self._windows_of, differences, strict=True)
        ]
        return np.concatenate(parts)

    def whitened_noise(self, channel: int, noise: float) -> float:
        """Return the standard deviation that a sensor's white noise has in the residuals."""
        if self.gusts is None:
            return noise * float(np.sqrt(self._freedom[channel]))
        return noise * self.gusts.amplification(channel)

    def residuals(self, theta: Array) -> Residuals:
        left = self._left(self.differences(theta, self.motions([theta])[0]))
        return Residuals(left, self._channel, self._block, self._freedom)

    def jacobian(self, theta: Array, free: list[int]) -> Array:
        """Return the residuals' derivatives by the free parameters, from finite differences:
        [residual, n]."""
        moved = {index: stepped(theta, index) for index in free}
        of_rotors = [index for index in free if index in ROTOR_INDICES]
        here, *others = self.motions([theta, *(moved[index] for index in of_rotors)])
        motion_of = dict(zip(of_rotors, others, strict=True))
        base = self.differences(theta, here)
        columns = [
            self._left(self.differences(moved[index], motion_of.get(index, here)) - base)
            / (moved[index][index] - theta[index])
            for index in free
        ]
        return np.stack(columns, axis=1)


def scale(theta: Array, index: int) -> float:
    """Return the size to which a step is relative, where a parameter may be of any size."""
    if index in (*ROTOR_INDICES, P.FORCE_LAG, P.FORCE_DELAY):
        return 1.0
    return max(abs(float(theta[index])), 1e-3)


def stepped(theta: Array, index: int) -> Array:
    """Return the parameters with one of them moved, for finite differences."""
    moved: Array = theta.copy()
    moved[index] += STEPS[index] * scale(theta, index)
    return moved


def steady_velocity(log: FlightLog) -> Array:
    """Return the velocity with less noise, [row, 3]; without an accelerometer, a drone is pushed
    along its z by its weight."""
    assert log.velocity is not None
    if log.acceleration is None:
        up = turn(log.attitude, np.array([0.0, 0.0, 1.0]))
        force = GRAVITY_M_S2 / up[:, 2].mean() * up
    else:
        force = turn(log.attitude, log.acceleration)
    fallen = force - np.array([0.0, 0.0, GRAVITY_M_S2])
    return steadied(log.velocity, integral(fallen, log.time_s))


def integral(values: Array, time_s: Array) -> Array:
    """Integrate [row, n] values from the first row to each."""
    result: Array = cumulative_trapezoid(values, time_s, axis=0, initial=0.0)
    return result


def summed(steps: Array) -> Array:
    """Return the sums before the first and after each of [step, n] steps."""
    return np.pad(np.cumsum(steps, axis=0), ((1, 0), (0, 0)))


def turn(q: Array, v: Array) -> Array:
    """Turn body vectors into the world, [row, 3]."""
    result: Array = rotation(q).apply(v)
    return result


def back(q: Array, v: Array) -> Array:
    """Turn world vectors into the body's frame, [row, 3]."""
    result: Array = rotation(q).inv().apply(v)
    return result


def rotation(q: Array) -> Rotation:
    """Return the rotations of quaternions w x y z, which may be of any length."""
    return Rotation.from_quat(q[:, [1, 2, 3, 0]])
