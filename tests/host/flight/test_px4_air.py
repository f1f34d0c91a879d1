"""What shows that a vehicle crashed: at the limits, and with what is no number."""

from __future__ import annotations

import math

import pytest

from rltools_host.flight.px4_air import CrashWatch
from rltools_host.vehicles.px4_state import Sample

LEVEL = (1.0, 0.0, 0.0, 0.0)
NAN = math.nan


def sample(
    height_m: float, down_m_s: float = 0.0, tilt_deg: float = 0.0, yaw_deg: float = 0.0
) -> Sample:
    """Tilted about its nose, then turned about the vertical."""
    roll, yaw = (math.radians(0.5 * angle) for angle in (tilt_deg, yaw_deg))
    attitude = (
        math.cos(yaw) * math.cos(roll),
        math.cos(yaw) * math.sin(roll),
        math.sin(yaw) * math.sin(roll),
        math.sin(yaw) * math.cos(roll),
    )
    return Sample(1.0, (3.0, -2.0, 0.5 - height_m), (0.0, 0.0, down_m_s), attitude, (0, 0, 0))


def watch(*samples: Sample) -> CrashWatch:
    crash = CrashWatch(sample(0.0))
    for each in samples:
        crash.take(each)
    return crash


@pytest.mark.parametrize("yaw_deg", [0.0, 100.0, -170.0])
def test_a_vehicle_that_tips_over(yaw_deg: float) -> None:
    assert watch(sample(3.0, tilt_deg=89.0, yaw_deg=yaw_deg)).found == ""
    crash = watch(sample(3.0, tilt_deg=-91.0, yaw_deg=yaw_deg), sample(0.1, 9.0))
    assert crash.found == "it tipped over, 3.0 m above the ground"  # the first sign


def test_a_hard_touchdown() -> None:
    flown = sample(2.0)
    assert watch(flown, sample(0.5, 2.4)).found == ""
    assert watch(flown, sample(0.7, 9.0)).found == ""
    assert watch(flown, sample(0.5, 2.6)).found == "it hit the ground at 2.6 m/s"
    assert watch(sample(1.0), sample(0.5, 2.6)).found == ""  # it has not flown


def test_how_it_lies() -> None:
    for tilt_deg, found in ((29.0, ""), (31.0, "it lies on the ground, tilted by 31°")):
        crash = watch(sample(2.0), sample(0.0, tilt_deg=tilt_deg))
        assert crash.found == ""
        crash.judge_rest()
        assert crash.found == found


def test_where_it_lies() -> None:
    there = Sample(1.0, (6.0, 2.0, 0.5), (0, 0, 0), LEVEL, (0, 0, 0))
    assert watch(there).away_m == pytest.approx(5.0)
    assert watch(there).height_m == 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        Sample(1.0, (0.0, 0.0, NAN), (0, 0, 0), LEVEL, (0, 0, 0)),
        Sample(1.0, (0.0, 0.0, 0.0), (0, 0, NAN), LEVEL, (0, 0, 0)),
        Sample(1.0, (0.0, 0.0, 0.0), (0, 0, 0), (0, 0, 0, 0), (0, 0, 0)),
    ],
)
def test_what_is_no_number_is_not_judged(wrong: Sample) -> None:
    crash = watch(sample(2.0), wrong)
    assert (crash.found, crash.height_m) == ("", 2.0)
