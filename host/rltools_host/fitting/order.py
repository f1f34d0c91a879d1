"""Which rotor does what: whether the commands' columns are in order, and where a fit begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rltools_host.fitting.estimate import USUAL_INERTIA_Z, inertia_x_and_y
from rltools_host.fitting.log import ROTORS
from rltools_host.fitting.model import (
    COUNT,
    GRAVITY_M_S2,
    X_SIGNS,
    Y_SIGNS,
    YAW_SIGNS,
    Model,
    P,
    summed,
)

Array = NDArray[np.float64]

LAGS_S = (0.002, 0.01, 0.03, 0.06, 0.1, 0.16, 0.25)  # that are tried for a beginning
CLEAR = 8.0  # standard errors, by which a sign is known
AXES = ("roll", "pitch", "yaw")
PATTERNS = np.stack([Y_SIGNS, -X_SIGNS, YAW_SIGNS])


@dataclass(frozen=True)
class Beginning:
    theta: Array
    clear: Array  # by axis: standard errors of how it answers to its rotors


def begin(model: Model) -> Beginning:
    """A start for the fit; one sentence where rotors or axes are not where they should be."""
    lag_s, each, errors = answers_of_rotors(model)
    check_rotors(model, each, errors)
    together, clear = answers_of_axes(model, lag_s)
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
    theta = np.zeros(COUNT)
    theta[[P.LAG_UP, P.LAG_DOWN]] = np.log(lag_s)
    motion = model.motions([theta])[0]
    lift = GRAVITY_M_S2 if log.acceleration is None else float(log.acceleration[:, 2].mean())
    theta[P.THRUST] = lift / float(motion.thrust.sum(axis=1).mean())
    arms = np.array([model.rotor_y_m, model.rotor_x_m, 1.0])
    gains = np.maximum(together, 1e-6) / (theta[P.THRUST] * arms)
    theta[[P.GAIN_X, P.GAIN_Y, P.GAIN_Z]] = gains
    theta[P.INERTIA_Z] = USUAL_INERTIA_Z * inertia_x_and_y(theta)
    return Beginning(theta, clear)


def regression(model: Model, inputs: Array) -> tuple[Array, Array, float]:
    """Angular accelerations by inputs [row, n], which are integrals: coefficients [axis, n], their
    standard errors, and what is left, relative to what there was."""
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


def impulses(model: Model, lags_s: tuple[float, ...]) -> list[Array]:
    """Integrals of each rotor's thrust, for some lags: [row, 4]."""
    sets = []
    for lag_s in lags_s:
        theta = np.zeros(COUNT)
        theta[[P.LAG_UP, P.LAG_DOWN]] = np.log(lag_s)
        sets.append(theta)
    return [summed(motion.impulse) for motion in model.motions(sets)]


def answers_of_rotors(model: Model) -> tuple[float, Array, Array]:
    """The lag that explains most, and each rotor's part in each axis, with standard errors."""
    tried = [
        (lag_s, *regression(model, inputs))
        for lag_s, inputs in zip(LAGS_S, impulses(model, LAGS_S), strict=True)
    ]
    lag_s, values, errors, _ = min(tried, key=lambda entry: entry[3])
    return lag_s, values, errors


def answers_of_axes(model: Model, lag_s: float) -> tuple[Array, Array]:
    """What the rotors of an axis do together, and how many standard errors that is from nothing."""
    inputs = impulses(model, (lag_s,))[0] @ PATTERNS.T
    values, errors, _ = regression(model, inputs)
    return np.diag(values), np.diag(values) / np.maximum(np.diag(errors), 1e-12)


def check_rotors(model: Model, values: Array, errors: Array) -> None:
    """Where each rotor is seen to be, by how roll and pitch answer to it."""
    if np.any(np.abs(values[:2]) <= CLEAR * errors[:2]):
        return  # not seen
    signs = np.sign(values[:2])
    seen = [
        next(place for place in range(4) if np.array_equal(PATTERNS[:2, place], signs[:, rotor]))
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
    moved = [
        f"{kind}_{ROTORS[rotor]} is of the {ROTORS[place].replace('_', ' ')} one"
        for rotor, place in enumerate(seen)
        if rotor != place
    ]
    raise model.log.fault(
        f"its rotors are in another order, as roll and pitch show: {', '.join(moved)}"
    )
