"""What a fit says: values and units, worked out by hand; what is too little to train for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rltools_host.drones.fitting.estimate import Estimate
from rltools_host.drones.fitting.fit import (
    Fit,
    what_to_hold,
)
from rltools_host.drones.fitting.log import FlightLog
from rltools_host.drones.fitting.model import COUNT, P
from rltools_host.drones.fitting.result import ASSUMED, FITTED, GIVEN, UNKNOWN, FitResult
from rltools_host.errors import DamagedFileError

ROWS = np.zeros((3, 3))
LOG = FlightLog(
    *(Path("a.csv"), "", np.array([2, 3, 5]), np.array([1.0, 1.004, 1.008]), np.zeros((3, 4))),
    *(ROWS, ROWS, ROWS, np.zeros((3, 4)), False, ()),
)
VALUES = {
    P.LAG_UP: np.log(0.05),
    P.LAG_DOWN: np.log(0.1),
    P.LATENCY: 0.005,
    P.SHAPE_0: 0.1,
    P.SHAPE_1: 0.3,
    P.THRUST: 10.0,
    P.GAIN_X: 500.0,
    P.GAIN_Y: 400.0,
    P.GAIN_Z: 5.0,
    P.INERTIA_Z: 0.004,
    P.SPIN_DRAG: 0.001,
    P.DRAG_X: 0.2,
    P.DRAG_Y: 0.3,
    P.DRAG_Z: 0.4,
}
T = 2.0211  # Student's t of 40 degrees of freedom at 97.5 %


def estimate_of(deviations: dict[P, float] | None = None, **values: float) -> Estimate:
    theta, errors = np.zeros(COUNT), np.zeros(COUNT)
    for place, value in (VALUES | {P[name]: value for name, value in values.items()}).items():
        theta[place] = value
    for place, deviation in (deviations or {}).items():
        errors[place] = deviation
    return Estimate(theta, np.diag(errors**2), tuple(range(COUNT)), 41, np.ones(6))


def fit_of(
    deviations: dict[P, float] | None = None,
    *,
    held: tuple[P, ...] = (),
    no_lag: tuple[P, ...] = (),
    has_arms: bool = True,
    knows_yaw: bool = True,
    **values: float,
) -> Fit:
    found = estimate_of(deviations, **values)
    residuals = {"velocity_x": (0.2, 0.1)}
    return Fit(
        *(LOG, found, has_arms, frozenset(held), frozenset(no_lag), knows_yaw, ("a warning",)),
        residuals,
    )


def result_of(*words: dict[P, float], **changes: object) -> FitResult:
    return FitResult(fit_of(*words, **changes), 0.5, 0.1, 0.05)  # type: ignore[arg-type]


SETTINGS = {
    "airframe": 0,
    "mass_kg": 0.5,
    "inertia_x": 1000,
    "inertia_y": 1250,
    "inertia_z": 2000,  # 1e-6 kg m^2
    "rotor_x_m": 0.1,
    "rotor_y_m": 0.05,
    "thrust_0": 0.5,
    "thrust_1": 1.5,
    "thrust_2": 3,
    "torque_0": 10,
    "torque_1": 30,
    "torque_2": 60,  # mN m, 0.02 m of the thrust
    "lag_up_s": 0.05,
    "lag_down_s": 0.1,
    "drag_x": 0.1,
    "drag_y": 0.15,
    "drag_z": 0.2,
    "drag_rotation": 0.5,
}
PER_MASS = {
    "greatest thrust of a rotor / mass": ("m/s^2", 10.0),
    **{f"thrust_{i} / mass": ("m/s^2", part) for i, part in enumerate((1.0, 3.0, 6.0))},
    "lag_up_s": ("s", 0.05),
    "lag_down_s": ("s", 0.1),
    "latency of the commands": ("s", 0.005),
    "inertia_x / mass": ("m^2", 0.002),
    "inertia_y / mass": ("m^2", 0.0025),
    "inertia_z / mass": ("m^2", 0.004),
    "torque / thrust": ("m", 0.02),
    "mass torque / (thrust inertia_z)": ("1/m", 5.0),
    **{
        f"drag_{axis} / mass": ("1/s", value)
        for axis, value in zip("xyz", (0.2, 0.3, 0.4), strict=True)
    },
    "drag_rotation / mass": ("m^2/s", 0.001),
}


def test_settings_of_an_airframe() -> None:
    result = result_of()
    assert result.known_settings() == SETTINGS
    assert json.loads(result.set_file()) == SETTINGS
    assert result.set_file().endswith(b"\n}\n")
    given = {value.name for value in result.settings() if value.source == GIVEN}
    assert given == {"airframe", "mass_kg", "rotor_x_m", "rotor_y_m"}
    unknown = {value.name for value in result.settings() if value.value is None}
    assert unknown == {"sag_load", "sag_per_min"}
    units = {value.name: value.unit for value in result.settings()}
    assert [units[name] for name in ("inertia_z", "thrust_1", "torque_1", "drag_x")] == [
        *("1e-6 kg m^2", "N", "mN m", "N s/m"),
    ]
    assert (units["drag_rotation"], units["rotor_y_m"]) == ("mN m s", "m")


def test_values_per_mass() -> None:
    values = result_of().per_mass()
    assert {value.name: value.unit for value in values} == {
        name: unit for name, (unit, _) in PER_MASS.items()
    }
    for value in values:
        assert value.value == pytest.approx(PER_MASS[value.name][1])
        assert (value.source, value.note, value.low) == (FITTED, "", None)
    result = FitResult(fit_of(has_arms=False), 0.5, None, None)
    by_name = {value.name: value for value in result.per_mass()}
    assert (by_name["inertia_x / (mass rotor_y)"].unit, by_name["thrust_0 / mass"].value) == (
        "m",
        1.0,
    )
    assert "inertia_y / (mass rotor_x)" in by_name
    assert {"torque / thrust", "inertia_z / mass"}.isdisjoint(by_name)
    assert not result.is_whole
    assert not FitResult(fit_of(), None, 0.1, 0.05).is_whole
    assert result_of().is_whole


def test_intervals_are_students() -> None:
    values = {v.name: v for v in result_of({P.THRUST: 0.25, P.DRAG_X: 0.01}).settings()}
    thrust = values["thrust_1"]
    assert (thrust.low, thrust.high) == pytest.approx(
        (1.5 - T * 0.0375, 1.5 + T * 0.0375), rel=1e-4
    )
    drag = values["drag_x"]
    assert (drag.low, drag.high) == pytest.approx((0.1 - T * 0.005, 0.1 + T * 0.005), rel=1e-4)
    (positive, *_) = result_of({P.THRUST: 0.25}).per_mass()
    factor = np.exp(T * 0.025)  # of a logarithm
    assert (positive.low, positive.high) == pytest.approx((10 / factor, 10 * factor), rel=1e-4)
    # Of two of four drags that are shown: 97.5 % instead of 95 %.
    half = result_of({P.DRAG_X: 0.01}, held=(P.DRAG_Y, P.DRAG_Z)).settings()
    (drag,) = [value for value in half if value.name == "drag_x"]
    assert drag.high == pytest.approx(0.1 + 2.3289 * 0.005, rel=1e-4)


def test_what_the_log_does_not_show() -> None:
    held = (P.SHAPE_0, P.SHAPE_1, P.INERTIA_Z, P.DRAG_X, P.SPIN_DRAG)
    result = result_of(held=held, no_lag=(P.LAG_UP,))
    values = {value.name: value for value in (*result.settings(), *result.per_mass())}
    for name in ("drag_x", "drag_x / mass", "drag_rotation", "drag_rotation / mass"):
        assert (values[name].value, values[name].note) == (None, UNKNOWN)
    for name in ("thrust_0", "thrust_2 / mass", "inertia_z", "torque_1", "torque / thrust"):
        assert values[name].source == ASSUMED
    for name in ("drag_y", "inertia_x", "greatest thrust of a rotor / mass", "lag_down_s"):
        assert values[name].source == FITTED
    lag = values["lag_up_s"]
    assert (lag.value, lag.low, lag.high) == pytest.approx((0.0, 0.0, 0.002))  # half a row
    curve = result_of(held=(P.SHAPE_1,))
    shape = {value.name: value.source for value in (*curve.settings(), *curve.per_mass())}
    assert (shape["torque_0"], shape["inertia_z"]) == (ASSUMED, FITTED)
    assert shape["torque / thrust"] == FITTED
    still = result_of(knows_yaw=False)
    for value in (*still.settings(), *still.per_mass()):
        assert (value.value is None) == ("torque" in value.name or "sag" in value.name)


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (result_of({P.THRUST: 0.1}, LATENCY=0.02), None),
        (result_of({P.THRUST: 0.1}, LATENCY=0.0201), "answer 20 ms after the command, and 20 ms"),
        (
            result_of({P.THRUST: 0.02}, THRUST=2.70),
            "pull 1.10 times the drone's weight, within ± 5",
        ),
        (result_of({P.THRUST: 1.32}), "greatest thrust of a rotor / mass to more than ± 31 %"),
        (
            result_of({P.THRUST: 0.1}, knows_yaw=False),
            "how quickly the drone yaws: fly quick turns",
        ),
    ],
)
def test_what_is_too_little_to_train_for(result: FitResult, sentence: str | None) -> None:
    if sentence is None:
        result.require_trainable()
        return
    with pytest.raises(DamagedFileError) as caught:
        result.require_trainable()
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("a.csv: ")


# -- what a fit takes as seen ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deviations", "values", "held"),
    [
        ({}, {}, set()),
        ({P.SHAPE_1: 0.26 / T}, {}, {P.SHAPE_0, P.SHAPE_1}),
        ({}, {"SHAPE_0": -0.01}, {P.SHAPE_0}),
        ({P.DRAG_X: 0.21 / T, P.DRAG_Y: 0.29 / T, P.DRAG_Z: 0.41 / T}, {}, {P.DRAG_X, P.DRAG_Z}),
        ({P.SPIN_DRAG: 0.00051 / T}, {}, {P.SPIN_DRAG}),  # twice as sure
        ({P.INERTIA_Z: 0.00061 / T}, {}, {P.INERTIA_Z}),
    ],
)
def test_what_is_held(deviations: dict[P, float], values: dict[str, float], held: set[int]) -> None:
    assert what_to_hold(estimate_of(deviations, **values), LOG) == (held, set())
