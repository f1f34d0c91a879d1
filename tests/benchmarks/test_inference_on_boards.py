"""A forward pass on emulated boards: ours have the reference's bits, few instructions."""

from __future__ import annotations

import pytest

from benchmarks import inference
from benchmarks.harness import MeasurementError
from boards_under_test import skip_without_tools
from rltools_host.build.boards import load_board
from rltools_host.errors import UsageError

# The most guest instructions of a pass: with the zeros of a trained policy, and without.
LIMITS = {
    "qemu-cortex-m7": (8_000, 10_000),
    "qemu-cortex-m4": (8_000, 10_000),
    "qemu-esp32c3": (260_000, 430_000),
}
MOST_OF_AN_IMAGE = 1.15  # times the compiled pass
ZEROS, NO_ZEROS = "half of the hidden units zero", "no zeros"


def row(implementation: str, crc: int = 1, difference: int = 0) -> dict[str, object]:
    return {
        "hidden": "relu",
        "input": ZEROS,
        "implementation": implementation,
        "counts": 5,
        "output_crc32": crc,
        "difference_1e9": difference,
    }


@pytest.mark.parametrize(
    "name",
    [
        name if name == "qemu-cortex-m7" else pytest.param(name, marks=pytest.mark.all)
        for name in LIMITS
    ],
)
def test_a_pass_takes_no_more_than_its_limit(name: str) -> None:
    board = load_board(name)
    skip_without_tools(board)
    rows = {
        (row["input"], row["implementation"]): row["counts"]
        for row in inference.measure_on(board, None)
        if row["hidden"] == "relu"
    }
    for given, limit in zip((ZEROS, NO_ZEROS), LIMITS[name], strict=True):
        assert rows[given, "optimized"] <= limit
        assert rows[given, "policy image"] <= MOST_OF_AN_IMAGE * rows[given, "optimized"]
        assert rows[given, "optimized"] < rows[given, "generic"]


@pytest.mark.parametrize(
    "wrong", [row("optimized", crc=2), row("policy image", crc=2), row("dsp", 2, 20_000)]
)
def test_other_numbers_are_not_compared(wrong: dict[str, object]) -> None:
    with pytest.raises(MeasurementError, match="computes something else"):
        inference.checked_on(load_board("host"), [row("generic"), wrong])


def test_another_order_of_additions_is_allowed_to_others() -> None:
    rows = inference.checked_on(load_board("host"), [row("generic"), row("dsp", 2, 300)])
    assert rows[1]["difference"] == pytest.approx(3e-7)


def test_only_emulated_boards_count_instructions() -> None:
    with pytest.raises(UsageError, match="host is not emulated"):
        inference.chosen_boards("host")
