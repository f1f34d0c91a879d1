"""Figures of the benchmarks against a computation of their own; nothing asserts a time."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from benchmarks import harness, roofline
from rltools_host.build import experiments
from rltools_host.errors import RefusedError

# ---- Roofline ------------------------------------------------------------------------------------

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


def test_medians_become_shares_of_neighboring_peaks() -> None:
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


@pytest.mark.all
def test_roofline_counts_the_arithmetic_of_the_shapes() -> None:
    """Counted a second time, from the description of the experiment."""
    document = experiments.describe("pendulum-td3").document
    batch = document["sizes"]["batch_size"]

    def products(network: str) -> list[int]:
        widths = document["networks"][network]["dimensions"]
        return [a * b for a, b in itertools.pairwise(widths)]

    actor, critic = products("actor"), products("critic")
    networks = document["networks"]
    of_observations = networks["actor"]["dimensions"][0] * networks["critic"]["dimensions"][1]
    expected = {
        "target values": batch * (sum(actor) + 2 * sum(critic)),
        "critic forward": batch * 2 * sum(critic),
        "critic backward": batch * 2 * (2 * sum(critic) - critic[0]),
        # Of the critic's inputs, the actions alone have a gradient.
        "actor": batch * (3 * sum(actor) - actor[0] + 2 * sum(critic) - of_observations) / 2,
    }
    raw, _ = harness.run_program("roofline", 300, 1, 1)
    assert raw["updates"] == 200
    for phase in raw["phases"]:
        if phase["name"] in expected:
            per_update = phase["operations"] / raw["updates"]
            assert per_update == 2 * expected[phase["name"]], phase["name"]
    total = sum(phase["operations"] for phase in raw["phases"]) / raw["updates"]
    assert total == pytest.approx(10.1e6, rel=0.01)


def test_roofline_refuses_a_run_that_is_not_the_one_it_times() -> None:
    with pytest.raises(RefusedError, match="other bits"):
        roofline.evaluated({"same_bits": False})


def test_second_thread_with_other_bits_is_refused() -> None:
    with pytest.raises(RefusedError, match="two threads ended in other bits"):
        roofline.two_threads(2, [({"state_sha256": "a"}, {"state_sha256": "b"})])
