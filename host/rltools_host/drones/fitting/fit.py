"""The fit of a log: the parameters that it shows, their values and intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rltools_host.drones.fitting.checks import check_log, check_time
from rltools_host.drones.fitting.estimate import (
    SHAPE,
    USUAL_INERTIA_Z,
    USUAL_SHAPE,
    Assumption,
    Estimate,
    begin,
    between_regressions,
    estimate,
    estimate_in_gusts,
    inertia_x_and_y,
    usual_curve,
    usual_inertia_z,
    widened,
)
from rltools_host.drones.fitting.log import SPEED, THRUST, FlightLog
from rltools_host.drones.fitting.model import COUNT, Model, P
from rltools_host.drones.fitting.response import SEEN, Response, fit_response
from rltools_host.drones.fitting.rotors import SHORTEST_LAG_S
from rltools_host.drones.fitting.rows import liveliest, prepared

Array = NDArray[np.float64]

WIDEST = 0.3  # half an interval, relative: what is wider is not known
WIDEST_LAG = 0.5
WIDEST_INERTIA_Z = 0.15
WIDEST_SHAPE = 0.25  # of thrust's parts at rest and proportional to speed
DRAGS = (P.DRAG_X, P.DRAG_Y, P.DRAG_Z)
ALL_DRAGS = (*DRAGS, P.SPIN_DRAG)
OF_MEASURED = (P.FLAPPING, P.MOMENTUM, P.FORCE_LAG, P.FORCE_DELAY)  # rotor speeds
# What is left over a sensor's noise, in parts of it, without gusts: chance alone makes about
# 1 / sqrt(rows).
CALM, CALM_ROWS = 0.1, 5.0
MAX_LEFT = 0.8  # of the measured speeds' deviation, that commands may leave
SHORTEST_SEEN = 0.25  # lag, in rows
WEAKEST = 0.3  # motion, in a gyroscope's noise


@dataclass(frozen=True)
class Fit:
    """The parameters for unit mass, with those that were held and why."""

    log: FlightLog
    estimate: Estimate
    has_arms: bool  # else inertias are of unit distance of the rotors
    held: frozenset[int]  # indices that the log does not show
    no_lag: frozenset[int]  # of P.LAG_UP and P.LAG_DOWN: shorter than can be seen
    knows_yaw: bool
    warnings: tuple[str, ...]
    residuals: dict[str, tuple[float, float]]  # channel: what is left, the sensor's noise
    # Of measured rotor speeds: the one at which thrust is the greatest, rad/s, and whether the log
    # says so; the delay of their times.
    greatest_rad_s: float | None = None
    knows_greatest: bool = True
    speed_delay_s: float = 0.0

    def value(self, function: Callable[[Array], float]) -> float:
        return float(function(self.estimate.theta))

    def interval(
        self, function: Callable[[Array], float], positive: bool = False, chosen: bool = False
    ) -> tuple[float, float]:
        """Return the 95 % interval, by the function's gradient, or that of its logarithm where it
        is positive.

        `chosen`: the value is a drag that is shown because its estimate is large. For 95 % of those
        that are shown to have the truth, the interval is that of 100 % - 5 % x the part of the
        drags that is shown (Benjamini and Yekutieli 2005).
        """
        theta = self.estimate.theta
        value = float(function(theta))
        sizes = np.maximum(1e-3 * self.estimate.errors, 1e-9 * np.abs(theta))
        gradient = np.array(
            [
                (function(theta + step) - function(theta - step)) / (2.0 * size) if size else 0.0
                for size, step in zip(sizes, np.diag(sizes), strict=True)
            ]
        )
        variance = float(gradient @ self.estimate.covariance @ gradient)
        outside = 0.05
        if chosen:
            outside *= sum(map(self.is_known, ALL_DRAGS)) / len(ALL_DRAGS)
        half = self.estimate.quantile(outside) * float(np.sqrt(max(variance, 0.0)))
        if positive and value > 0.0:
            factor = float(np.exp(min(half / value, 50.0)))
            return value / factor, value * factor
        return value - half, value + half

    def is_known(self, index: int) -> bool:
        return index in self.estimate.free and index not in self.held


def fit(log: FlightLog, rotor_x_m: float | None = None, rotor_y_m: float | None = None) -> Fit:
    """Estimate the parameters that explain a log; raise an RltError where that is not possible."""
    log = prepared(log)
    check_time(log)
    log = liveliest(log)
    unchecked = check_log(log)
    has_arms = rotor_x_m is not None and rotor_y_m is not None
    arms = (rotor_x_m or 1.0, rotor_y_m or 1.0)
    model = Model(log, *arms)
    first = estimate_all(model, begin(model))
    found, held, no_lag, effects = estimate_what_is_seen(model, first)
    misfit, misfitting = misfit_of(noise_table(model, found))
    is_calm = misfit < 1.0 + max(CALM, CALM_ROWS / np.sqrt(len(log.time_s)))
    if not is_calm:
        in_gusts, moved = estimate_in_gusts(
            model, found.theta, partial(estimate_with, held=held, no_lag=no_lag, effects=effects)
        )
        model = in_gusts.model
        start = in_gusts.estimate.theta.copy()
        start[[*effects]] = 0.0  # they are seen in gusts too, or left out
        first = estimate_all(model, start)
        found, held, no_lag, _ = estimate_what_is_seen(model, first)
        found = widened(found, moved)
    if log.rotor_speeds is not None:
        found = between_regressions(model, found)
    strength = model.driven(found.theta) / found.noise[-3:]
    left_over = noise_table(model, found)
    require_motion(log, found, strength)
    knows_yaw = is_yaw_known(found, strength)
    measured: tuple[float | None, bool, float] = (None, True, 0.0)
    if log.rotor_speeds is not None:
        delay_s = float(found.theta[P.LATENCY])
        found, greatest = with_response(log, found)
        measured = (greatest, log.commands is not None, delay_s)
        no_lag = {
            index
            for index in (P.LAG_UP, P.LAG_DOWN)
            if index in found.free and found.theta[index] < np.log(SHORTEST_SEEN * log.step_s)
        }
    return Fit(
        log,
        found,
        has_arms,
        frozenset(held | {index for index in range(COUNT) if not is_in(log, index)}),
        frozenset(no_lag),
        knows_yaw,
        (
            *warnings(log, found, held, knows_yaw, "" if is_calm else misfitting, misfit),
            *unchecked,
        ),
        left_over,
        *measured,
    )


def estimate_all(model: Model, start: Array) -> Estimate:
    """Estimate all parameters that the log's columns can show."""
    return estimate(model, start, *free_and_assumed(model.log))


def free_and_assumed(log: FlightLog) -> tuple[list[int], list[Assumption]]:
    if log.commands_thrust and log.rotor_speeds is None:
        return [index for index in range(COUNT) if is_in(log, index) or index in SHAPE], [
            usual_curve
        ]
    return [index for index in range(COUNT) if is_in(log, index)], []


def estimate_what_is_seen(
    model: Model, first: Estimate
) -> tuple[Estimate, set[int], set[int], set[int]]:
    """Estimate again with assumptions for what is not seen; return the estimate, the parameters
    that are not seen in it, the lags that are too short to be seen, and the rotors' effects that
    commands show."""
    held, no_lag = what_to_hold(first, model.log)
    found = estimate_with(model, first.theta, held, no_lag) if held | no_lag else first
    if model.log.rotor_speeds is not None:
        return found, held, no_lag, set()
    effects: set[int] = {P.MOMENTUM} if model.log.velocity is None else {P.MOMENTUM, P.FLAPPING}
    while effects:
        tried = estimate_with(model, found.theta, held, no_lag, effects)
        if any(tried.theta[gain] < tried.half_width(gain) for gain in (P.GAIN_X, P.GAIN_Y)):
            break  # it went astray: turning has to be seen with them, as without
        seen = {index for index in effects if tried.theta[index] > tried.half_width(index)}
        if seen == effects:
            return tried, held, no_lag, effects
        effects = seen
    return found, held, no_lag, set()


def estimate_with(
    model: Model,
    start: Array,
    held: set[int],
    no_lag: set[int],
    effects: Collection[int] = (),
) -> Estimate:
    """Estimate with parameters held at 0 or assumed, and without the lags of `no_lag`; with these
    effects of the rotors, which measured speeds show by themselves."""
    free, assumed = free_and_assumed(model.log)
    theta = start.copy()
    assumes_curve = P.SHAPE_1 in held and model.log.rotor_speeds is None
    if assumes_curve:
        assumed.append(usual_curve)
        theta[list(SHAPE)] = USUAL_SHAPE
    if P.INERTIA_Z in held:
        assumed.append(usual_inertia_z)
        theta[P.INERTIA_Z] = USUAL_INERTIA_Z * inertia_x_and_y(theta)
    lags = list(no_lag)
    if no_lag and np.any(np.exp(theta[lags]) > SHORTEST_LAG_S * 1.01):
        theta[P.LATENCY] += np.exp(theta[lags]).mean()  # what they had of a lag
        theta[lags] = np.log(SHORTEST_LAG_S)
    nothing = held - {P.INERTIA_Z}
    if assumes_curve:
        nothing -= {*SHAPE}
    theta[list(nothing)] = 0.0
    free = sorted({*free, *effects} - nothing - no_lag)
    # Rotors without lag jump: what comes before its command would be nowhere smooth.
    return estimate(model, theta, free, assumed, 0.0 if no_lag else None)


def is_in(log: FlightLog, index: int) -> bool:
    """Return whether the log's columns can show a parameter."""
    if log.rotor_speeds is not None:
        if index in (P.LAG_UP, P.LAG_DOWN, *SHAPE):
            return False  # thrust is taken as the square of the measured speed
        if index == P.FORCE_LAG:
            return log.acceleration is not None
    elif index in OF_MEASURED:
        return False
    if index in SHAPE:
        return not log.commands_thrust
    if index in (*DRAGS, P.FLAPPING):
        return log.velocity is not None
    if index in (P.OFFSET_X, P.OFFSET_Y):
        return log.acceleration is not None
    return True


def what_to_hold(first: Estimate, log: FlightLog) -> tuple[set[int], set[int]]:
    """Return the parameters that the log does not show, and the lags that are shorter than it
    shows."""
    theta, held = first.theta, set()
    if log.rotor_speeds is not None:
        held |= {
            index
            for index in (P.FLAPPING, P.MOMENTUM)
            if index in first.free and theta[index] < first.half_width(index)
        }
    elif not log.commands_thrust and max(map(first.half_width, SHAPE)) > WIDEST_SHAPE:
        held |= set(SHAPE)
    elif not log.commands_thrust and theta[P.SHAPE_0] < 0.0:
        held.add(P.SHAPE_0)  # a rotor at rest does not pull
    for index, least in ((P.DRAG_X, 1.0), (P.DRAG_Y, 1.0), (P.DRAG_Z, 1.0), (P.SPIN_DRAG, 2.0)):
        # A gyroscope's noise, which the controller answers to, looks a little like damping.
        if index in first.free and theta[index] < least * first.half_width(index):
            held.add(index)
    if first.half_width(P.INERTIA_Z) > WIDEST_INERTIA_Z * abs(theta[P.INERTIA_Z]):
        held.add(P.INERTIA_Z)
    shortest = np.log(SHORTEST_SEEN * log.step_s)
    no_lag = {
        index for index in (P.LAG_UP, P.LAG_DOWN) if index in first.free and theta[index] < shortest
    }
    return {int(index) for index in held}, {int(index) for index in no_lag}


def require_motion(log: FlightLog, found: Estimate, strength: Array) -> None:
    """Raise DamagedFileError unless the log shows what every log has to."""
    theta = found.theta
    for axis, name in enumerate(("roll", "pitch")):
        if strength[axis] < WEAKEST:
            raise log.fault(
                f"its {name} motion does not exceed its gyroscope's noise: fly with quicker changes"
            )
    for index, what in (
        (P.THRUST, "how large the thrust is"),
        (P.GAIN_X, "how quickly it rolls"),
        (P.GAIN_Y, "how quickly it pitches"),
    ):
        if found.half_width(index) > WIDEST * abs(theta[index]) or theta[index] <= 0.0:
            raise log.fault(
                f"it does not show {what} (95 % interval {theta[index]:.3g} ± "
                f"{found.half_width(index):.2g}): fly with quicker changes, or longer"
            )
    for index, what in ((P.LAG_UP, "faster"), (P.LAG_DOWN, "slower")):
        if index in found.free and found.half_width(index) > WIDEST_LAG:
            raise log.fault(
                f"it does not show how long the rotors take to get {what}: fly with quicker "
                "changes of thrust, roll and pitch, or longer"
            )


def with_response(log: FlightLog, found: Estimate) -> tuple[Estimate, float]:
    """Return the estimate with lags, latency and the greatest speed by the commands, where there
    are some; else the greatest speed is the largest in the log."""
    theta, covariance = found.theta.copy(), found.covariance.copy()
    free = [index for index in found.free if index != P.LATENCY]
    covariance[P.LATENCY, :] = covariance[:, P.LATENCY] = 0.0
    if log.commands is None:
        theta[P.LATENCY] = 0.0
        left = replace(found, theta=theta, covariance=covariance, free=tuple(free))
        return left, log.largest_speed
    response = fit_response(log)
    seen = response.estimate
    check_response(log, response)
    theta[list(SEEN)] = seen.theta[list(SEEN)]
    theta[P.LATENCY] += found.theta[P.LATENCY]  # to what the sensors say
    covariance[np.ix_(SEEN, SEEN)] = seen.covariance[np.ix_(SEEN, SEEN)]
    covariance[P.LATENCY, P.LATENCY] += found.covariance[P.LATENCY, P.LATENCY]
    ratio = response.greatest_rad_s / log.largest_speed
    scales = np.ones(COUNT)
    scales[P.THRUST], scales[P.MOMENTUM] = ratio**2, ratio
    theta *= scales
    covariance *= np.outer(scales, scales)
    error = 2.0 * response.greatest_error / response.greatest_rad_s
    covariance[P.THRUST, P.THRUST] += (error * theta[P.THRUST]) ** 2
    both = replace(found, theta=theta, covariance=covariance, free=(*SEEN, *free))
    return both, response.greatest_rad_s


def check_response(log: FlightLog, response: Response) -> None:
    """Raise DamagedFileError where the measured speeds do not follow the commands."""
    for index, what in ((P.LAG_UP, "faster"), (P.LAG_DOWN, "slower")):
        if response.estimate.half_width(index) > WIDEST_LAG:
            raise log.fault(
                f"its measured speeds do not show how long the rotors take to get {what}: fly with "
                "quicker changes, or leave the commands out"
            )
    assert log.rotor_speeds is not None
    if response.greatest_rad_s <= 0.5 * log.largest_speed or response.left_rad_s > (
        MAX_LEFT * float(log.rotor_speeds.std())
    ):
        raise log.fault(
            "its measured speeds do not follow its commands: look at their order, or leave the "
            "commands out"
        )


def noise_table(model: Model, found: Estimate) -> dict[str, tuple[float, float]]:
    """Return, for each sensor, the size of its residuals, and its noise by the differences from row
    to row."""
    log = model.log
    other = log.acceleration if log.acceleration is not None else log.velocity
    assert other is not None
    kind = "acceleration" if log.acceleration is not None else "velocity"
    columns = [*other.T, *log.angular_velocity.T]
    names = [f"{word}_{axis}" for word in (kind, "angular_velocity") for axis in "xyz"]
    return {
        name: (float(left), float(np.diff(column, n=2).std() / np.sqrt(6.0)))
        for name, column, left in zip(names, columns, found.noise, strict=True)
    }


def warnings(
    log: FlightLog,
    found: Estimate,
    held: set[int],
    knows_yaw: bool,
    misfitting: str,
    misfit: float,
) -> list[str]:
    """Return sentences on what the user should know of the log."""
    sentences = []
    theta = found.theta
    if not knows_yaw:
        sentences.append(
            "it has too little yaw motion: the rotors' torque is not known; fly quick turns to "
            "both sides"
        )
    if P.SHAPE_1 in held and log.rotor_speeds is None:
        sentences.append(
            "the thrust was changed too little for its curve over rotor speed: it was taken as "
            "published ones are, nearly its square"
        )
    if log.rotor_speeds is None and theta[P.LATENCY] < -1.5 * log.step_s:
        sentences.append(
            f"the rotors answer {-1000 * theta[P.LATENCY]:.0f} ms before the command: the "
            "commands are stamped too late, or the sensors too early"
        )
    if log.rotor_speeds is not None:
        sentences += notes_on_speeds(log, misfitting, misfit)
    elif misfitting:
        sentences.append(
            f"{misfitting} differed from the model by {misfit:.1f} times its sensor's noise: "
            "gusts, a battery that sags, a loose part or columns of different times; taken as "
            "gusts, which makes the intervals wider"
        )
    sentences += log.notes
    if log.unused:
        sentences.append(f"columns that are not used: {', '.join(log.unused)}")
    return sentences


def notes_on_speeds(log: FlightLog, misfitting: str, misfit: float) -> list[str]:
    sentences = []
    if misfitting:
        sentences.append(
            f"{misfitting} differed from the model by {misfit:.1f} times its sensor's noise: "
            "errors of the measured speeds and of the rows' times, air that moves, a battery that "
            "sags; the intervals reach from none of it in the speeds to all of it"
        )
    if log.commands is None:
        sentences.append(
            f"assumed: the greatest rotor speed is the largest in the log, {log.largest_speed:.0f} "
            f"rad/s; state it by the commands, {THRUST[0]} or {SPEED[0]} and so on, which "
            "show the lags too"
        )
    if log.velocity is None:
        sentences.append(
            "without velocity_* the turning back of a drone that moves sideways is not seen, and "
            "the inertias are too large if it flew fast"
        )
    return sentences


def misfit_of(residuals: dict[str, tuple[float, float]]) -> tuple[float, str]:
    """Return the largest residual relative to its sensor's noise, and the sensor."""
    return max(
        (left / max(noise, 1e-9), name[:-2].replace("_", " "))
        for name, (left, noise) in residuals.items()
    )


def is_yaw_known(found: Estimate, strength: Array) -> bool:
    """Return whether the log shows the yaw. Where yaw motion is too weak, a gyroscope's noise, to
    which the controller answers, looks like motion."""
    theta = found.theta
    sure = theta[P.GAIN_Z] > 0.0 and found.half_width(P.GAIN_Z) < WIDEST * theta[P.GAIN_Z]
    return bool(sure and strength[2] >= WEAKEST)
