"""The comparisons of a log's sensors: attitude and gyroscope, velocity, accelerometer, gravity.

agreement.py compares each pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rltools_host.drones.fitting.agreement import (
    ACCELERATION_CAUSES,
    CAUSES,
    DEGREE_CAUSES,
    SAME_RATIO,
    SPEED_CAUSES,
    Match,
    Pair,
    Reading,
    Windows,
    cause_of,
    match,
)
from rltools_host.drones.fitting.formats import GRAVITY_M_S2
from rltools_host.drones.fitting.log import ACCELERATION, ANGULAR_VELOCITY, VELOCITY, FlightLog
from rltools_host.drones.fitting.model import back, integral, turn

Array = NDArray[np.float64]

TURNING_WINDOW_S = 0.1
SMALLEST_TURNING_RAD = 0.01
VELOCITY_WINDOW_S = 0.4
SMALLEST_SPEED_CHANGE_M_S = 0.1
RATE_DELAY_S, VELOCITY_DELAY_S = 0.03, 0.05  # that may be
LARGEST_RATIO = 1.2
LARGEST_RATIO_OF_LEAN = 1.5  # by the attitude's lean alone: drag is in it
SPEED_GAIN_M_S = 10.0  # that a log without a velocity may end with
GRAVITY_ERROR = 0.12
SIDES_BETTER = 0.6  # squares left with x and y of the accelerometer otherwise
SIDES_UNSEEN = 1.1


def check_agreement(log: FlightLog) -> list[str]:
    """Raise DamagedFileError where sensors contradict each other; return notes on what is not
    checked."""
    turning, turned, notes = check_turning(log)
    wrong = turning.wrong_axes(turned)
    if log.velocity is None:
        if wrong:
            raise log.fault(turning.scale_fault(turned, wrong))
        check_gravity_scale(log)
        return [
            *notes,
            "without velocity_* the accelerometer's order, signs of x and y and delay are not "
            "checked",
        ]
    moving, moved, more = check_moving(log)
    wrong_there = moving.wrong_axes(moved)
    if wrong and wrong_there:
        ratio = float(np.median(list(wrong.values())))
        other = float(np.median(list(wrong_there.values())))
        if 1.0 / SAME_RATIO < ratio * other < SAME_RATIO:
            raise log.fault(
                f"{turning.what} is {ratio:.3g} times what {turning.by_says}, and {moving.what} "
                f"{other:.3g} times what {moving.by_says}: time_s runs {ratio:.3g} times as fast "
                "as the clock, divide it by that"
            )
    if wrong:
        raise log.fault(turning.scale_fault(turned, wrong))
    check_gravity_scale(log)
    if wrong_there:
        raise log.fault(moving.scale_fault(moved, wrong_there))
    return notes + more + check_sides(log, moved.delay_s)


# -- attitude and gyroscope ------------------------------------------------------------------------

XYZW = ("the attitude's elements seem to be x y z w", "write w first")
OF_WORLD = (
    "the angular velocity seems to be of the world's axes",
    "turn it into the body by the attitude",
)
INVERSE = (
    "the attitude seems to turn the world's vectors into the body",
    "change the sign of x, y and z",
)


def check_turning(log: FlightLog) -> tuple[Pair, Match, list[str]]:
    pair = Pair(
        log,
        ANGULAR_VELOCITY,
        "the angular velocity",
        "the attitude's change",
        "turn",
        "both are of the same body, x forward, y left, z up, in rad/s and as w x y z",
        Windows(log, TURNING_WINDOW_S),
        SMALLEST_TURNING_RAD,
        RATE_DELAY_S,
        LARGEST_RATIO,
        "rad",
        (*DEGREE_CAUSES, *CAUSES),
    )
    curve = integral(log.angular_velocity, log.time_s)
    return pair, *pair.compared(turning_readings(log, pair.windows, curve), curve)


def turning_readings(log: FlightLog, windows: Windows, curve: Array) -> Iterator[Reading]:
    """Yield the readings of attitude and gyroscope, the documented one first."""
    for order, last in (([0, 1, 2, 3], ()), ([3, 0, 1, 2], (XYZW,))):
        for signs, inverse in ((1, ()), (-1, (INVERSE,))):
            parts = log.attitude[:, order] * np.array([1, signs, signs, signs])
            found = match(windows, curve, windows.turned(parts), SMALLEST_TURNING_RAD)
            yield Reading((*last, *inverse), found)
    of_world = integral(back(log.attitude, log.angular_velocity), log.time_s)
    found = match(windows, of_world, windows.turned(log.attitude), SMALLEST_TURNING_RAD)
    yield Reading((OF_WORLD,), found)


# -- velocity, accelerometer, gravity --------------------------------------------------------------


BODY_VELOCITY = (
    "the velocity seems to be of the body's axes",
    "turn it into the world by the attitude",
)
WORLD_FORCE = (
    "the acceleration seems to be of the world's axes",
    "write the body's, which an accelerometer measures",
)


def check_moving(log: FlightLog) -> tuple[Pair, Match, list[str]]:
    assert log.velocity is not None
    by, ratio, axes, notes = "acceleration and attitude", LARGEST_RATIO, 3, list[str]()
    if log.acceleration is None:
        by, ratio, axes = "the attitude's lean", LARGEST_RATIO_OF_LEAN, 2
        notes = [f"without acceleration_* {VELOCITY[2]} is not checked"]
    pair = Pair(
        log,
        VELOCITY,
        "the velocity",
        by,
        "change",
        "it is the world's, z up, with the x and y that the attitude turns to, in m/s",
        Windows(log, VELOCITY_WINDOW_S),
        SMALLEST_SPEED_CHANGE_M_S,
        VELOCITY_DELAY_S,
        ratio,
        "m/s",
        (*SPEED_CAUSES, *CAUSES),
    )
    found, unsure = pair.compared(moving_readings(log, pair.windows), log.velocity, axes)
    return pair, found, unsure + notes


def moving_readings(log: FlightLog, windows: Windows) -> Iterator[Reading]:
    """Yield the readings of velocity and acceleration, the documented one first."""
    assert log.velocity is not None
    smallest = SMALLEST_SPEED_CHANGE_M_S
    if log.acceleration is None:
        up = turn(log.attitude, np.array([0.0, 0.0, 1.0]))
        force = GRAVITY_M_S2 * up / np.maximum(up[:, 2:], 0.2)
    else:
        force = turn(log.attitude, log.acceleration)
    expected = windows.change(integral(force, log.time_s))
    documented = match(windows, log.velocity, expected, smallest)
    yield Reading((), documented)
    of_body = match(windows, turn(log.attitude, log.velocity), expected, smallest)
    yield Reading((BODY_VELOCITY,), of_body)
    if log.acceleration is not None:
        of_world = windows.change(integral(log.acceleration, log.time_s))
        found = match(windows, log.velocity, of_world, smallest)
        if sum(found.seen) >= sum(documented.seen):
            yield Reading((WORLD_FORCE,), found)


def check_gravity_scale(log: FlightLog) -> None:
    """Check the acceleration's mean in the world: gravity and what the velocity gained."""
    if log.acceleration is None:
        return
    up = float(turn(log.attitude, log.acceleration)[:, 2].mean())
    gained, unknown = 0.0, SPEED_GAIN_M_S / log.duration_s
    if log.velocity is not None:
        gained = float(log.velocity[-1, 2] - log.velocity[0, 2]) / log.duration_s
        unknown = 0.0
    off = min(abs(up - GRAVITY_M_S2), abs(up - GRAVITY_M_S2 - gained))  # the velocity may be wrong
    if off <= GRAVITY_ERROR * GRAVITY_M_S2 + unknown:
        return
    if abs(float(log.acceleration[:, 2].mean()) - GRAVITY_M_S2) < 0.25 * abs(up - GRAVITY_M_S2):
        raise log.fault(": ".join(WORLD_FORCE))
    ratio = up / GRAVITY_M_S2
    remedy = (
        cause_of(ratio, ACCELERATION_CAUSES)
        if ratio > 0.0
        else "write what an accelerometer measures, in m/s^2"
    )
    raise log.fault(
        f"the acceleration is {ratio:.3g} times what gravity and attitude say ({up:.3g} m/s^2 "
        f"upwards on average, in place of 9.81): {remedy}"
    )


def check_sides(log: FlightLog, delay_s: float) -> list[str]:
    """Check the order and signs of an accelerometer's x and y, which show drag alone, by its effect
    on the velocity."""
    if log.acceleration is None:
        return []
    assert log.velocity is not None
    windows = Windows(log, VELOCITY_WINDOW_S)
    measured = windows.change(log.velocity, delay_s)
    left = []
    cases = [(of, s) for of in ((0, 1), (1, 0)) for s in itertools.product((1, -1), repeat=2)]
    for of, signs in cases:
        sides = log.acceleration[:, of] * np.array(signs)
        force = np.column_stack([sides, log.acceleration[:, 2]])
        expected = windows.change(integral(turn(log.attitude, force), log.time_s))
        left.append(float(((measured - expected) ** 2).sum()))
    best = int(np.argmin(left))
    if left[best] < SIDES_BETTER * left[0]:
        of, signs = cases[best]
        swaps = [
            f"{ACCELERATION[i]} in place of {'-' if signs[i] < 0 else ''}{ACCELERATION[of[i]]}"
            for i in range(2)
            if of[i] != i or signs[i] < 0
        ]
        raise log.fault(
            "acceleration_x and acceleration_y have another order or other signs than the "
            f"velocity and attitude say ({', '.join(swaps)}): body, x forward, y left"
        )
    if min(left[1:]) < SIDES_UNSEEN * left[0]:
        return [
            f"{ACCELERATION[0]}, {ACCELERATION[1]}: too little drag to check their order and signs"
        ]
    return []
