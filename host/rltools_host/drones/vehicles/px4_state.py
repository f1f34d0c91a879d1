"""The state that PX4 reports: its flight modes, and its motion, in its frames and the contract's.

A row has the 13 observations of policy/contracts/quadrotor.h, in their order: position error,
velocity error, attitude (w, x, y, z), angular velocity. Its frames are those of that contract;
PX4's frames (north, east, down; forward, right, down) are converted here as in
lib/rltools/include/rltools/policy/vehicles/quadrotor.h.

PX4's simulator in hardware (SIH) becomes settings of ours by the parameters that the vehicle has:
src/modules/simulation/simulator_sih of github.com/PX4/PX4-Autopilot. Its rotors' lag goes on only
in those of its steps that see a new output, and the policy gives 500 a second: at 1,000 steps a
second each counts for half.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rltools_host.drones.flight.disturbances import TICKS_A_S
from rltools_host.drones.flight.result import FloatArray as FloatArray
from rltools_host.drones.flight.simulator import flight_library


class Mode(NamedTuple):
    """PX4's main and sub mode: bits 16 to 23 and 24 to 31 of HEARTBEAT.custom_mode."""

    main: int
    sub: int = 0

    @classmethod
    def of(cls, custom_mode: int) -> Mode:
        return cls(custom_mode >> 16 & 0xFF, custom_mode >> 24 & 0xFF)

    @property
    def is_piloted(self) -> bool:
        """Return whether a pilot's sticks fly it: nobody else may then."""
        return self.main in PILOTED

    def __str__(self) -> str:
        return NAMES.get(self, f"{self.main}.{self.sub}")


AUTO = 4
TAKE_OFF, HOLD, RETURN, LAND = (Mode(AUTO, sub) for sub in (2, 3, 5, 6))
OFFBOARD, TERMINATION = Mode(6), Mode(10)
DESCEND = Mode(AUTO, 20)  # PX4's own, where it does not know where it is
# Manual, Altitude, Position with its kinds, Acro, Stabilized, Altitude cruise
PILOTED = (1, 2, 3, 5, 7, 11)
NAMES = {
    Mode(1): "Manual",
    Mode(2): "Altitude",
    Mode(3): "Position",
    Mode(AUTO, 1): "Ready",
    TAKE_OFF: "Takeoff",
    HOLD: "Hold",
    Mode(AUTO, 4): "Mission",
    RETURN: "Return",
    LAND: "Land",
    Mode(AUTO, 9): "Precision land",
    DESCEND: "Descend",
    **{Mode(AUTO, 10 + number): f"External {number}" for number in range(1, 9)},
    Mode(5): "Acro",
    OFFBOARD: "Offboard",
    Mode(7): "Stabilized",
    TERMINATION: "Termination",
    Mode(11): "Altitude cruise",
}


@dataclass(frozen=True)
class GlobalPosition:
    latitude_1e7: int
    longitude_1e7: int
    altitude_m: float  # above mean sea level


@dataclass(frozen=True)
class Sample:
    """The motion that PX4 reported at one moment, in its frames."""

    time_s: float  # since it started
    position_ned: tuple[float, float, float]
    velocity_ned: tuple[float, float, float]
    attitude: tuple[float, float, float, float]  # turns forward-right-down into north-east-down
    rates_frd: tuple[float, float, float]

    @property
    def speed(self) -> float:
        return math.hypot(*self.velocity_ned)

    @property
    def is_sound(self) -> bool:
        """Return whether all that is judged is a number, and the attitude a rotation."""
        values = (*self.position_ned, *self.velocity_ned, *self.attitude)
        return all(map(math.isfinite, values)) and any(self.attitude)

    @property
    def tilt_deg(self) -> float:
        """Return the angle between the vehicle's up and the world's."""
        w, x, y, z = self.attitude
        up = 1.0 - 2.0 * (x * x + y * y) / (w * w + x * x + y * y + z * z)
        return math.degrees(math.acos(min(max(up, -1.0), 1.0)))

    def distance(self, position_ned: ArrayLike) -> float:
        return float(np.linalg.norm(np.subtract(self.position_ned, position_ned)))


@dataclass(frozen=True)
class TargetFrame:
    """The frame of the policy's target: its position, and the heading of its x."""

    position_ned: tuple[float, float, float]
    yaw: float  # of x, anti-clockwise from east, rad

    def row(self, sample: Sample) -> FloatArray:
        error = np.subtract(sample.position_ned, self.position_ned)
        attitude = turned_attitude(enu_flu(sample.attitude), self.yaw)
        forward, right, down = sample.rates_frd
        rates = (forward, -right, -down)
        parts = (self.vector(error), self.vector(sample.velocity_ned), attitude, rates)
        return np.concatenate(parts).astype(np.float64)

    def vector(self, ned: ArrayLike) -> FloatArray:
        """Return a vector of the world in this frame."""
        x, y, z = enu(ned)
        cosine, sine = math.cos(self.yaw), math.sin(self.yaw)
        return np.array((cosine * x + sine * y, cosine * y - sine * x, z))

    def world(self, vector: ArrayLike) -> FloatArray:
        """Return a vector of this frame as north, east, down."""
        x, y, z = np.asarray(vector, np.float64)
        cosine, sine = math.cos(self.yaw), math.sin(self.yaw)
        east, north = cosine * x - sine * y, sine * x + cosine * y
        return np.array((north, east, -z))


def enu(ned: ArrayLike) -> FloatArray:
    north, east, down = np.asarray(ned, np.float64)
    return np.array((east, north, -down))


def enu_flu(attitude: ArrayLike) -> FloatArray:
    """Return the rotation of PX4's frames as that of the contract's (quadrotor.h derives it)."""
    w, x, y, z = np.asarray(attitude, np.float64)
    return np.array((w + z, x + y, x - y, w - z)) * math.sqrt(0.5)


def turned_attitude(attitude: FloatArray, yaw: float) -> FloatArray:
    """Return the attitude in a world whose x points along `yaw`; w is never negative."""
    w, x, y, z = attitude
    c, s = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    turned = np.array((c * w + s * z, c * x + s * y, c * y - s * x, c * z - s * w))
    return -turned if turned[0] < 0.0 else turned


def yaw_of(attitude: ArrayLike) -> float:
    """Return the heading of PX4's attitude, as an angle anti-clockwise from east."""
    w, x, y, z = enu_flu(attitude)
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


# -- PX4's simulator as settings -------------------------------------------------------------------

SIH_TABLE = "px4-sih"  # of quadrotor/airframe.h: SIH with the parameters that it has at first
# Of a parameter: the settings of quadrotor/settings.h that it is, and one of its unit in theirs.
SIH_SETTINGS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "SIH_MASS": (("mass_kg",), 1.0),
    "SIH_IXX": (("inertia_x",), 1e6),
    "SIH_IYY": (("inertia_y",), 1e6),
    "SIH_IZZ": (("inertia_z",), 1e6),
    "SIH_L_PITCH": (("rotor_x_m",), 1.0),
    "SIH_L_ROLL": (("rotor_y_m",), 1.0),
    "SIH_T_MAX": (("thrust_1",), 1.0),
    "SIH_Q_MAX": (("torque_1",), 1e3),
    "SIH_T_TAU": (("lag_up_s", "lag_down_s"), 1.0),
    "SIH_KDV": (("drag_x", "drag_y", "drag_z"), 1.0),
    "SIH_KDW": (("drag_rotation",), 1e3),
}
SIH_RATE = "IMU_GYRO_RATEMAX"  # of its steps, Hz
SIH_PARAMETERS = (*SIH_SETTINGS, SIH_RATE)
THRUST_MODEL = "THR_MDL_FAC"  # of any vehicle: what PX4 makes of a thrust, on its way to a motor
SIH_NOT_THERE = ("thrust_0", "thrust_2", "torque_0", "torque_2", "sag_load", "sag_per_min")


def settings_of_sih(parameters: Mapping[str, float]) -> dict[str, float]:
    """Return the settings of the vehicle with these parameters; the published vehicle where one is
    missing."""
    if any(name not in parameters for name in SIH_PARAMETERS):
        return {"airframe": float(flight_library().tables.index(SIH_TABLE) + 1)}
    settings = {"airframe": 0.0, **dict.fromkeys(SIH_NOT_THERE, 0.0)}
    for parameter, (names, factor) in SIH_SETTINGS.items():
        for name in names:
            settings[name] = parameters[parameter] * factor
    steps_an_output = max(parameters[SIH_RATE] / TICKS_A_S, 1.0)
    for name in ("lag_up_s", "lag_down_s"):
        settings[name] *= steps_an_output
    return settings


def motor_signals(thrusts: ArrayLike, factor: float) -> FloatArray:
    """Return what PX4 gives motors for these parts of their greatest thrust: the signal u of
    `factor` u^2 + (1 - `factor`) u, in [0, 1] (its FunctionMotors.hpp)."""
    wanted = np.asarray(thrusts, np.float64)
    if not 0.0 < factor <= 1.0:  # PX4 takes others for none
        return wanted
    linear = 1.0 - factor
    root = np.sqrt(linear * linear + 4.0 * factor * np.maximum(wanted, 0.0))
    signals: FloatArray = (root - linear) / (2.0 * factor)
    return signals
