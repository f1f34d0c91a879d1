"""Whether a log is what docs/fit.md says: units, frames, order of columns, gaps, motion.

What is wrong is one sentence that says what to write instead. A quaternion and a gyroscope say the
same of a rotation; by that agreement units, order of elements and frame are known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rltools_host.fitting.log import (
    ACCELERATION,
    ANGULAR_VELOCITY,
    ATTITUDE,
    ROTORS,
    VELOCITY,
    FlightLog,
)
from rltools_host.fitting.model import GRAVITY_M_S2, integral, rotation, turn

Array = NDArray[np.float64]

SLOWEST_STEP_S = 0.0205  # 50 rows a second, with jitter
SHORTEST_S = 4.0
LONGEST_S = 600.0
LARGEST_RATE_RAD_S = 80.0  # gyroscopes: 2,000 or 4,000 deg/s
LARGEST_ACCELERATION_M_S2 = 320.0  # accelerometers: 16 or 32 g
LARGEST_SPEED_M_S = 100.0
WIDEST_GAP = 4.0  # of the usual step
UNIT_ERROR = 0.05
HELD_AT_LIMIT = 0.4  # the part of the rows in which a command may be 0 or 1
SMALLEST_COMMAND_CHANGE = 0.002  # standard deviation
TURNING_WINDOW_S = 0.1
SMALLEST_TURNING_RAD = 0.01  # in a window: standard deviation that says something
VELOCITY_WINDOW_S = 0.4
SMALLEST_SPEED_CHANGE_M_S = 0.15
DEGREES = 180.0 / np.pi


def check_log(log: FlightLog) -> None:
    """DamagedFileError unless the log can be used."""
    check_time(log)
    check_ranges(log)
    check_attitude(log)
    check_commands(log)
    check_gravity(log)
    check_velocity(log)
    check_sensors(log)


def check_time(log: FlightLog) -> None:
    steps = np.diff(log.time_s)
    if np.any(steps <= 0.0):
        row = int(np.argmax(steps <= 0.0)) + 1
        what = "the time of the row before" if steps[row - 1] == 0 else "an earlier time than that"
        raise log.fault(f"it has {what}: rows follow each other in time", row)
    usual = log.step_s
    if usual > SLOWEST_STEP_S or log.duration_s > LONGEST_S:
        if usual > 0.5:
            unit = "microseconds" if usual > 500.0 else "milliseconds"
            raise log.fault(f"its rows are {usual:g} s apart: if time_s is in {unit}, divide it")
        if usual > SLOWEST_STEP_S:
            raise log.fault(
                f"its rows are {usual:.3g} s apart: 0.02 s is the most, 0.004 s is good, as motors "
                "take 0.02 to 0.2 s"
            )
        raise log.fault(
            f"it lasts {log.duration_s:.0f} s: cut it to at most {LONGEST_S:.0f} s in the air"
        )
    if log.duration_s < SHORTEST_S:
        raise log.fault(
            f"it lasts {log.duration_s:.2g} s: {SHORTEST_S:g} s in the air are the least, and 10 "
            "to 60 s are good"
        )
    gaps = steps > max(WIDEST_GAP * usual, usual + 0.003)
    if np.any(gaps):
        row = int(np.argmax(gaps)) + 1
        others = f", and {np.sum(gaps) - 1} more" if np.sum(gaps) > 1 else ""
        raise log.fault(
            f"nothing was recorded for {steps[row - 1]:.3g} s before it{others}, where rows are "
            f"{usual:.3g} s apart: keep a part without gaps",
            row,
        )


def check_ranges(log: FlightLog) -> None:
    """Numbers that no sensor gives are of other units."""
    groups = [
        (log.angular_velocity, LARGEST_RATE_RAD_S, "rad/s", "degrees a second are divided by 57.3"),
        (log.acceleration, LARGEST_ACCELERATION_M_S2, "m/s^2", "mm/s^2 are divided by 1000"),
        (log.velocity, LARGEST_SPEED_M_S, "m/s", "mm/s are divided by 1000"),
    ]
    for values, largest, unit, remedy in groups:
        if values is not None and np.any(np.abs(values) > largest):
            row = int(np.argmax(np.any(np.abs(values) > largest, axis=1)))
            value = values[row, np.argmax(np.abs(values[row]))]
            raise log.fault(f"{value:g} {unit} is more than any flight has: {remedy}", row)
    kind = "thrust" if log.commands_thrust else "speed"
    outside = np.any((log.commands < -1e-6) | (log.commands > 1.0 + 1e-6), axis=1)
    if np.any(outside):
        row = int(np.argmax(outside))
        value = log.commands[row, np.argmax(np.abs(log.commands[row] - 0.5))]
        largest = float(log.commands.max())
        scale = 65535 if largest > 2100 else 100 if largest <= 100.0 else None
        remedy = (
            f"divide by {scale}"
            if scale and log.commands.min() >= 0.0
            else "scale the commands from 0, the least, to 1, the greatest"
        )
        raise log.fault(
            f"a command of {value:g} is not a fraction, {kind}_* are 0 to 1: {remedy}", row
        )


def check_attitude(log: FlightLog) -> None:
    """Unit length; and that it turns as the gyroscope says."""
    lengths = np.linalg.norm(log.attitude, axis=1)
    if np.any(np.abs(lengths - 1.0) > UNIT_ERROR):
        row = int(np.argmax(np.abs(lengths - 1.0) > UNIT_ERROR))
        raise log.fault(
            f"the attitude's length is {lengths[row]:.3g} and not 1: write a unit quaternion, "
            "w x y z",
            row,
        )
    q = log.attitude / lengths[:, None]
    length = max(round(TURNING_WINDOW_S / log.step_s), 1)
    turned = integral(log.angular_velocity, log.time_s)
    by_gyro = turned[length::length] - turned[:-length:length]
    moving = float(by_gyro.std(axis=0).max())
    best, why, fit = "", "", -np.inf
    for name, order, remedy in ORDERS:
        parts = q[:, order]
        for conjugated in (False, True):
            by_attitude = turning(parts, length, conjugated)
            for scale_name, scale, scale_remedy in SCALES:
                for frame_name, frame, frame_remedy in FRAMES:
                    predicted = by_gyro * scale * frame
                    value = agreement(by_attitude, predicted)
                    faults = [
                        (name, remedy),
                        (INVERSE if conjugated else ("", "")),
                        (scale_name, scale_remedy),
                        (frame_name, frame_remedy),
                    ]
                    there = [fault for fault in faults if fault[0]]
                    if value > fit + 0.05 * len(there):  # the documented one wins a draw
                        fit = value
                        best = " and ".join(fault[0] for fault in there)
                        why = " and ".join(fault[1] for fault in there)
    if best and fit > 0.5:
        raise log.fault(f"{best}: {why}")
    if fit < 0.3 and moving > SMALLEST_TURNING_RAD:  # else the fit says that it hardly turns
        raise log.fault(
            "the attitude does not turn as the angular velocity says: both are of the same body, "
            "x forward, y left, z up, in rad/s and as w x y z"
        )


ORDERS = (
    ("", [0, 1, 2, 3], ""),
    ("the attitude's elements seem to be x y z w", [3, 0, 1, 2], "write w first"),
)
INVERSE = (
    "the attitude seems to turn the world's vectors into the body",
    "change the sign of x, y and z",
)
SCALES = (
    ("", 1.0, ""),
    ("the angular velocity seems to be in degrees a second", 1.0 / DEGREES, "divide it by 57.3"),
)
FRAMES = (
    ("", np.array([1.0, 1.0, 1.0]), ""),
    (
        "the angular velocity and the attitude are of different frames",
        np.array([1.0, -1.0, -1.0]),
        "change the signs of data with y to the right and z down",
    ),
)


def turning(q: Array, length: int, conjugated: bool) -> Array:
    """Rotation vectors from window to window, in the body's frame: [window, 3]."""
    rotations = rotation(q[::length])
    if conjugated:
        rotations = rotations.inv()
    result: Array = (rotations[:-1].inv() * rotations[1:]).as_rotvec()
    return result


def agreement(measured: Array, predicted: Array) -> float:
    """1 where they are equal, -1 where one says nothing of the other."""
    count = min(len(measured), len(predicted))
    measured, predicted = measured[:count], predicted[:count]
    whole = float((measured**2).sum() + (predicted**2).sum()) / 2.0
    return 1.0 - float(((measured - predicted) ** 2).sum()) / max(whole, 1e-12)


def check_commands(log: FlightLog) -> None:
    at_limit = (log.commands <= 0.0) | (log.commands >= 1.0)
    part = at_limit.mean(axis=0)
    if part.max() > HELD_AT_LIMIT:
        rotor = int(np.argmax(part))
        name = ROTORS[rotor].replace("_", " ")
        value = "0" if log.commands[:, rotor].mean() < 0.5 else "1"
        raise log.fault(
            f"the {name} rotor's command is at its limit, mostly {value}, in "
            f"{100 * part[rotor]:.0f} % of the rows: cut the log to the flight, or fly with less "
            "weight or more gently"
        )
    if log.commands.std(axis=0).max() < SMALLEST_COMMAND_CHANGE:
        raise log.fault("its commands do not change: it is not of a flight, or of other columns")
    for name, command in zip(ROTORS, log.commands.T, strict=True):
        if np.ptp(command) == 0.0:
            raise log.fault(
                f"the {name.replace('_', ' ')} rotor's command is {command[0]:g} in all rows, and "
                "others change: write the commands that were sent"
            )


def check_gravity(log: FlightLog) -> None:
    """The accelerometer's mean in the world is gravity's: 9.81 m/s^2 upwards."""
    if log.acceleration is None:
        return
    mean = float(np.linalg.norm(log.acceleration, axis=1).mean())
    if 0.3 < mean < 3.0:
        raise log.fault(
            f"its accelerations are {mean:.2g} m/s^2 long on average: if they are in g, multiply "
            "them by 9.81; if gravity was taken off, leave it in"
        )
    up = float(log.acceleration[:, 2].mean())
    if up < -4.0:
        raise log.fault(
            f"acceleration_z is {up:.1f} m/s^2 on average: z is up and a body at rest measures "
            "+9.81; of a frame with z down change the signs of all y and z"
        )
    if not 4.0 < mean < 25.0:
        raise log.fault(
            f"its accelerations are {mean:.3g} m/s^2 long on average, and gravity's is 9.81: write "
            "what an accelerometer measures, in m/s^2"
        )


def check_velocity(log: FlightLog) -> None:
    """It changes as the accelerometer says, where there are both."""
    if log.acceleration is None or log.velocity is None:
        return
    length = max(round(VELOCITY_WINDOW_S / log.step_s), 1)
    force = turn(log.attitude, log.acceleration) - np.array([0.0, 0.0, GRAVITY_M_S2])
    gained = integral(force, log.time_s)
    predicted = gained[length::length] - gained[:-length:length]
    predicted -= predicted.mean(axis=0)  # a small tilt of the attitude
    measured = log.velocity[length::length] - log.velocity[:-length:length]
    if (
        measured.std(axis=0).max() > SMALLEST_SPEED_CHANGE_M_S
        and agreement(measured, predicted) < 0
    ):
        raise log.fault(
            "its velocity does not change as acceleration and attitude say: it is the world's, z "
            "up, with the x and y that the attitude turns to, in m/s"
        )


def check_sensors(log: FlightLog) -> None:
    """Each shows something."""
    for names, values, otherwise in (
        (ATTITUDE, log.attitude, ""),
        (ANGULAR_VELOCITY, log.angular_velocity, ""),
        (ACCELERATION, log.acceleration, ", or leave acceleration_* out"),
        (VELOCITY, log.velocity, ", or leave velocity_* out"),
    ):
        if values is None:
            continue
        for name, column in zip(names, values.T, strict=True):
            if np.ptp(column) == 0.0:
                raise log.fault(
                    f"{name} is {column[0]:g} in all rows: write the measurements{otherwise}"
                )
