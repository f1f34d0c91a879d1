"""Whether a vehicle came down as it was to, or crashed: judged by what it tells of itself."""

from __future__ import annotations

import math

from rltools_host.flight.series import Sample

MOST_TILT_DEG = 90.0  # in the air: beyond it the rotors push downwards
LYING_DEG = 30.0  # at rest
# PX4 comes down at 1.5 m/s at most near the ground (MPC_Z_VEL_MAX_DN), at 0.7 m/s in Land.
MOST_TOUCHDOWN_M_S = 2.5
NEAR_GROUND_M, FLOWN_M = 0.6, 1.5


class CrashWatch:
    """Looks at each sample from the ground before the take-off to the ground after the landing."""

    def __init__(self, ground: Sample) -> None:
        self.found = ""  # the first sign, as a clause
        self._ground = ground
        self._highest_m = 0.0
        self._last = ground

    def take(self, sample: Sample) -> None:
        if not is_sound(sample):
            return
        self._last = sample
        height, speed = self.height_m, sample.velocity_ned[2]
        self._highest_m = max(self._highest_m, height)
        if self.found:
            return
        if self.tilt_deg > MOST_TILT_DEG:
            self.found = f"it tipped over, {height:.1f} m above the ground"
        elif self._highest_m > FLOWN_M and height < NEAR_GROUND_M and speed > MOST_TOUCHDOWN_M_S:
            self.found = f"it hit the ground at {speed:.1f} m/s"

    def note(self, sign: str) -> None:
        """What is known otherwise; the first sign stays."""
        self.found = self.found or sign

    def judge_rest(self) -> None:
        """When it has come down."""
        if self.tilt_deg > LYING_DEG:
            self.note(f"it lies on the ground, tilted by {self.tilt_deg:.0f}°")

    @property
    def height_m(self) -> float:
        """Above the place of the take-off, as it was told last."""
        return self._ground.position_ned[2] - self._last.position_ned[2]

    @property
    def tilt_deg(self) -> float:
        """Between the vehicle's up and the world's, as it was told last."""
        return tilt_deg(self._last)

    @property
    def away_m(self) -> float:
        """Along the ground, from the place of the take-off."""
        north, east, _ = (
            now - then
            for now, then in zip(self._last.position_ned, self._ground.position_ned, strict=True)
        )
        return math.hypot(north, east)


def is_sound(sample: Sample) -> bool:
    """Whether all that is judged is a number, and the attitude a rotation."""
    values = (*sample.position_ned, *sample.velocity_ned, *sample.attitude)
    return all(map(math.isfinite, values)) and any(sample.attitude)


def tilt_deg(sample: Sample) -> float:
    w, x, y, z = sample.attitude
    up = 1.0 - 2.0 * (x * x + y * y) / (w * w + x * x + y * y + z * z)
    return math.degrees(math.acos(min(max(up, -1.0), 1.0)))
