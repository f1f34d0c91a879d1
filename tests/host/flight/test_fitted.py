"""What a fitted drone is trained and judged by."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.flight.fitted import fitted_of, fitted_settings, gate_of, turns_quickly
from rltools_host.flight.gate import load_gate
from rltools_host.runs.contents import Fitted


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
