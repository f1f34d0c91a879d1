"""What our simulator makes of a start: from the same state, with the same policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import px4_vehicle
from quadrotor_policies import constant_policy, controller
from rltools_host.errors import UnknownNameError, UsageError
from rltools_host.flight.disturbances import Disturbances, DisturbedLink
from rltools_host.flight.loop import HostPilot, fly
from rltools_host.flight.prediction import (
    SIH_PARAMETERS,
    SIH_RATE,
    SIH_TABLE,
    predictor,
    rows_of,
    settings_of_sih,
)
from rltools_host.flight.series import Series, limit_broken, measure
from rltools_host.flight.simulator import POSITION, Flight, flight_library
from rltools_host.policies.image import parse_policy

L2F = {"airframe": 1.0}
TIMES = np.arange(0.0, 10.02, 0.02)
LEVEL = np.array((0.5, -0.3, 0.2, *(0, 0, 0), *(1, 0, 0, 0), *(0, 0, 0)), float)
SIH = {**px4_vehicle.SIH, SIH_RATE: 500}


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


def test_it_is_the_flight_of_boards() -> None:
    image = parse_policy(controller())
    flight = Flight(0, 0, {**L2F, "start_share": 0.0})
    flight.place(LEVEL)
    trace = fly(flight, HostPilot(image, False), DisturbedLink(Disturbances(), 100), 100)
    np.testing.assert_array_equal(
        rows_of(trace.states)[::10], predictor(image, L2F)(LEVEL, TIMES[:11])
    )


@pytest.mark.parametrize("wrong", [np.zeros(12), np.full(13, np.nan), np.zeros(13)])
def test_what_is_no_state_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Flight(0, 0).place(wrong)


def test_an_attitude_is_brought_to_unit_length() -> None:
    flight = Flight(0, 0, {"start_share": 0.0})
    flight.place((*LEVEL[:6], 2.0, 0.0, 0.0, 0.0, *LEVEL[10:]))
    np.testing.assert_array_equal(flight.read()["attitude"], (1, 0, 0, 0))


def test_unknown_settings_are_refused_before_anything_flies() -> None:
    with pytest.raises(UnknownNameError, match="gravity"):
        predictor(parse_policy(controller()), {"gravity": 1.0})


# -- PX4's simulator in hardware -------------------------------------------------------------------


def test_the_parameters_that_sih_has_at_first_are_the_published_table() -> None:
    assert set(SIH) == set(SIH_PARAMETERS)
    table = float(flight_library().tables.index(SIH_TABLE) + 1)
    image = parse_policy(constant_policy(0.5, 0.48, 0.52, 0.47))
    first = np.array((0.5, -0.3, 0.2, 1, -2, 0, 0.8, 0.0, 0.6, 0.0, 0.5, -1, 0.3), float)
    rows = [
        predictor(image, settings)(first, TIMES[:60])
        for settings in (settings_of_sih(SIH), {"airframe": table})
    ]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-4)
    assert settings_of_sih({name: SIH[name] for name in list(SIH)[1:]}) == {"airframe": table}


def test_sih_takes_an_output_into_its_rotors_once() -> None:
    for rate, factor in ((250, 1.0), (500, 1.0), (1000, 2.0), (2000, 4.0)):
        settings = settings_of_sih({**SIH, SIH_RATE: rate})
        assert settings["lag_up_s"] == settings["lag_down_s"] == pytest.approx(0.05 * factor)


@pytest.mark.parametrize("parameter", [name for name in SIH if name != SIH_RATE])
def test_each_parameter_changes_the_flight(parameter: str) -> None:
    image = parse_policy(constant_policy(0.5, 0.48, 0.53, 0.47))
    first = np.array((0.5, -0.3, 0.2, 1, -2, 1, 0.8, 0.0, 0.6, 0.0, 0.5, -1, 0.3), float)
    flown = [
        predictor(image, settings_of_sih(parameters))(first, TIMES[:30])
        for parameters in (SIH, {**SIH, parameter: 1.3 * SIH[parameter]})
    ]
    assert np.abs(flown[0] - flown[1]).max() > 1e-4
