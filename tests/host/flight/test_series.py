"""What PX4 tells, in the contract's frames; and what a flight amounts to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rltools_host.flight.series import (
    HandBack,
    Moment,
    Series,
    angle_deg,
    limit_broken,
    measure,
    measure_hand_back,
)
from rltools_host.vehicles.px4_state import FloatArray, Sample, TargetFrame, enu_flu, yaw_of

ENU_OF_NED = np.array(((0, 1, 0), (1, 0, 0), (0, 0, -1.0)))
FLU_OF_FRD = np.diag((1.0, -1.0, -1.0))


def matrix(q: FloatArray) -> FloatArray:
    """Of a rotation, by its definition: v' = q v q*."""
    w, x, y, z = q
    columns = []
    for v in np.eye(3):
        t = 2.0 * np.cross((x, y, z), v)
        columns.append(v + w * t + np.cross((x, y, z), t))
    return np.array(columns).T


def rotations(count: int) -> FloatArray:
    values = np.random.default_rng(1).normal(size=(count, 4))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True))


def test_an_attitude_turns_the_body_into_the_world_in_both_pairs_of_frames() -> None:
    for q in rotations(200):
        np.testing.assert_allclose(
            matrix(enu_flu(q)), ENU_OF_NED @ matrix(q) @ FLU_OF_FRD, atol=1e-12
        )


def test_a_row_is_what_the_policy_sees() -> None:
    random = np.random.default_rng(2)
    for q in rotations(200):
        yaw = random.uniform(-4.0, 4.0)
        target, position, velocity, rates = random.normal(size=(4, 3))
        frame = TargetFrame(tuple(target), yaw)
        row = frame.row(Sample(1.0, tuple(position), tuple(velocity), tuple(q), tuple(rates)))
        cosine, sine = math.cos(yaw), math.sin(yaw)
        from_enu = np.array(((cosine, sine, 0), (-sine, cosine, 0), (0, 0, 1)))
        world = from_enu @ ENU_OF_NED
        np.testing.assert_allclose(row[:3], world @ (position - target), atol=1e-12)
        np.testing.assert_allclose(row[3:6], world @ velocity, atol=1e-12)
        np.testing.assert_allclose(matrix(row[6:10]), world @ matrix(q) @ FLU_OF_FRD, atol=1e-12)
        assert row[6] >= 0.0
        np.testing.assert_allclose(row[10:], FLU_OF_FRD @ rates)
        np.testing.assert_allclose(frame.world(frame.vector(velocity)), velocity, atol=1e-12)


def test_level_along_its_heading_is_no_rotation() -> None:
    for heading in np.arange(-3.0, 3.1, 0.3):
        q = (math.cos(heading / 2), 0.0, 0.0, math.sin(heading / 2))
        yaw = yaw_of(q)
        assert math.remainder(yaw - (math.pi / 2 - heading), 2 * math.pi) == pytest.approx(0)
        nowhere = (0.0, 0.0, 0.0)
        row = TargetFrame(nowhere, yaw).row(Sample(0.0, nowhere, nowhere, q, nowhere))
        np.testing.assert_allclose(row[6:10], (1, 0, 0, 0), atol=1e-12)


def flight(errors: FloatArray, end_s: float = 10.0) -> Series:
    rows = np.zeros((len(errors), 13))
    rows[:, 0], rows[:, 6] = errors, 1.0
    return Series(np.linspace(0.0, end_s, len(errors)), rows)


def test_what_settles_in_time_is_a_success() -> None:
    times = np.linspace(0.0, 10.0, 501)
    measures = measure(flight(1.0 - np.minimum(times, 5.0) / 5.0))
    assert measures.success
    assert measures.greatest_error_m == 1.0
    assert measures.settling_s == pytest.approx(4.0, abs=0.03)
    assert measures.last_second_error_m == 0.0


@pytest.mark.parametrize(
    ("until", "success"), [(8.98, True), (9.02, False), (9.98, False), (10.0, False)]
)
def test_the_last_second_counts_whole(until: float, success: bool) -> None:
    times = np.linspace(0.0, 10.0, 501)
    measures = measure(flight(np.where(times <= until + 1e-9, 0.21, 0.19)))
    assert measures.success is success
    assert (measures.settling_s is None) == (until == 10.0)


def test_what_ends_early_or_breaks_a_limit_is_none() -> None:
    assert not measure(flight(np.zeros(100), end_s=9.9)).success
    assert measure(flight(np.zeros(100))).success
    for column, value in ((1, 5.1), (4, -10.1), (11, 36.0), (3, math.nan), (0, math.inf)):
        series = flight(np.zeros(100))
        series.rows[10, column] = value
        assert not measure(series).success
        assert limit_broken(series.rows[10])
    assert limit_broken(np.array((5.0, -5.0, 0, 5, 5, 5, 1, 0, 0, 0, 35, -35, 0))) == ""


# -- what the stock controller makes of a vehicle that it has again --------------------------------

LEVEL = Sample(20.0, (1.0, 2.0, -5.0), (0.3, 0.0, 0.4), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def tilted(degrees: float) -> tuple[float, float, float, float]:
    half = math.radians(degrees) / 2
    return (math.cos(half), 0.0, math.sin(half), 0.0)


def moments(count: int = 51, **changes: Any) -> list[Moment]:
    """Every 20 ms; what is a function is of the seconds since the hand-back."""
    found = []
    for number in range(1, count):
        after_s = 0.02 * number
        at = {name: change(after_s) for name, change in changes.items()}
        thrust = at.pop("collective", 0.5)
        found.append(Moment(replace(LEVEL, time_s=LEVEL.time_s + after_s, **at), thrust))
    return found


def test_what_stays_as_it_is_is_bumpless() -> None:
    result = measure_hand_back(10.0, [Moment(LEVEL, 0.5)], moments())
    assert result == HandBack(10.0, 0.5, 0.0, 0.0, 0.0, 0.0)
    assert result.is_bumpless
    assert measure_hand_back(10.0, [Moment(LEVEL, 0.5)], []) is None


def test_the_motors_count_for_a_tenth_of_a_second() -> None:
    for begins, change in ((0.02, 0.2), (0.1, 0.2), (0.12, 0.0)):
        after = moments(collective=lambda t, at=begins: 0.5 if t < at - 1e-6 else 0.3)
        result = measure_hand_back(1.0, [Moment(LEVEL, 0.5)], after)
        assert result is not None
        assert result.thrust_change == pytest.approx(change)
        assert result.is_bumpless == (change == 0.0)


def test_what_is_told_just_before_counts_for_the_motors_too() -> None:
    """The mode is told a little later than it changes."""
    before = [Moment(LEVEL, 0.7), Moment(LEVEL, 0.5)]
    result = measure_hand_back(1.0, before, moments())
    assert result is not None
    assert result.thrust_change == pytest.approx(0.2)


def test_motors_that_are_not_told_are_not_judged() -> None:
    result = measure_hand_back(1.0, [Moment(LEVEL, None)], moments(collective=lambda _: None))
    assert result is not None
    assert result.thrust_change is None
    assert result.is_bumpless


def test_attitude_counts_for_half_a_second_and_the_place_for_one() -> None:
    after = moments(
        80,
        attitude=lambda t: tilted(3.0 if t < 0.51 else 40.0),
        position_ned=lambda t: (1.0 + 3.0 * t, 2.0 - 4.0 * t, -5.0 + (0.05 if t < 1.001 else 9.0)),
    )
    result = measure_hand_back(1.0, [Moment(LEVEL, 0.5)], after)
    assert result is not None
    assert result.attitude_deg == pytest.approx(3.0)
    assert result.height_m == pytest.approx(0.05)
    assert result.away_m == pytest.approx(5.0, abs=0.01)
    assert result.is_bumpless  # what flies on sideways is none


@pytest.mark.parametrize(
    "changes",
    [
        {"attitude": lambda _: tilted(5.2)},
        {"position_ned": lambda t: (1.0, 2.0, -5.0 + 0.11 * t)},
        {"position_ned": lambda t: (1.0, 2.0, -5.0 - 0.11 * t)},
    ],
)
def test_a_bump(changes: Any) -> None:
    result = measure_hand_back(1.0, [Moment(LEVEL, 0.5)], moments(**changes))
    assert result is not None
    assert not result.is_bumpless


def test_the_two_quaternions_of_an_attitude_are_one() -> None:
    q = tilted(30.0)
    other = replace(LEVEL, attitude=(-q[0], -q[1], -q[2], -q[3]))
    assert angle_deg(replace(LEVEL, attitude=q), other) == pytest.approx(0.0, abs=1e-5)
    assert angle_deg(LEVEL, other) == pytest.approx(30.0)


def test_what_is_not_a_number_is_left_out() -> None:
    lost = Moment(replace(LEVEL, time_s=20.1, position_ned=(math.nan, 0.0, 0.0)), 0.5)
    mute = Moment(replace(LEVEL, time_s=20.1, attitude=(0.0, 0.0, 0.0, 0.0)), 0.5)
    last = [Moment(LEVEL, 0.5)]
    assert measure_hand_back(1.0, last, [lost, mute]) is None
    assert measure_hand_back(1.0, [lost], moments()) is None
    result = measure_hand_back(1.0, last, [lost, *moments(), mute])
    assert result is not None
    assert result.is_bumpless
