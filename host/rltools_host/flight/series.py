"""What a vehicle did over time and what that amounts to, also when it was given back.

A hand-back is what a vehicle does when the policy has given it back to the stock controller
(docs/flight.md). It is told by telemetry: of the motors only their mean signal, which is the
collective thrust where thrust is proportional to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rltools_host.flight.gate import hover_rule
from rltools_host.flight.simulator import (
    ANGULAR_VELOCITY,
    POSITION,
    VELOCITY,
    flight_library,
    settled_from,
)
from rltools_host.vehicles.px4_state import FloatArray, Sample

# What the contract bounds, by the observations that say it.
BOUNDED = (
    ("position error", POSITION),
    ("velocity", VELOCITY),
    ("angular velocity", ANGULAR_VELOCITY),
)


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


# -- a hand-back -----------------------------------------------------------------------------------

LOOK_S, ATTITUDE_S, THRUST_S = 1.0, 0.5, 0.1  # after the hand-back
MOMENTS_BEFORE = 3  # the mode is told a little later than it changes
ROUNDING_S = 1e-6
# Up to which it is bumpless.
MOST_THRUST, MOST_ATTITUDE_DEG, MOST_HEIGHT_M = 0.1, 5.0, 0.1


@dataclass(frozen=True)
class Moment:
    """What was told, and the motors' mean signal in [0, 1]; None: not told."""

    sample: Sample
    collective: float | None


@dataclass(frozen=True)
class HandBack:
    """From the last moment of the policy's mode on."""

    time_s: float  # since the policy took over
    speed_m_s: float  # at that moment
    thrust_change: float | None  # between two tellings, the greatest by 0.1 s after
    attitude_deg: float  # the greatest rotation within 0.5 s
    height_m: float  # the greatest change within 1 s
    away_m: float  # ... of the place on the ground

    @property
    def is_bumpless(self) -> bool:
        return (
            (self.thrust_change is None or self.thrust_change <= MOST_THRUST)
            and self.attitude_deg <= MOST_ATTITUDE_DEG
            and self.height_m <= MOST_HEIGHT_M
        )

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "is_bumpless": self.is_bumpless}


def measure_hand_back(
    time_s: float, before: Sequence[Moment], after: Sequence[Moment]
) -> HandBack | None:
    """`before`: the last moments of the policy's mode. None where nothing sound was told before
    or afterwards."""
    after = [moment for moment in after if moment.sample.is_sound]
    if not after or not before[-1].sample.is_sound:
        return None
    begin = before[-1].sample

    def within(limit_s: float) -> list[Moment]:
        end_s = begin.time_s + limit_s + ROUNDING_S
        return [moment for moment in after if moment.sample.time_s <= end_s]

    told = [
        moment.collective
        for moment in (*before, *within(THRUST_S))
        if moment.collective is not None
    ]
    moved = [
        np.subtract(moment.sample.position_ned, begin.position_ned) for moment in within(LOOK_S)
    ]
    return HandBack(
        time_s,
        begin.speed,
        float(np.abs(np.diff(told)).max()) if len(told) > 1 else None,
        max((angle_deg(begin, moment.sample) for moment in within(ATTITUDE_S)), default=0.0),
        max((abs(float(down)) for _, _, down in moved), default=0.0),
        max((math.hypot(north, east) for north, east, _ in moved), default=0.0),
    )


def angle_deg(first: Sample, second: Sample) -> float:
    """Of the rotation from one attitude to the other."""
    a, b = np.array(first.attitude), np.array(second.attitude)
    cosine = abs(float(a @ b)) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return math.degrees(2.0 * math.acos(min(cosine, 1.0)))
