"""What a vehicle does when the policy has given it back to the stock controller (docs/flight.md).

Told by telemetry: of the motors only their mean signal, which is the collective thrust where thrust
is proportional to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rltools_host.flight.px4_crash import is_sound
from rltools_host.flight.series import Sample

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

    @property
    def is_sound(self) -> bool:
        return is_sound(self.sample)


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


def measure(time_s: float, before: Sequence[Moment], after: Sequence[Moment]) -> HandBack | None:
    """`before`: the last moments of the policy's mode. None where nothing sound was told before
    or afterwards."""
    after = [moment for moment in after if moment.is_sound]
    if not after or not before[-1].is_sound:
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
