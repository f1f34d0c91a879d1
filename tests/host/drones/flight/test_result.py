"""What a flight amounts to; what our simulator makes of a start: from the same state, with the same
policy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from quadrotor_policies import constant_policy, controller, recurrent_controller
from rltools_host.drones.flight.disturbances import Disturbances, DisturbedLink
from rltools_host.drones.flight.loop import HostPilot, fly
from rltools_host.drones.flight.result import (
    FloatArray,
    Series,
    limit_broken,
    measure,
    predictor,
    rows_of,
)
from rltools_host.drones.flight.simulator import POSITION, Flight
from rltools_host.errors import UsageError
from rltools_host.policies.image import parse_policy


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


# -- a prediction ---------------------------------------------------------------------------------

L2F = {"airframe": 1.0}
TIMES = np.arange(0.0, 10.02, 0.02)
LEVEL = np.array((0.5, -0.3, 0.2, *(0, 0, 0), *(1, 0, 0, 0), *(0, 0, 0)), float)


def falls(first: Any, settings: Any = L2F) -> Any:
    """Rows of a flight without thrust."""
    return predictor(parse_policy(constant_policy(0, 0, 0, 0)), settings)(first, TIMES)


def test_a_controller_comes_to_its_target_from_where_the_flight_began() -> None:
    rows = predictor(parse_policy(controller()), L2F)(LEVEL, TIMES)
    np.testing.assert_allclose(rows[0], LEVEL, atol=1e-6)
    assert rows.shape == (len(TIMES), 13)
    measures = measure(Series(TIMES, rows))
    assert measures.success
    assert measures.greatest_error_m == pytest.approx(np.linalg.norm(LEVEL[POSITION]), abs=0.02)
    assert measures.settling_s is not None
    assert measures.settling_s > 0.3


def test_every_part_of_the_beginning_counts() -> None:
    """What falls for a tenth of a second says how it began."""
    first = np.array((0.5, -0.3, 0.2, 1, -2, 3, 0.8, 0.0, 0.6, 0.0, 0.5, -1, 2), float)
    drag_free = {**L2F, "lag_up_s": 0.0}
    rows = falls(first, drag_free)
    np.testing.assert_allclose(rows[0], first, atol=1e-6)
    later = rows[5]
    np.testing.assert_allclose(later[:2], first[:2] + 0.1 * first[3:5], atol=0.06)
    assert later[10] == pytest.approx(0.6, abs=0.05)  # its gyroscopic part, 1.1 rad/s^2
    assert later[12] == pytest.approx(2.0, abs=0.1)


def test_the_rotors_turn_as_in_hover() -> None:
    """So that a hand-over at rest stays at rest, and what falls does not fall at once."""
    hover = parse_policy(constant_policy(*[0.44493] * 4))
    rest = np.where(np.arange(13) == 6, 1.0, 0.0)
    rows = predictor(hover, L2F)(rest, TIMES[:50])
    assert np.abs(rows[:, POSITION]).max() < 0.001
    assert falls(rest)[1][5] > -0.1  # of 0.2 m/s at once


def test_it_ends_where_a_limit_of_the_contract_is_broken() -> None:
    rows = falls(LEVEL)
    assert 0 < len(rows) < 0.3 * len(TIMES)
    assert not limit_broken(rows[-2])
    assert rows[-1][2] < -2.0  # farther than training's limits


def test_an_attitude_is_the_one_of_the_two_with_w_above_zero() -> None:
    spin = LEVEL.copy()
    spin[12] = 20.0
    rows = falls(spin)
    assert (rows[:, 6] >= 0.0).all()
    assert np.ptp(rows[:, 9]) > 1.5


@pytest.mark.parametrize("policy", [controller, recurrent_controller])
def test_it_is_the_flight_of_boards(policy: Callable[[], bytes]) -> None:
    image = parse_policy(policy())
    flight = Flight(0, 0, {**L2F, "start_share": 0.0})
    flight.set_state(LEVEL)
    trace = fly(flight, HostPilot(image, False), DisturbedLink(Disturbances(), 100), 100)
    predict = predictor(image, L2F)
    for _ in range(2):  # no start has the hidden state of the one before
        np.testing.assert_array_equal(rows_of(trace.states)[::10], predict(LEVEL, TIMES[:11]))


@pytest.mark.parametrize("wrong", [np.zeros(12), np.full(13, np.nan), np.zeros(13)])
def test_what_is_no_state_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Flight(0, 0).set_state(wrong)
