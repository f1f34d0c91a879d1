"""What came of a gate, as it is told: outcomes by hand, figures worked out beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from rltools_host.drones.flight.gate import Part, load_gate
from rltools_host.drones.flight.gate_result import (
    GateResult,
)
from rltools_host.drones.flight.simulator import flight_library

NONE = dict.fromkeys(
    ("position_limit", "velocity_limit", "rate_limit", "executor_fault", "too_far", "tilt_limit"), 0
)


def result_of(causes: list[int], **columns: Any) -> GateResult:
    outcomes = np.zeros(len(causes), flight_library().records["Outcome"])
    outcomes["cause"] = causes
    for name, values in columns.items():
        outcomes[name] = values
    gate = structs.replace(load_gate("hover"), episodes=len(causes))
    return GateResult(gate, "run", "exp", "env", "sha", outcomes)


def mixed() -> GateResult:
    return result_of(
        [0, 0, 5, 4],
        status=[0, 0, 0, 4],
        table=[1, 1, 2, 2],
        settling_tick=[0, 500, 9, 9],
        episode_return=[1, 2, 3, 6],
    )


def test_document() -> None:
    document = mixed().document()
    tables = document.pop("tables")
    assert document == {
        "run": "run",
        "experiment": "exp",
        "environment": "env",
        "simulator": "the core's flights",
        "seed": 4000000000,
        "episodes": 4,
        "return_mean": 3.0,
        "return_std": pytest.approx(np.sqrt(3.5)),
        "returns": [1, 2, 3, 6],
        "success_return": None,
        "gate": "hover",
        "success_rate": 0.5,
        "interval": pytest.approx([0.15004, 0.84996], abs=1e-5),
        "causes": {**NONE, "executor_fault": 1, "too_far": 1},
        "faults": {"the observation is too old": 1},
        "settling_s_median": 0.5,
        "policy_sha256": "sha",
    }
    assert [(each["table"], each["episodes"], each["success_rate"]) for each in tables] == [
        ("crazyflie-l2f", 2, 1.0),
        ("crazyflie-decks", 2, 0.0),
    ]
    assert tables[1]["causes"] == {**NONE, "executor_fault": 1, "too_far": 1}
    assert result_of([5]).document()["settling_s_median"] is None


def test_a_gate_of_parts_has_no_time_to_settle_in_all() -> None:
    """Two flights of each part, 0.5 and 1.5 s; of one that may leave the radius, no time."""
    gate = structs.replace(
        load_gate("hover"), episodes=2, parts={"still": Part(), "mostly": Part(share=0.5)}
    )
    result = replace(result_of([0, 0, 0, 5], table=1, settling_tick=[250, 750, 300, 0]), gate=gate)
    document = result.document()
    assert document["settling_s_median"] is None
    keys = ("part", "success_rate", "rule", "settling_s_median", "settling_s_95")
    rule = "within 0.2 m for the last 1 s of 10 s"
    assert [[part[key] for key in keys] for part in document["parts"]] == [
        ["still", 1.0, rule, 1.0, pytest.approx(1.45)],
        ["mostly", 0.5, rule.replace("for", "for 50 % of"), None, None],
    ]
    assert not any("settled" in line and "after" in line for line in result.lines())
    assert "in all parts together" in result.lines()[1]
