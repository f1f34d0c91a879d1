"""What was found of a board, for people and as JSON, from documents made by hand."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.boards.hil_result import (
    Cost,
    Distribution,
    Found,
    HilResult,
    bars,
    histogram_lines,
    lines,
    number_text,
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


def document(unit: str = "time_us", costs: Any = COSTS, **changes: Any) -> dict[str, Any]:
    return {
        "board": "host",
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


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line)


def test_boards_are_rows_and_what_was_not_measured_says_why() -> None:
    text = lines(
        [
            document(),
            {"board": "x", "skipped": "needs qemu"},
            document("instructions", board="y"),
            {"board": "z", "error": "lost it"},
        ]
    )
    bits = "1,007 of 1,009 inputs, 60 of 65 calls"
    sizes = ["0123456789ab", "1,234,567", "-", "4,096"]
    figures = ["1", "2.50", "2", "1,234", "1,235", "98,765"]
    heads = ["min", "mean", "median", "p99", "p99.9", "max", "unit"]
    assert [cells(line) for line in text] == [
        ["board", "implementation", "same bits", "outputs", "flash", "RAM", "stack"],
        ["host", "Host", bits, *sizes],
        ["y", "Host", bits, *sizes],
        [""],
        ["board", "cost of", *heads],
        ["host", "forward", *figures, "microseconds"],
        ["host", "tick", *figures, "microseconds"],
        ["y", "forward", *figures, "guest instructions"],
        ["y", "tick", *figures, "guest instructions"],
        ["x: needs qemu"],
        ["z: lost it"],
    ]
    assert lines([{"board": "x", "skipped": "needs qemu"}]) == ["x: needs qemu"]
    assert max(map(len, lines([document()], 50))) <= 50


@pytest.mark.parametrize("unit", ["time_us", "instructions"])
def test_wrong_bits_have_no_costs(unit: str) -> None:
    found: Found = typed(document(unit, None), Found)
    assert (found.unit, found.costs) == (unit, [])
    assert len(lines([document(unit, None)])) == 2
    assert histogram_lines(found) == []


def test_histograms_have_titles() -> None:
    both = [
        "     1 -      2         3  " + 40 * "#",
        "     3 - 98,765         1  " + 13 * "#",
    ]
    assert histogram_lines(typed(document(), Found)) == [
        "",
        "host: microseconds of a forward, 4,000 samples",
        *both,
        "",
        "host: microseconds of a tick, 4,000 samples",
        *both,
    ]
    assert bars([0, 1], [0]) == ["0 - 0         0"]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0, "0"), (1234, "1,234"), (1234.5, "1,234.50"), (0.0, "0.00")]
)
def test_numbers(value: float | None, text: str) -> None:
    assert number_text(value) == text


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


@pytest.mark.parametrize("is_measured", [True, False])
def test_document(is_measured: bool) -> None:
    one, two = Distribution(np.array([4])), Distribution(np.array([5]))
    made: Any = SimpleNamespace
    result = HilResult(
        board="b",
        contract="c",
        identity=made(device="D", counts_instructions=is_measured),
        image=made(experiment="e", shape="3-2-1", sha256="s"),
        parity=made(max_abs_diff=0.5, outputs_sha256="o", document=lambda: {"inputs": 3}),
        cost=Cost(6, one, two) if is_measured else None,
        samples=7,
        footprint=made(flash_bytes=11, ram_bytes=12) if is_measured else None,
        stack_bytes=13 if is_measured else 0,
    )
    unit = "instructions" if is_measured else "time_us"
    assert result.document() == {
        "board": "b",
        "experiment": "e",
        "implementation": "D",
        "contract": "c",
        "network": "3-2-1",
        "policy_sha256": "s",
        "samples": 7 if is_measured else 0,
        "max_abs_diff": 0.5,
        unit: one.document() if is_measured else None,
        "tick": {unit: two.document() if is_measured else None},
        "overhead": 6 if is_measured else None,
        "flash_bytes": 11 if is_measured else None,
        "ram_bytes": 12 if is_measured else None,
        "stack_bytes": 13 if is_measured else None,
        "outputs_sha256": "o",
        "parity": {"inputs": 3},
    }
