"""Which airframes a policy flies; rotors that lift enough; what a fitted drone is judged by."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.documents import Unfit
from rltools_host.drones.flight.airframes import (
    check_thrust,
    fitted_of,
    fitted_settings,
    gate_of,
    map_of,
    turns_quickly,
)
from rltools_host.drones.flight.gate import load_gate
from rltools_host.runs.contents import Fitted


def test_flights_are_counted_in_the_field_that_they_lie_in() -> None:
    """Lower bounds belong to a field; what is beyond the outer ones is in the outer fields."""
    drones = [
        (0.01, 1.0, True),
        (0.02, 1.5, False),
        (0.0799, 1.99, True),
        (0.08, 2.0, True),
        (1.25, 4.5, False),
        (5.0, 5.0, True),
        (9.0, 9.0, False),
    ]
    records = np.array([drone[:2] for drone in drones], [("mass_kg", "f8"), ("lift", "f8")])
    found = map_of(records, np.array([drone[2] for drone in drones]))
    flights, successes = np.zeros((4, 7), int), np.zeros((4, 7), int)
    flights[0, 0], flights[1, 1], flights[3, 6] = 3, 1, 3
    successes[0, 0], successes[1, 1], successes[3, 6] = 2, 1, 1
    assert found.document() == {
        "mass_kg": [0.02, 0.08, 0.32, 1.25, 5.0],
        "thrust_to_weight": [1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0],
        "flights": flights.tolist(),
        "successes": successes.tolist(),
    }
    assert found.rates[0, 0] == pytest.approx(2 / 3)
    assert np.isnan(found.rates).sum() == 4 * 7 - 3
    assert found.rows_by_mass() == [
        ("mass, kg", "flights", "success"),
        ("0.02 to 0.08", "3", "66.7 %"),
        ("0.08 to 0.32", "1", "100.0 %"),
        ("0.32 to 1.25", "0", "-"),
        ("1.25 to 5", "3", "33.3 %"),
    ]
    by_lift = found.rows_by_lift()
    assert (by_lift[0][0], len(by_lift)) == ("thrust to weight", 8)
    assert by_lift[1:4] == [
        ("1.5 to 2", "3", "66.7 %"),
        ("2 to 2.5", "1", "100.0 %"),
        ("2.5 to 3", "0", "-"),
    ]


def thrusts(t0: float, t1: float, t2: float, weight_n: float) -> dict[str, float]:
    return {"thrust_0": t0, "thrust_1": t1, "thrust_2": t2, "mass_kg": weight_n / 9.81}


def test_rotors_lift_more_than_the_weight_and_ever_more() -> None:
    check_thrust(thrusts(0.25, 0.25, 0.5, 3.99))
    with pytest.raises(Unfit, match=r"its rotors lift 4 N, and it weighs 4.01 N"):
        check_thrust(thrusts(0.25, 0.25, 0.5, 4.01))
    with pytest.raises(Unfit, match=r"its rotors lift 4 N, and it weighs 4 N"):
        check_thrust({**thrusts(0.25, 0.25, 0.5, 4.0), "mass_kg": 4.0 / 9.81 * (1 + 1e-9)})
    check_thrust(thrusts(1.0, 1.0, -0.49, 1.0))
    with pytest.raises(Unfit, match="falls where they turn fastest"):
        check_thrust(thrusts(1.0, 1.0, -0.5, 1.0))


def result(**changes: Any) -> Any:
    values = [("mass_kg", None, None), ("lag_up_s", 0.02, 0.04), ("drag_x", None, 2.0)]
    log = {"path": Path("logs/a.csv"), "sha256": "ab" * 32, "time_s": [0, 1, 2], "duration_s": 2.5}
    return SimpleNamespace(
        fit=SimpleNamespace(log=SimpleNamespace(**{**log, **changes})),
        settings=lambda: [SimpleNamespace(name=n, low=a, high=b) for n, a, b in values],
        known_settings=lambda: {"mass_kg": 0.5, "start_tilt": 7},
        spread=0.123456,
    )


@pytest.mark.parametrize(("turning", "is_quick"), [(499.9, False), (500.0, True)])
def test_the_quick_recipe_is_for_drones_that_turn_quickly(turning: float, is_quick: bool) -> None:
    drone: Any = SimpleNamespace(turning_rad_s2=turning)
    assert turns_quickly(drone) == is_quick


def test_the_gate_is_hover_with_the_fitted_drone() -> None:
    hover, gate = load_gate("hover"), gate_of(result())
    assert (gate.name, gate.episodes, gate.seed) == ("hover-fitted", hover.episodes, hover.seed)
    fitted = {"mass_kg": 0.5, "start_tilt": 7, "spread": 0.123}
    assert fitted_settings(result()) == fitted
    assert gate.settings == {**hover.settings, **fitted}


@pytest.mark.parametrize(("name", "kept"), [("a.csv", "a.csv"), ("a\x1b.csv", "")])
def test_a_run_names_the_log_and_what_has_an_interval(name: str, kept: str) -> None:
    found = fitted_of(result(path=Path("logs") / name))
    assert found == Fitted(kept, "ab" * 32, 3, 2.5, {"lag_up_s": (0.02, 0.04)})
