"""Each benchmark runs as a user runs it, and says what it promises; nothing here asserts a time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import neon, ppo, train, vertical
from benchmarks.ppo import OURS, ROLLOUT, TRAIN
from policy_run import make_policy_run
from quadrotor_policies import controller
from rltools_host.build import experiments, tools
from rltools_host.commands import cli
from rltools_host.commands.bench import BENCHMARKS
from rltools_host.drones.flight.gate import load_gate
from rltools_host.tree import TREE

EMULATED_STEPS = 120  # twenty updates, of 10 million instructions each
HASH_120 = "f658ec6c3a62a1952779b41655e043c521809d51019e33c9f6b7c00457489461"
HASH_300 = "1c4d11e54c2ed0c4cc32f7723d81b34e4f39c9fd5d65e6f6d593198ebc4f08e9"
PHASES = [
    *("act", "simulate", "sample", "target values", "critic forward", "critic backward"),
    *("actor", "optimizer", "targets"),
]


def run(name: str, *words: str, code: int = 0) -> dict[str, Any]:
    """Return what `rlt bench NAME --json` printed last."""
    command = [sys.executable, "-m", "rltools_host", "bench", name, *words, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(TREE.root / "host")}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == code, result.stderr
    document: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return document


def rows_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in document["rows"]}


def test_names_are_those_of_the_folder() -> None:
    files = {path.stem.replace("_", "-") for path in (TREE.root / "benchmarks").glob("*.py")}
    assert {*BENCHMARKS, "harness"} == files


def test_a_wheel_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(TREE, "root", tmp_path)
    assert cli.run(["bench", "train"]) == 2
    assert "the benchmarks are in the checkout" in capsys.readouterr().err


def test_what_is_typed_wrong_is_one_sentence_with_the_usual_code() -> None:
    assert "did you mean tianshou?" in run("train", "--peers", "tianshuo", code=2)["error"]
    assert "rlt bench ppo --help" in run("ppo", "--foo", code=2)["error"]


@pytest.mark.all
def test_train() -> None:
    document = run("train", "--peers", "", "--steps", "120", "--repetitions", "2")
    names = [row["name"] for row in document["rows"]]
    assert names == 2 * [train.OURS, train.LOOP], "they do not take turns"
    assert [row["seed"] for row in document["rows"] if row["name"] == train.OURS] == [0, 1]
    for entry in document["summary"]:
        assert entry["train_s"] > 0
    assert document["rows"][0]["return_mean"] < 0
    assert document["overhead"]["host_cpu"] > 0


@pytest.mark.all
@pytest.mark.slow  # the compiler, twice for a large network
def test_ppo() -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    document = run("ppo", "--peers", "", "--rounds", "1", "--turn-steps", "5000")
    assert document["errors"] == {}
    assert [row["name"] for row in document["rows"]] == [OURS, TRAIN, ROLLOUT]
    sizes = experiments.describe("ant-ppo").document["sizes"]
    iteration = 64 * sizes["n_steps"]  # 5,000 steps are done in whole ones
    of_ours = -(-5000 // iteration) * iteration
    steps = [row["steps"] for row in document["rows"]]
    assert steps == [of_ours, of_ours, 2 * ppo.ITERATION_STEPS]
    ours = document["contenders"][OURS]
    assert (ours["observation_dim"], ours["threads"]) == (27, {"host-threads": 2})
    assert ours["simulator"] == document["contenders"][ROLLOUT]["simulator"]
    assert document["rows"][0]["episodes"] > 50, "ants of a new policy fall within 200 steps"


@pytest.mark.all
def test_inference() -> None:
    (ours,) = run("inference", "--peers", "", "--repetitions", "1")["rows"]
    assert ours["latency_ns"] > ours["batched_ns"] > 0


@pytest.mark.all
@pytest.mark.slow  # the same bits on these devices have tests of their own
def test_vertical() -> None:
    """Who is missing is a row with the reason, and everybody else has the hash."""
    asked = [name for name, one in vertical.known_devices().items() if not one.is_emulated]
    words = ["--steps", "300", "--repetitions", "1", "--emulated-steps", str(EMULATED_STEPS)]
    rows = rows_of(run("vertical", *words, "--devices", ",".join([*asked, "qemu-cortex-m7"])))
    assert set(rows) == {*asked, "qemu-cortex-m7"}
    assert "state_sha256" in rows["scalar"]
    emulated = rows["qemu-cortex-m7"]
    assert emulated.get("state_sha256", HASH_120) == HASH_120, emulated
    for row in rows.values():
        assert row is emulated or row.get("state_sha256", HASH_300) == HASH_300, row
        assert ("error" in row) != ("guest_instructions" in row or row.get("train_s", 0) > 0)
    if shutil.which("node") and tools.group_is_installed("zig"):
        assert rows["node-exact"]["cpu_s"] > 0, rows["node-exact"]
    if not tools.missing_names(("chromium",)) and tools.group_is_installed("browser"):
        assert rows["chromium-exact"].get("cpu_s", 0) > 0, rows["chromium-exact"]


@pytest.mark.all
def test_neon() -> None:
    """The row by itself is the faster one by each model, where half of the factors are zero."""
    if not (any(map(shutil.which, neon.ANALYZERS)) and any(map(shutil.which, neon.COMPILERS))):
        pytest.skip("not installed: llvm-mca and a compiler for Arm")
    rows = run("neon")["rows"]
    assert {row["core"] for row in rows} == {*neon.CORES.split(",")}
    for row in rows:
        assert 0.3 < row["nonzero_terms"] < row["over_all_terms"], row
        assert row["over_all_terms"] > 1.2, row


@pytest.mark.all
@pytest.mark.timeout(900)  # with ptxas: five architectures
def test_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU it predicts, and its lanes add as often as the networks' shapes say."""
    tools.ensure_group("zig")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    document = run("gpu", "--experiments", "pendulum-td3")
    assert document["is_prediction"]
    (row,) = document["rows"]
    # 10.1 million operations a step (test_figures.py), two for each multiply-add.
    assert 32 * row["fma"] * row["fma_lanes"] == pytest.approx(10.1e6 / 2, rel=0.1)
    assert row["workers"] + row["leader"] == pytest.approx(row["issued"])
    assert row["fma"] < row["workers"]
    assert row["leader"] < 0.1 * row["workers"]
    assert 0.4 < row["fma_share"] < 0.9
    assert 50 < row["barriers"] < 500
    assert 0 < row["shared_bytes"] <= 160 * 1024
    for each in document["assembled"]:  # where ptxas is installed
        assert 32 < each["registers"] <= 255, each


@pytest.mark.all
@pytest.mark.slow
def test_roofline() -> None:
    document = run("roofline", "--steps", "150", "--repetitions", "2", "--buffer-mb", "1")
    assert [phase["name"] for phase in document["phases"]] == PHASES
    assert sum(phase["share_of_time"] for phase in document["phases"]) == pytest.approx(1)
    for phase in document["phases"]:
        assert phase["share_of_time"] > 0, phase["name"]
        assert (phase["gflops"] > 0) == (phase["name"] not in ("simulate", "sample"))
    for key in ("peak_gflops", "achieved_gflops", "share", "bandwidth_gb_s", "step_us"):
        assert document[key] > 0, key
    assert document["two_threads"]["processors"] >= 1


@pytest.mark.all
def test_any_airframe(tmp_path: Path) -> None:
    flown = str(make_policy_run(tmp_path / "run", controller()))
    words = ["--run", flown, "--alone", flown, "--episodes", "2", "--peers", ""]
    ours, alone = run("any-airframe", *words, "--set", "latency_ms=0")["rows"]
    assert {**ours, "name": 0, "title": 0} == {**alone, "name": 0, "title": 0}
    assert [part["part"] for part in ours["parts"]] == list(load_gate("any-airframe").parts)
    assert all(part["episodes"] == 2 for part in ours["parts"])


@pytest.mark.all
@pytest.mark.slow  # half a minute of frames; the page's tests look at the rest
def test_web() -> None:
    if tools.missing_names(("chromium",)):
        pytest.skip("not installed (rlt doctor): chromium")
    document = run("web", "--memory", "10")
    for key, most_kb in (("page", 300), ("drone_page", 600)):
        assert 100 < document[f"{key}_kb"] <= most_kb
        assert document[f"{key}_compressed_kb"] < document[f"{key}_kb"] / 2
    assert document["hovered"] >= 9
    assert document["frames_per_s"] > 0
    assert document["memory_growth_percent"] < 5.0
