"""What a vehicle did over time, as the contract of quadrotors sees it, and what it amounts to.

A row has the 13 observations of policy/contracts/quadrotor.h, in their order: position error,
velocity error, attitude (w, x, y, z), angular velocity. Its frames are those of that contract; what
PX4 tells (north, east, down; forward, right, down) becomes that here, as in
lib/rltools/include/rltools/policy/vehicles/quadrotor.h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rltools_host.flight.gate import hover_rule
from rltools_host.flight.outcome import settled_from
from rltools_host.flight.simulator import ANGULAR_VELOCITY, POSITION, VELOCITY, flight_library

FloatArray = NDArray[np.float64]

# What the contract bounds, by the observations that say it.
BOUNDED = (
    ("position error", POSITION),
    ("velocity", VELOCITY),
    ("angular velocity", ANGULAR_VELOCITY),
)


@dataclass(frozen=True)
class Sample:
    """What PX4 told of one moment, in its frames."""

    time_s: float  # since it started
    position_ned: tuple[float, float, float]
    velocity_ned: tuple[float, float, float]
    attitude: tuple[float, float, float, float]  # turns forward-right-down into north-east-down
    rates_frd: tuple[float, float, float]

    @property
    def speed(self) -> float:
        return math.hypot(*self.velocity_ned)

    def distance(self, position_ned: ArrayLike) -> float:
        return float(np.linalg.norm(np.subtract(self.position_ned, position_ned)))


@dataclass(frozen=True)
class TargetFrame:
    """Where the policy is to be, and which way its x points."""

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
        """A vector of the world, in this frame."""
        x, y, z = enu(ned)
        cosine, sine = math.cos(self.yaw), math.sin(self.yaw)
        return np.array((cosine * x + sine * y, cosine * y - sine * x, z))

    def world(self, vector: ArrayLike) -> FloatArray:
        """A vector of this frame, as north, east, down."""
        x, y, z = np.asarray(vector, np.float64)
        cosine, sine = math.cos(self.yaw), math.sin(self.yaw)
        east, north = cosine * x - sine * y, sine * x + cosine * y
        return np.array((north, east, -z))


def enu(ned: ArrayLike) -> FloatArray:
    north, east, down = np.asarray(ned, np.float64)
    return np.array((east, north, -down))


def enu_flu(attitude: ArrayLike) -> FloatArray:
    """The rotation of PX4's frames as that of the contract's (quadrotor.h derives it)."""
    w, x, y, z = np.asarray(attitude, np.float64)
    return np.array((w + z, x + y, x - y, w - z)) * math.sqrt(0.5)


def turned_attitude(attitude: FloatArray, yaw: float) -> FloatArray:
    """In a world whose x points along `yaw`; w is never negative."""
    w, x, y, z = attitude
    c, s = math.cos(0.5 * yaw), math.sin(0.5 * yaw)
    turned = np.array((c * w + s * z, c * x + s * y, c * y - s * x, c * z - s * w))
    return -turned if turned[0] < 0.0 else turned


def yaw_of(attitude: ArrayLike) -> float:
    """The heading of PX4's attitude, as an angle anti-clockwise from east."""
    w, x, y, z = enu_flu(attitude)
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


@dataclass(frozen=True)
class Series:
    """Rows over time; time 0 is when the policy took over."""

    times_s: FloatArray  # (n,)
    rows: FloatArray  # (n, 13)

    @property
    def errors_m(self) -> FloatArray:
        errors: FloatArray = np.linalg.norm(self.rows[:, POSITION], axis=1)
        return errors

    def document(self) -> dict[str, object]:
        return {
            "time_s": np.round(self.times_s, 4).tolist(),
            "rows": np.round(self.rows, 6).tolist(),
        }


@dataclass(frozen=True)
class Measures:
    """What the gate asks of a flight, and what people ask of it."""

    success: bool
    last_second_error_m: float  # the greatest
    greatest_error_m: float
    settling_s: float | None  # after that it stayed near; None: it did not


def limit_broken(row: FloatArray) -> str:
    """The first of the contract's limits that a row breaks, in words; empty where none."""
    for what, part in BOUNDED:
        values = row[part]
        if not np.isfinite(values).all():
            return f"its {what} is not a number"
        channel = flight_library().contract.observations[part.start]
        most, unit = channel.maximum, channel.unit
        if (worst := float(np.abs(values).max())) > most:
            return f"its {what} was {worst:.2g} {unit}, beyond {most:g} {unit}"
    return ""


def measure(series: Series) -> Measures:
    """Of a whole flight, by the rule of the gate hover."""
    rule = hover_rule()
    errors, times = series.errors_m, series.times_s
    last = errors[times >= times[-1] - rule.last_seconds]
    settled = settled_from(errors, rule.radius_m)
    is_whole = times[-1] >= rule.seconds
    broken = any(limit_broken(row) for row in series.rows)
    return Measures(
        success=bool(is_whole and not broken and (last <= rule.radius_m).all()),
        last_second_error_m=float(last.max()),
        greatest_error_m=float(errors.max()),
        settling_s=None if settled is None else float(times[settled]) if settled else 0.0,
    )
