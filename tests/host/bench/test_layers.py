"""A dense layer's products by width: what is chosen, and the tables."""

from __future__ import annotations

from typing import Any

import pytest

from rltools_host.bench import layers
from rltools_host.errors import UsageError


def test_widths_as_they_are_typed() -> None:
    assert layers.chosen("widths", "64,16,64", layers.WIDTHS) == [16, 64]
    for text in ("", "64,", "-16", "16.0"):
        with pytest.raises(UsageError, match=r"choose among 1, 32, 100, 256, separated by commas"):
            layers.chosen("batches", text, layers.BATCHES)


@pytest.mark.parametrize("zeros", [-1, 101])
def test_zeros_are_a_percentage(zeros: int) -> None:
    with pytest.raises(UsageError, match=f"--zeros {zeros}: a percentage from 0 to 100 is needed"):
        layers.run("16", "1", zeros, 1)


def test_a_products_row() -> None:
    product = {
        "name": "forward",
        "ours_gflops": [10.0, 30.0, 20.0],
        "blas_gflops": [5.0, 60.0, 40.0],
        "blas_is_selected": False,
        "largest_difference": 1e-3,
    }
    (row,) = layers.evaluated({"products": [product], "peak_gflops": [20.0, 40.0, 80.0]}, 256, 32)
    assert row == {
        "product": "forward",
        "width": 256,
        "batch": 32,
        "peak_gflops": 40.0,
        "ours_gflops": 20.0,
        "ours_share": 0.5,  # of 0.5, 0.75 and 0.25
        "blas_gflops": 40.0,
        "blas_share": 0.5,  # of 0.25, 1.5 and 0.5
        "blas_time": 0.5,  # of 2, 0.5 and 0.5
        "blas_is_selected": False,
        "largest_difference": 1e-3,
    }


def document(**changes: Any) -> dict[str, Any]:
    ours = {"batch": 32, "width": 64, "ours_gflops": 45.06, "ours_share": 0.751}
    blas = {"blas_gflops": 60.04, "blas_share": 0.999, "blas_time": 0.755}
    return {
        "rows": [
            {**ours, "product": "forward", **blas, "blas_is_selected": True},
            {**ours, "product": "weight gradient", **blas, "blas_is_selected": False},
            {**ours, "product": "input gradient"},
        ],
        "recurrent": {
            "network": "2-GRU1-1",
            "windows": 3,
            "steps": 4,
            "forward_ns": 1234.4,
            "forward_fastest_ns": 1200.0,
            "forward_multiply_adds": 12345,
            "forward_share": 0.126,
            "step_ns": 5000.0,
            "step_fastest_ns": 4000.0,
            "multiply_adds": 54321,
            "step_share": 0.25,
        },
        "peak_gflops": 60.06,
        "zeros_percent": 0,
        "repetitions": 5,
        "vector_lanes": 16,
        "blas": {"library": "OpenBLAS 0.3.21 DYNAMIC_ARCH", "kernels": "SkylakeX"},
        "without_blas": None,
        "machine": {"processor": "Z80", "cores": 3},
        "load_average": 0.5,
        **changes,
    }


def words(line: str) -> list[str]:
    return [word.strip() for word in line.split("  ") if word]


def test_what_a_person_reads() -> None:
    text = layers.lines(document())
    assert text[:5] == [
        "Products of a square dense layer, median of 5, on one core of Z80 (3 cores, load average "
        "0.5)",
        "  multiply-add peak   60.1 GFLOP/s   16 lanes of 32 bits",
        "  BLAS                OpenBLAS 0.3.21, one thread, kernels for SkylakeX",
        "  zeros               0 % of the inputs and output gradients",
        "",
    ]
    assert [words(line) for line in text[5:10]] == [
        ["batch", "width", "product", "ours", "of the peak", "BLAS", "of the peak", "BLAS's"],
        ["GFLOP/s", "GFLOP/s", "time / ours"],
        ["32", "64", "forward", "45.1", "75 %", "60.0", "100 %", "0.76 *"],
        ["32", "64", "weight gradient", "45.1", "75 %", "60.0", "100 %", "0.76"],
        ["32", "64", "input gradient", "45.1", "75 %", "-", "-", "-"],
    ]
    assert text[10:14] == [
        "",
        "* the board host-blas takes BLAS there",
        "",
        "2-GRU1-1 over 3 windows of 4 steps",
    ]
    assert [words(line) for line in text[14:]] == [
        ["time a step", "fastest", "multiply-adds", "of the peak"],
        ["forward", "1234 ns", "1200 ns", "12,345", "13 %"],
        ["forward and backward", "5000 ns", "4000 ns", "54,321", "25 %"],
    ]


def test_without_blas_and_with_zeros() -> None:
    text = layers.lines(document(blas=None, without_blas="it is not there", zeros_percent=50))
    assert text[2] == "  BLAS                not measured: it is not there"
    assert text[3].endswith(
        "  50 % of the inputs and output gradients; skipped terms count as computed"
    )
    assert not any("host-blas" in line for line in text)
