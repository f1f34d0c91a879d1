"""What a vehicle did over time, what that amounts to, and what our simulator makes of its start.

A prediction has the same policy, from the same state. The policy is in the hands of what boards run
(policy/deployment.h), 500 times a second. What is not known of the beginning is as in hover: the
rotors turn at hover's speed, and the policy's past actions are those of its beginning. There is no
wind and no noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rltools_host.documents import NotNegative
from rltools_host.flight.disturbances import TICKS_A_S, Disturbances, DisturbedLink
from rltools_host.flight.gate import hover_rule
from rltools_host.flight.loop import HostPilot, fly
from rltools_host.flight.simulator import (
    ANGULAR_VELOCITY,
    ATTITUDE,
    POSITION,
    VELOCITY,
    Array,
    Flight,
    flight_library,
    settled_from,
)
from rltools_host.policies.image import PolicyImage

FloatArray = NDArray[np.float64]
# From a row of 13 observations on, rows (n, 13) at these times; fewer where a limit was broken.
Predict = Callable[[FloatArray, FloatArray], FloatArray]
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
    last_second_error_m: NotNegative  # the greatest
    greatest_error_m: NotNegative
    settling_s: NotNegative | None  # after that it stayed near; None: it did not


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


# -- a prediction ---------------------------------------------------------------------------------


def undisturbed(settings: Mapping[str, float]) -> dict[str, float]:
    """The settings with hover at the target as the beginning, and the contract's limits."""
    contract = flight_library().contract
    return {
        "start_share": 0.0,
        "limit_position": contract.observations[POSITION.start].maximum,
        "limit_velocity": contract.observations[VELOCITY.start].maximum,
        "limit_rate": contract.observations[ANGULAR_VELOCITY.start].maximum,
        **settings,
    }


def predictor(image: PolicyImage, settings: Mapping[str, float]) -> Predict:
    """With these settings of quadrotor/settings.h, which say what vehicle it is."""
    given = undisturbed(settings)
    flight_library().setting_bits(given)  # an error in a sentence, before anything flies

    def predict(first: FloatArray, times_s: FloatArray) -> FloatArray:
        ticks = max(math.ceil(float(times_s[-1]) * TICKS_A_S), 1)
        flight = Flight(0, 0, given)
        flight.place(first)
        link = DisturbedLink(Disturbances(), ticks)
        trace = fly(flight, HostPilot(image, in_trial=False), link, ticks)
        reached = rows_of(trace.states)
        at = np.rint(times_s * TICKS_A_S).astype(int)
        chosen: FloatArray = reached[at[at < len(reached)]]
        return chosen

    return predict


def rows_of(states: Array) -> FloatArray:
    """Records of Reading as rows of the contract's observations."""
    rows = np.empty((len(states), len(flight_library().contract.observations)))
    rows[:, POSITION] = states["position_m"] - states["target_position_m"].astype(float)
    rows[:, VELOCITY] = states["velocity_m_s"] - states["target_velocity_m_s"].astype(float)
    attitude = states["attitude"].astype(float)
    rows[:, ATTITUDE] = np.where(attitude[:, :1] < 0.0, -attitude, attitude)
    rows[:, ANGULAR_VELOCITY] = states["angular_velocity_rad_s"]
    return rows
