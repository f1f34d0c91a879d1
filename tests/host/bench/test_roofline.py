"""A training step against the peak of its core: figures from what a program measured."""

from __future__ import annotations

import os
from typing import Any

import pytest

from rltools_host.bench import roofline

RAW: dict[str, Any] = {
    "same_bits": True,
    "phases": [
        {"name": "actor", "operations": 3_000_000, "ticks": 30},
        {"name": "sample", "operations": 0, "ticks": 10},
        {"name": "never", "operations": 0, "ticks": 0},
    ],
    "updates": 2,
    "steps": 1500,
    "plain_s": [0.001, 0.003, 0.002],
    "profiled_s": [0.002, 0.0025, 0.003],
    "peak_gflops": [5.0, 7.0, 2.0, 2.0, 4.0, 2.0],
    "bandwidth_gb_s": [9.0, 11.0],
    "lanes": 8,
    "kind_of_core": "units of clay",
}


def test_medians_become_shares_of_neighbouring_peaks() -> None:
    found = roofline.evaluated(RAW)
    actor, sample, never = found.pop("phases")
    assert found.pop("shares") == pytest.approx([0.5, 0.5, 0.5])
    # The runs reach 3, 1 and 1.5 GFLOP/s; the peaks about them are 6, 2 and 3.
    assert found == pytest.approx(
        {
            "peak_gflops": 3.0,
            "achieved_gflops": 1.5,
            "share": 0.5,
            "bandwidth_gb_s": 10.0,
            "mflop_per_step": 1.5,
            "step_us": 4 / 3,
            "run_s": 0.002,
            "clocks_cost": 0.25,
            "vector_lanes": 8,
            "kind_of_core": "units of clay",
            "steps": 1500,
            "repetitions": 3,
        }
    )
    assert actor == pytest.approx(
        {
            "name": "actor",
            "share_of_time": 0.75,
            "us_per_step": 1.0,
            "mflop_per_step": 1.5,
            "gflops": 2.0,
            "share_of_peak": 2 / 3,
        }
    )
    assert (sample["share_of_time"], sample["gflops"]) == (0.25, 0.0)
    assert (never["share_of_time"], never["gflops"]) == (0.0, 0.0)
    idle = roofline.evaluated({**RAW, "updates": 0, "phases": RAW["phases"][1:]})
    assert idle["mflop_per_step"] == 0


def test_what_a_person_reads() -> None:
    document = {
        **roofline.evaluated(RAW),
        "two_threads": {"ratio": None},
        "machine": {"processor": "Z80", "cores": 3},
        "load_average": 0.5,
    }
    text = roofline.lines(document)
    assert text[:4] == [
        "TD3 on Pendulum-v1, 1,500 steps, median of 3 runs on one core of Z80 (3 cores, load "
        "average 0.5)",
        "  multiply-add peak   3.0 GFLOP/s   8 lanes of 32 bits; kernels for a core with units of "
        "clay",
        "  memory bandwidth    10.0 GB/s   triad",
        "  training            1.5 GFLOP/s   50.0 % of the peak   0.002 s",
    ]
    assert text[4] == (
        "  two threads         not measured: this process may use one core only, and a second "
        "thread needs another"
    )
    table = [[word.strip() for word in line.split("  ") if word] for line in text[6:11]]
    assert table == [
        ["phase", "time", "us a step", "MFLOP a step", "GFLOP/s", "of the peak"],
        ["actor", "75.0 %", "1.00", "1.500", "2.0", "67 %"],
        ["sample", "25.0 %", "0.33", "0.000", "0.0", "0 %"],
        ["never", "0.0 %", "0.00", "0.000", "0.0", "0 %"],
        ["whole step", "100 %", "1.33", "1.500", "1.5", "50 %"],
    ]
    assert text[-1].endswith("(+25.0 %).")


@pytest.mark.parametrize(
    ("cache_mb", "mb"), [(4, 64), (8, 64), (9, 72), (32, 256), (64, 256), (0, 256), (-1, 256)]
)
def test_arrays_are_8_caches_large(cache_mb: int, mb: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 64 MB to 256 MB; where nobody says how large it is, it counts as 32 MB."""
    monkeypatch.setattr(os, "sysconf", lambda _: cache_mb << 20)
    assert roofline.buffer_mb() == mb
