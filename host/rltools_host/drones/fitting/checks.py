"""The checks that a log is what docs/fit.md says: times, ranges, commands, motion.

An error is one sentence that says what to write instead. sensors.py compares the sensors with each
other.
"""

from __future__ import annotations

import numpy as np

from rltools_host.drones.fitting.agreement import ACCELERATION_CAUSES, cause_of
from rltools_host.drones.fitting.formats import GRAVITY_M_S2, ROTORS
from rltools_host.drones.fitting.log import (
    ACCELERATION,
    ANGULAR_VELOCITY,
    ATTITUDE,
    VELOCITY,
    FlightLog,
)
from rltools_host.drones.fitting.rows import SHORTEST_S, fresh_rows
from rltools_host.drones.fitting.sensors import check_agreement

SLOWEST_STEP_S = 0.0205  # 50 rows a second, with jitter
LONGEST_S = 600.0
LARGEST_RATE_RAD_S = 80.0  # gyroscopes: 2,000 or 4,000 deg/s
LARGEST_ACCELERATION_M_S2 = 320.0  # accelerometers: 16 or 32 g
LARGEST_SPEED_M_S = 100.0
UNIT_ERROR = 0.05
HELD_AT_LIMIT = 0.4  # the part of the rows in which a command may be 0 or 1
SLOWEST_ROTOR_RAD_S, FASTEST_ROTOR_RAD_S = 30.0, 10_000.0
SLOWEST_COMMANDS_HZ = 25.0
SMALLEST_COMMAND_CHANGE = 0.002  # standard deviation


def check_log(log: FlightLog) -> list[str]:
    """Raise DamagedFileError unless the log can be used; return notes on what could not be
    checked."""
    check_time(log)
    check_ranges(log)
    check_attitude(log)
    check_commands(log)
    check_rotor_speeds(log)
    check_changes(log)
    check_gravity(log)
    return check_agreement(log)


def check_time(log: FlightLog) -> None:
    steps = np.diff(log.time_s)
    if np.any(steps <= 0.0):
        row = int(np.argmax(steps <= 0.0)) + 1
        raise log.fault("it has no later time than the row before: write rows in their order", row)
    if log.step_s > SLOWEST_STEP_S:
        raise log.fault(
            f"its rows are {log.step_s:.4g} s apart: 0.02 s is the most, 0.004 s is good, as "
            "motors take 0.02 to 0.2 s (is time_s in milliseconds or microseconds?)"
        )
    if not SHORTEST_S <= log.duration_s <= LONGEST_S:
        raise log.fault(
            f"it lasts {log.duration_s:.3g} s: {SHORTEST_S:g} to {LONGEST_S:g} s in the air are "
            "needed, and 10 to 60 s are good"
        )


def check_ranges(log: FlightLog) -> None:
    """Refuse numbers that no sensor returns: they have other units."""
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
    if log.commands is None:
        return
    kind = "thrust" if log.commands_thrust else "speed"
    outside = np.any((log.commands < -1e-6) | (log.commands > 1.0 + 1e-6), axis=1)
    if np.any(outside):
        row = int(np.argmax(outside))
        value = log.commands[row, np.argmax(np.abs(log.commands[row] - 0.5))]
        raise log.fault(
            f"a command of {value:g} is not a fraction, {kind}_* are 0 to 1: scale the commands "
            "from 0, the least, to 1, the greatest (often 65535 or 100)",
            row,
        )


def check_rotor_speeds(log: FlightLog) -> None:
    """Check that measured speeds are those of rotors that turn."""
    if log.rotor_speeds is None:
        return
    negative = np.any(log.rotor_speeds < 0.0, axis=1)
    if np.any(negative):
        row = int(np.argmax(negative))
        raise log.fault(
            f"a rotor's measured speed is {log.rotor_speeds[row].min():.4g} rad/s: write it "
            "without the sign of its direction",
            row,
        )
    largest = log.largest_speed
    if not SLOWEST_ROTOR_RAD_S < largest < FASTEST_ROTOR_RAD_S:
        raise log.fault(
            f"its rotors turn with {largest:.4g} rad/s at most: rpm_* are mechanical turns a "
            "minute (eRPM over half the motor's poles), rad_s_* are rpm times 0.10472"
        )


def check_attitude(log: FlightLog) -> None:
    """Check the quaternions' length of 1."""
    lengths = np.linalg.norm(log.attitude, axis=1)
    if np.any(np.abs(lengths - 1.0) > UNIT_ERROR):
        row = int(np.argmax(np.abs(lengths - 1.0) > UNIT_ERROR))
        raise log.fault(
            f"the attitude's length is {lengths[row]:.3g} and not 1: write a unit quaternion, "
            "w x y z",
            row,
        )


def check_commands(log: FlightLog) -> None:
    if log.commands is None:
        return
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
    rate = len(fresh_rows(log.commands)) / log.duration_s
    if rate < SLOWEST_COMMANDS_HZ:
        raise log.fault(
            f"its commands change {rate:.0f} times a second and are held between: log them at the "
            "rate at which they are sent"
        )


def check_gravity(log: FlightLog) -> None:
    """Check that the accelerometer shows gravity along the body's z; sensors.py checks how much."""
    if log.acceleration is None:
        return
    length = float(np.linalg.norm(log.acceleration, axis=1).mean())
    means = log.acceleration.mean(axis=0)
    if not 3.0 < length < 3.0 * GRAVITY_M_S2:
        ratio = length / GRAVITY_M_S2
        raise log.fault(
            f"its accelerations are {length:.3g} m/s^2 long on average, {ratio:.3g} times "
            f"gravity's 9.81: {cause_of(ratio, ACCELERATION_CAUSES)}; gravity is to be in them"
        )
    axis = int(np.argmax(np.abs(means)))
    if axis != 2 and abs(means[axis]) > 0.5 * length:
        raise log.fault(
            f"{ACCELERATION[axis]} has gravity ({means[axis]:.1f} m/s^2 on average), and "
            f"{ACCELERATION[2]} has not: its axes are in another order; x forward, y left, z up"
        )
    if means[2] < -0.4 * length:
        raise log.fault(
            f"acceleration_z is {means[2]:.1f} m/s^2 on average: z is up and a body at rest "
            "measures +9.81; of a frame with z down change the signs of all y and z"
        )


def check_changes(log: FlightLog) -> None:
    """Check that each column changes."""
    rotors = [rotor.replace("_", " ") for rotor in ROTORS]
    for names, values, remedy in (
        (ATTITUDE, log.attitude, "write the measurements"),
        (ANGULAR_VELOCITY, log.angular_velocity, "write the measurements"),
        (ACCELERATION, log.acceleration, "write the measurements, or leave acceleration_* out"),
        (VELOCITY, log.velocity, "write the measurements, or leave velocity_* out"),
        ([f"the {rotor} rotor's command" for rotor in rotors], log.commands, "write those sent"),
        (
            [f"the {rotor} rotor's measured speed" for rotor in rotors],
            log.rotor_speeds,
            "write the measurements, or the commands alone",
        ),
    ):
        if values is None:
            continue
        for name, column in zip(names, values.T, strict=True):
            if np.ptp(column) == 0.0:
                raise log.fault(f"{name} is {column[0]:g} in all rows: {remedy}")
