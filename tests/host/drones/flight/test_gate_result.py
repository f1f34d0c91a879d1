"""What came of a gate, as it is told: outcomes by hand, figures worked out beside them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from rltools_host.drones.flight.gate import Part, load_gate
from rltools_host.drones.flight.gate_result import (
    GateResult,
    Share,
    cause_lines,
    failures,
    part_rows,
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


def test_what_a_person_reads() -> None:
    """Wilson's interval of 2 in 4 is 0.5 ± 0.35; of 2 in 2 it begins at 1 / (1 + z^2 / 2)."""
    assert mixed().lines() == [
        "4 flights of exp through the gate hover: Hover, from any attitude (seed 4000000000)",
        "  success  50.0 %   95 % interval 15.0 % to 85.0 %   "
        "within 0.2 m for the last 1 s of 10 s",
        "  settled  after 0.50 s (median), 0.95 s (95 % of the successful flights)",
        "",
        "  table            flights  success  95 % interval  failures",
        "  crazyflie-l2f    2        100.0 %  34.2 to 100.0",
        "  crazyflie-decks  2        0.0 %    0.0 to 65.8    1 fault, 1 far",
        "",
        "  failures",
        "    1  the executor found a fault, and the policy did not act",
        "    1  it was not within the radius when it had to be",
        "      of the executor's, 1: the observation is too old",
    ]
    assert not any("settled" in line for line in result_of([5, 5]).lines())


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


def test_the_most_frequent_failure_is_named_first() -> None:
    share = Share("all", 1250, 10, {**NONE, "velocity_limit": 2, "too_far": 1234, "rate_limit": 4})
    assert failures(share) == "1234 far, 4 spin, 2 fast"
    assert cause_lines(share, {}) == [
        "",
        "  failures",
        "    1,234  it was not within the radius when it had to be",
        "    4      the limit of the angular velocity was broken",
        "    2      the limit of the velocity was broken",
    ]
    assert cause_lines(Share("all", 3, 3, NONE), {}) == []
    assert share.document("part")["part"] == "all"


def test_a_row_for_each_part_with_the_time_to_settle() -> None:
    def part(successes: int, median_s: float | None, most_s: float | None) -> Any:
        share = Share("all", 4, successes, {**NONE, "too_far": 4 - successes})
        times = {0.5: median_s, 0.95: most_s}
        return SimpleNamespace(all=share, _settled=lambda quantile: times[quantile])

    assert part_rows({"one": part(2, 1.234, 5.678), "two": part(4, None, None)}) == [
        ("part", "flights", "success", "95 % interval", "settled", "95 % of them", "failures"),
        ("one", "4", "50.0 %", "15.0 to 85.0", "1.23 s", "5.68 s", "2 far"),
        ("two", "4", "100.0 %", "51.0 to 100.0", "-", "-", ""),
    ]
