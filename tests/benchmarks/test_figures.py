"""Figures of the benchmarks against a computation of their own; nothing asserts a time."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from benchmarks import harness, inference, ppo, roofline, train, vertical
from benchmarks.harness import MeasurementError
from benchmarks.ppo import OURS, ROLLOUT, TRAIN
from benchmarks.vertical import Device
from rltools_host.build import experiments
from rltools_host.errors import RefusedError
from stub_peers import add_peer

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


def test_second_thread_is_compared_run_by_run() -> None:
    """The ratio is the runs' median one, and not that of the median times."""
    times = ((0.5, 1.0), (0.9, 1.0), (0.6, 2.0))
    runs = [[{"wall_s": run_s, "state_sha256": ""} for run_s in pair] for pair in times]
    measured = roofline.two_threads(2, [(one, two) for two, one in runs])
    expected = {"processors": 2, "run_s": 0.6, "one_thread_s": 1.0, "ratio": 0.5}
    assert measured == {**expected, "ratios": [0.5, 0.9, 0.3]}


def test_second_thread_with_other_bits_is_refused() -> None:
    with pytest.raises(RefusedError, match="two threads ended in other bits"):
        roofline.two_threads(2, [({"state_sha256": "a"}, {"state_sha256": "b"})])


# ---- Training ------------------------------------------------------------------------------------


def test_times_of_training_are_medians_against_ours() -> None:
    usual = {"version": "1", "setup_s": 2.0, "return_mean": -150.0, "cpu_s": None}
    rows: list[dict[str, Any]] = [
        {"name": train.OURS, **usual, "train_s": 2.0},
        {"name": "sbx", **usual, "train_s": 12.0},
        {"name": "skrl", "error": "first"},
        {"name": train.OURS, **usual, "train_s": 4.0},
        {"name": "sbx", **usual, "train_s": 6.0, "return_mean": -100.0},
        {"name": "sbx", "error": "third time"},
    ]
    ours, sbx, skrl = train.summary(rows)
    assert (ours["train_s"], ours["times_ours"], ours["runs"]) == (3.0, 1.0, 2)
    assert (sbx["train_s"], sbx["times_ours"], sbx["return_mean"]) == (9.0, 3.0, -125.0)
    assert skrl == {"name": "skrl", "title": "skrl", "error": "first"}


def test_overhead_is_neither_loop_nor_evaluation() -> None:
    rows: list[dict[str, Any]] = [
        {"name": train.OURS, "train_s": 1.13, "host_cpu_s": 0.02},
        {"name": train.OURS, "train_s": 1.19, "host_cpu_s": 0.5},
        {"name": train.OURS, "train_s": 1.15, "host_cpu_s": 0.01},
        {"name": train.LOOP, "train_s": 1.0, "evaluations_s": 0.12, "cpu_s": 0.8},
    ]
    expected = {"wall": 0.03, "host_cpu": 0.025}
    assert train.overhead(rows) == pytest.approx(expected)
    assert train.overhead([*rows[:3], {"name": train.LOOP, "error": "x"}]) is None


# ---- Inference -----------------------------------------------------------------------------------


def test_inference_compares_and_refuses_another_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (harness.PEERS / "inference" / "numpy" / "run.py").read_text()
    other = script.replace("np.float32(0)", "np.float32(-1)", 1)
    peers, environments = tmp_path / "peers", tmp_path / "environments"
    for name, text in (("numpy", script), ("other", other)):
        add_peer(peers / "inference", environments / "inference", name, text, "run.py")
    (peers / "inference_run.py").write_text((harness.PEERS / "inference_run.py").read_text())
    monkeypatch.setattr(harness, "PEERS", peers)
    monkeypatch.setattr(harness, "ENVIRONMENTS", environments)
    document = inference.measure_here(harness.chosen_peers("inference", None), 1)
    rows: dict[str, dict[str, Any]] = {row["name"]: row for row in document["rows"]}
    for name in ("ours", "numpy"):
        assert rows[name]["latency_ns"] > 0
        assert rows[name]["batched_ns"] > 0
        assert rows[name]["largest_difference"] <= inference.TOLERANCE
    assert "other computes something else: off by" in rows["other"]["error"]


# ---- PPO -----------------------------------------------------------------------------------------


def rows_of(name: str, seconds: list[float]) -> list[dict[str, Any]]:
    return [
        {"name": name, "turn": turn, "steps": 100, "wall_s": wall_s, "cpu_s": 2 * wall_s}
        for turn, wall_s in enumerate(seconds, 1)
    ]


def test_ratios_of_ppo_are_those_of_the_same_turn() -> None:
    """The machine is half as fast in the second turn, and the ratios are those of each turn."""
    rows = [
        *rows_of(OURS, [1.0, 2.0, 1.0]),
        *rows_of("fast", [2.0, 4.0, 4.0]),
        *rows_of("slow", [10.0, 20.0, 10.0]),
        *rows_of(ROLLOUT, [0.8, 1.6, 0.5]),
        *({**row, "cpu_s": None} for row in rows_of(TRAIN, [1.5, 3.0, 1.5])),
    ]
    said = {
        name: {"version": "1", "simulator": "x", "settings": f"those of {name}"}
        for name in (ROLLOUT, "slow", "fast", TRAIN, OURS)
    }
    entries = ppo.summary(rows, said, {"lost": "why"})
    assert [entry["name"] for entry in entries] == [OURS, TRAIN, "fast", "slow", ROLLOUT, "lost"]
    ours, whole, fast, slow, rollout, lost = entries
    assert ours["steps_s"] == 100
    assert ours["of_rollout"] == pytest.approx(0.8)
    assert fast["ours_times"] == pytest.approx(2)
    assert slow["ours_times"] == pytest.approx(10)
    assert rollout["of_rollout"] == 1
    assert ours["cpu_us_a_step"] == pytest.approx(2e4)
    assert lost == {"name": "lost", "title": "lost", "error": "why"}
    assert whole["cpu_us_a_step"] is None
    assert [entry["settings"] for entry in entries[:-1]] == [
        f"those of {entry['name']}" for entry in entries[:-1]
    ]
    assert ppo.best_peer(entries) == fast
    assert ppo.best_peer([ours, whole, rollout, lost]) is None


def test_a_return_is_reached_once() -> None:
    curve = [{"steps": i, "return_mean": mean} for i, mean in enumerate([None, 1.0, 5.0, 2.0])]
    assert ppo.reached(curve, 5.0) == curve[2]
    assert ppo.reached(curve, 1.5) == curve[2]
    assert ppo.reached(curve, 5.1) is None
    assert ppo.is_done(curve, 100, (1.0, 5.0))
    assert not ppo.is_done(curve, 100, (1.0, 6.0))
    assert ppo.is_done(curve, 3, (1.0, 6.0))
    assert not ppo.is_done([], 3, (1.0,))


def test_compiling_in_the_first_iteration_is_setup() -> None:
    def answers(*ends_s: float) -> list[dict[str, Any]]:
        return [{"wall_s": end_s} for end_s in ends_s]

    assert ppo.first_iteration_more_s(answers(31.0, 33.0, 35.5)) == 29.0
    assert ppo.first_iteration_more_s(answers(1.0, 3.0)) == 0.0, "it was the faster one"
    assert ppo.first_iteration_more_s(answers(31.0)) == 0.0

    class Compiles:
        name = OURS

        def __init__(self) -> None:
            self.turns = 0

        def turn(self, order: str, _: float) -> dict[str, Any]:
            self.turns += 1
            ends_s = (11.0, 13.0) if self.turns == 1 else (4.0, 6.0)
            points = [
                {"wall_s": end_s, "steps": 200 * (self.turns - 1) + done, "return_mean": None}
                for end_s, done in zip(ends_s, (100, 200), strict=True)
            ]
            steps = int(order)
            return {"steps": steps, "wall_s": ends_s[1] + 0.5, "cpu_s": 1.0, "iterations": points}

    contenders: dict[str, Any] = {OURS: Compiles()}
    (row,) = ppo.turns_to_returns(contenders, 200, 400, {})
    assert [point["train_s"] for point in row["curve"]] == [2.0, 4.0, 8.5, 10.5]
    assert row["train_s"] == 11.0


# ---- Every device --------------------------------------------------------------------------------


def timed(*seconds: float, state: str = "same") -> Any:
    """Takes so long in its turns, in processor time half of it."""
    turns = iter(seconds)

    def measure(_: int) -> dict[str, Any]:
        took = next(turns)
        return {"train_s": took, "cpu_s": took / 2, "state_sha256": state}

    return measure


def missing(_: int) -> dict[str, Any]:
    raise MeasurementError("node not found: install it")


def instructions(steps: int) -> dict[str, Any]:
    return {"guest_instructions": 1000 * steps, "state_sha256": "shorter"}


def test_ratios_are_of_the_same_turn_and_long_runs_are_not_repeated() -> None:
    devices = {
        "avx2": Device("host, AVX2", "Host", timed(1.0, 4.0, 2.0)),
        "threads": Device("host, two threads", "HostThreads", timed(2.0, 4.0, 6.0)),
        "exact": Device("node, exact fma", "WebAssembly", timed(90.0)),
        "wrong": Device("a wrong one", "Host", timed(1.0, state="0123456789abcdef")),
        "node": Device("node", "WebAssembly", missing),
        "board": Device("a board", "CortexM7", instructions, is_emulated=True),
    }
    steps_of = {name: 300 if name == "board" else 10_000 for name in devices}
    states = {10_000: "same", 300: "shorter"}
    turns = vertical.take_turns(devices, steps_of, states, 3)
    rows = {row["name"]: row for row in vertical.summary(devices, steps_of, turns)}
    took = ("train_s", "ratio", "cpu_s", "cpu_ratio")
    assert tuple(rows["avx2"][key] for key in took) == (2.0, 1.0, 1.0, 1.0)
    assert (rows["threads"]["train_s"], rows["threads"]["ratio"]) == (4.0, 2.0)  # of 2, 1 and 3
    assert (rows["exact"]["runs"], rows["exact"]["ratio"]) == (1, 90.0)
    assert (rows["board"]["steps"], rows["board"]["guest_instructions"]) == (300, 300_000)
    assert not {"train_s", "ratio"} & set(rows["board"]), "instructions are no time"
    for name in ("wrong", "node"):
        assert not {"train_s", "state_sha256"} & set(rows[name])
    assert rows["wrong"]["error"] == "ended in other bits, 0123456789ab instead of same"
