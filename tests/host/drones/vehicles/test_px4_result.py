"""What the stock controller makes of a vehicle that it has again."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rltools_host.documents import Unfit
from rltools_host.drones.vehicles.px4_result import (
    Moment,
    StoredSeries,
    angle_deg,
    measure_hand_back,
)
from rltools_host.drones.vehicles.px4_state import Sample

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


def test_a_stored_series_is_rows_with_their_times() -> None:
    row: list[float | None] = [*[1.0] * 12, None]
    read = StoredSeries([0.0], [row]).read()
    np.testing.assert_array_equal(read.rows, [[*[1.0] * 12, math.nan]])
    for wrong in (StoredSeries([], []), StoredSeries([0.0], [row, row]), StoredSeries([0], [[0]])):
        with pytest.raises(Unfit, match="a series is not rows of 13 numbers"):
            wrong.read()
