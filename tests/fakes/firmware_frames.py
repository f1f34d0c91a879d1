"""What two firmwares' estimators say of a state of the simulator, and where their motors are.

By their documentation, with rotation matrices in double precision: nothing here comes from the
converters that ship.

Crazyflie: docs/functional-areas and stabilizer_types.h of bitcraze/crazyflie-firmware. World: z up,
yaw from x to the left; body: x forward, y left, z up; gyroscope in degrees a second.
PX4: the messages VehicleLocalPosition, VehicleAttitude, VehicleAngularVelocity, and the parameters
CA_ROTORn_*. World: north, east, down; body: forward, right, down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Floats = NDArray[np.float32]

# -- rotations -------------------------------------------------------------------------------------


def rotation(q: Any) -> Array:
    """The matrix of (w, x, y, z), by axis and angle (Rodrigues)."""
    w, x, y, z = (float(value) for value in q)
    length = math.sqrt(x * x + y * y + z * z)
    if length == 0.0:
        return np.eye(3)
    angle = 2.0 * math.atan2(length, w)
    x, y, z = x / length, y / length, z / length
    c, s = math.cos(angle), math.sin(angle)
    n = 1.0 - c
    return np.array(
        [
            [c + n * x * x, n * x * y - s * z, n * x * z + s * y],
            [n * y * x + s * z, c + n * y * y, n * y * z - s * x],
            [n * z * x - s * y, n * z * y + s * x, c + n * z * z],
        ]
    )


def quaternion(r: Array) -> Array:
    """(w, x, y, z) of a matrix, one of the two. Sums and differences of its elements are four times
    the products of two components; those with the greatest component are taken."""
    (a, b, c), (d, e, f), (g, h, i) = r.tolist()
    squares = (1 + a + e + i, 1 + a - e - i, 1 - a + e - i, 1 - a - e + i)  # of 2w, 2x, 2y, 2z
    products = (
        (squares[0], h - f, c - g, d - b),
        (h - f, squares[1], b + d, c + g),
        (c - g, b + d, squares[2], f + h),
        (d - b, c + g, f + h, squares[3]),
    )
    row = products[max(range(4), key=squares.__getitem__)]
    return np.array(row) / math.sqrt(sum(value * value for value in row))


# -- states ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """As the simulator has it: in the frame of the target, x where it looks, y left, z up."""

    position: Any  # from the target, m
    velocity: Any
    attitude: Any  # (w, x, y, z), turns body (forward, left, up) into that frame
    rates: Any  # about the body's axes, rad/s
    target_velocity: Any = (0.0, 0.0, 0.0)

    @classmethod
    def of(cls, reading: Any) -> State:
        """Of a record of drones/flight/simulator.py."""
        position = reading["position_m"].astype(float) - reading["target_position_m"]
        return cls(
            position,
            reading["velocity_m_s"],
            reading["attitude"],
            reading["angular_velocity_rad_s"],
            reading["target_velocity_m_s"],
        )


AT_TARGET = State((0, 0, 0), (0, 0, 0), (1, 0, 0, 0), (0.01, 0.02, 0.03))


@dataclass(frozen=True)
class Target:
    """In the firmware's world: its position, and where it looks, in the firmware's sense."""

    position: tuple[float, float, float]
    yaw_rad: float


def crazyflie_measured(state: State, target: Target) -> Floats:
    """Struct Measured of crazyflie_flight.c."""
    cosine, sine = np.cos(target.yaw_rad), np.sin(target.yaw_rad)
    to_world = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    w, x, y, z = quaternion(to_world @ rotation(state.attitude))
    parts = (
        np.degrees(np.asarray(state.rates, float)),
        (x, y, z, w),
        target.position + to_world @ np.asarray(state.position, float),
        to_world @ np.asarray(state.velocity, float),
        target.position,
        to_world @ np.asarray(state.target_velocity, float),
        [np.degrees(target.yaw_rad)],
    )
    return np.concatenate(parts).astype(np.float32)


def px4_measured(state: State, target: Target) -> Floats:
    """Struct Measured of px4_flight.cpp."""
    cosine, sine = np.cos(target.yaw_rad), np.sin(target.yaw_rad)
    # Columns: where the target looks, to the left of it, and up, in north, east, down.
    to_world = np.array([[cosine, sine, 0.0], [sine, -cosine, 0.0], [0.0, 0.0, -1.0]])
    frd_of_flu = np.diag([1.0, -1.0, -1.0])
    attitude = to_world @ rotation(state.attitude) @ frd_of_flu  # its transpose is itself
    parts = (
        frd_of_flu @ np.asarray(state.rates, float),
        quaternion(attitude),
        target.position + to_world @ np.asarray(state.position, float),
        to_world @ np.asarray(state.velocity, float),
        [np.arctan2(attitude[1, 0], attitude[0, 0])],
    )
    return np.concatenate(parts).astype(np.float32)


# -- motors ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Motor:
    """Where it is, in signs, and which way its rotor turns, seen from above."""

    forward: float
    left: float
    counter_clockwise: float  # 1, or -1: clockwise


# M1 front right, M2 rear right, M3 rear left, M4 front left; M1 and M3 counter-clockwise.
CRAZYFLIE_MOTORS = (Motor(1, -1, 1), Motor(-1, -1, -1), Motor(-1, 1, 1), Motor(1, 1, -1))
# CA_ROTORn_PX (forward), _PY (right) and _KM (positive: counter-clockwise) of the airframe 4001,
# "Generic Quadcopter", in its order; KM of the first two is the parameter's default.
PX4_ROTORS = ((1.0, 1.0, 0.05), (-1.0, -1.0, 0.05), (1.0, -1.0, -0.05), (-1.0, 1.0, -0.05))
# As the simulator numbers them (quadrotor/airframe.h).
SIMULATED_ROTORS = (Motor(1, -1, 1), Motor(-1, -1, -1), Motor(-1, 1, 1), Motor(1, 1, -1))


def px4_motors(rotors: Any) -> tuple[Motor, ...]:
    return tuple(Motor(np.sign(px), -np.sign(py), np.sign(km)) for px, py, km in rotors)


def simulated_thrusts(motors: tuple[Motor, ...], thrusts: Any) -> Floats:
    """Thrusts of the simulator's rotors, of a vehicle whose motors are there."""
    return np.array([thrusts[motors.index(rotor)] for rotor in SIMULATED_ROTORS], np.float32)


def wrench(motors: tuple[Motor, ...], thrusts_n: Any, x_m: float, y_m: float, km: float) -> Array:
    """Lift, and torque about the body's x, y and z (forward, left, up), by the cross product of
    arm and thrust and by the rotors' reaction, which turns the body against them."""
    total = np.zeros(4)
    for motor, thrust_n in zip(motors, thrusts_n, strict=True):
        arm = np.array([motor.forward * x_m, motor.left * y_m, 0.0])
        force = np.array([0.0, 0.0, float(thrust_n)])
        torque = np.cross(arm, force) - [0.0, 0.0, motor.counter_clockwise * km * thrust_n]
        total += [force[2], *torque]
    return total
