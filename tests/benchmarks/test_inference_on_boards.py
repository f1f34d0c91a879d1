"""A forward pass on emulated boards: ours have the reference's bits, few instructions."""

from __future__ import annotations

import pytest

from benchmarks import inference
from boards_under_test import skip_without_tools
from programs import require_program
from rltools_host.build.boards import load_board

# The most guest instructions of a pass: with the zeros of a trained policy, and without.
LIMITS = {
    "qemu-cortex-m7": (8_000, 10_000),
    "qemu-cortex-m4": (8_000, 10_000),
    "qemu-esp32c3": (260_000, 430_000),
}
MAX_IMAGE_SHARE = 1.15  # times the compiled pass
ZEROS, NO_ZEROS = "half of the hidden units zero", "no zeros"


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
    require_program(board.toolchain.compiler)  # the limits are for what it makes
    rows = {
        (row["input"], row["implementation"]): row["counts"]
        for row in inference.measure_on(board, None)
        if row["hidden"] == "relu"
    }
    for given, limit in zip((ZEROS, NO_ZEROS), LIMITS[name], strict=True):
        assert rows[given, "optimized"] <= limit
        assert rows[given, "policy image"] <= MAX_IMAGE_SHARE * rows[given, "optimized"]
        assert rows[given, "optimized"] < rows[given, "generic"]
