"""The result of `rlt hil`, from documents made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rltools_host.boards.hil_result import (
    Distribution,
    Found,
    lines,
)
from rltools_host.documents import typed

SHA = "0123456789ab" + 52 * "c"
COSTS = {
    "min": 1,
    "mean": 2.5,
    "median": 2,
    "p99": 1234,
    "p999": 1235,
    "max": 98765,
    "histogram": {"edges": [1, 3, 98766], "counts": [3, 1]},
}
PARITY = {
    "inputs": 1000,
    "not_finite_inputs": 9,
    "mismatches": 2,
    "executor_calls": 65,
    "executor_mismatches": 5,
}


def document_of(unit: str = "time_us", costs: Any = COSTS, **changes: Any) -> dict[str, Any]:
    return {
        "board": "host",
        "experiment": "pendulum-td3",
        "contract": "pendulum",
        "network": "3-2-1",
        "max_abs_diff": 0.0,
        "overhead": 5,
        "implementation": "Host",
        "policy_sha256": SHA,
        "outputs_sha256": SHA,
        "parity": PARITY,
        "samples": 4000,
        unit: costs,
        "tick": {unit: costs},
        "flash_bytes": 1234567,
        "ram_bytes": None,
        "stack_bytes": 4096,
        **changes,
    }


@pytest.mark.parametrize("unit", ["time_us", "instructions"])
def test_wrong_bits_have_no_costs(unit: str) -> None:
    found: Found = typed(document_of(unit, None), Found)
    assert (found.unit, found.costs) == (unit, [])
    assert len(lines([found])) == 2


def test_bins_are_of_the_bulk_and_the_last_reaches_to_the_most() -> None:
    """11 bins at most have the numbers up to the 99th percentile: of 100 samples the last but one.
    The most has one more where it is beyond them."""
    assert Distribution(np.arange(88)).histogram() == ([*range(0, 89, 8)], [8] * 11)
    assert Distribution(np.arange(89)).histogram() == ([*range(0, 91, 9)], [*[9] * 9, 8])
    assert Distribution(np.arange(99)).histogram() == ([*range(0, 100, 9)], [9] * 11)
    assert Distribution(np.arange(100)).histogram() == (
        [*range(0, 100, 9), 100],
        [*[9] * 11, 1],
    )
