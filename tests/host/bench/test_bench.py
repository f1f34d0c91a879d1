"""`rlt bench`: the benchmarks run and say what they promise; nothing here asserts a time."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rltools_host import cli
from rltools_host.bench import airframes, build_times, contenders, harness, ppo_result, training
from rltools_host.bench import inference as bench_inference
from rltools_host.bench import layers as bench_layers
from rltools_host.bench import roofline as bench_roofline
from rltools_host.boards.description import load_board
from rltools_host.build import cmake, experiments, firmware
from rltools_host.errors import UsageError, VerificationError
from rltools_host.toolchain import tools
from stub_peers import add_peer

PHASES = [
    "act",
    "simulate",
    "sample",
    "target values",
    "critic forward",
    "critic backward",
    "actor",
    "optimiser",
    "targets",
]
BUILD_TIMES = {
    "from_nothing_s": 6.0,
    "unchanged_start_s": 0.2,
    "changed_header_start_s": 3.0,
    "experiment": "pendulum-td3",
    "header": "td3.h",
    "repetitions": 1,
}
STUB = """
import json, sys
steps = int(sys.argv[sys.argv.index("--steps") + 1])
seed = int(sys.argv[sys.argv.index("--seed") + 1])
print("a line that is not the measurement")
print(json.dumps({"version": "1.2", "setup_s": 0.5, "train_s": steps / 8, "return_mean": -150.0,
                  "seed": seed}))
"""


@pytest.mark.all
def test_roofline_measures_every_phase(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--steps", "150", "--repetitions", "2", "--buffer-mb", "1", "--json"]
    assert cli.run(["bench", "roofline", *words]) == 0
    out = capsys.readouterr().out
    document = json.loads(out.splitlines()[-1])
    assert [phase["name"] for phase in document["phases"]] == PHASES
    assert sum(phase["share_of_time"] for phase in document["phases"]) == pytest.approx(1)
    for phase in document["phases"]:
        assert phase["share_of_time"] > 0, phase["name"]
        assert (phase["gflops"] > 0) == (phase["name"] not in ("simulate", "sample"))
    assert document["steps"] == 150
    assert f"; kernels for a core with {document['kind_of_core']}\n" in out
    for key in ("peak_gflops", "achieved_gflops", "share", "bandwidth_gb_s", "step_us"):
        assert document[key] > 0, key
    assert re.search(r"^whole step +100 %", out, re.MULTILINE)
    assert document["two_threads"]["processors"] >= 1
    assert re.search(r"^ +two threads +(?:[\d.]+ s |not measured: )", out, re.MULTILINE)


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
    with pytest.raises(VerificationError, match="other bits"):
        bench_roofline.evaluated({"same_bits": False})


def test_second_thread_on_one_core_is_not_measured() -> None:
    measured = bench_roofline.two_threads(1, [])
    assert measured == {"processors": 1, "ratio": None}
    assert "one core only" in bench_roofline.two_threads_line(measured)


def test_second_thread_is_compared_run_by_run() -> None:
    """The ratio is the runs' median one, and not that of the median times."""
    times = ((0.5, 1.0), (0.9, 1.0), (0.6, 2.0))
    runs = [[{"wall_s": run_s, "state_sha256": ""} for run_s in pair] for pair in times]
    measured = bench_roofline.two_threads(2, [(one, two) for two, one in runs])
    expected = {"processors": 2, "run_s": 0.6, "one_thread_s": 1.0, "ratio": 0.5}
    assert measured == {**expected, "ratios": [0.5, 0.9, 0.3]}
    line = bench_roofline.two_threads_line(measured)
    assert "0.600 s   0.50 of the 1.000 s that one thread takes" in line


def test_second_thread_with_other_bits_is_refused() -> None:
    with pytest.raises(VerificationError, match="two threads ended in other bits"):
        bench_roofline.two_threads(2, [({"state_sha256": "a"}, {"state_sha256": "b"})])


def test_quick_is_refused_where_all_it_says_is_given() -> None:
    request = training.TrainingBenchmark(quick=True, peers="sbx", repetitions=2)
    with pytest.raises(UsageError, match="--quick has no effect beside --peers and --repetitions"):
        training.run(request)


def test_no_repetitions_are_refused() -> None:
    with pytest.raises(UsageError, match="repetitions"):
        training.run(training.TrainingBenchmark(repetitions=0))


def test_a_whole_comparison_draws_no_chart_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`docs/images` of the checkout is not changed by a measurement."""
    monkeypatch.setattr(build_times, "build_times", lambda *_: BUILD_TIMES)
    monkeypatch.setattr(training, "peer", lambda *_: pytest.fail("not called"))
    monkeypatch.setattr(firmware, "build_firmware", lambda *_: None)
    monkeypatch.setattr(harness, "build_program", lambda _: None)
    rows = [{"name": "ours", "error": "x"}]
    monkeypatch.setattr(training, "take_turns", lambda *_: rows)
    drawn: list[Path] = []
    monkeypatch.setattr(training, "draw_chart", lambda _, path: drawn.append(path))
    (tmp_path / "peers").mkdir()
    for chart in (None, tmp_path / "chart.svg"):
        training.run(
            training.TrainingBenchmark(
                chart=chart, peers_directory=tmp_path / "peers", environments_directory=tmp_path
            )
        )
    assert drawn == [tmp_path / "chart.svg"]


@pytest.mark.all
def test_train_compares_and_goes_on_without_who_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_times, "build_times", lambda *_: BUILD_TIMES)
    peers, environments = tmp_path / "peers", tmp_path / "environments"
    add_peer(peers, environments, "stub", STUB, "td3.py")
    add_peer(peers, environments, "silent", "print('nothing')", "td3.py")
    add_peer(peers, environments, "broken", "raise SystemExit('out of luck')", "td3.py")
    (peers / "missing").mkdir()
    (peers / "missing" / "td3.py").write_text(STUB)
    (peers / "missing" / "requirements.txt").write_text("./no-such-package\n")
    chart = tmp_path / "chart.svg"
    document = training.run(
        training.TrainingBenchmark(
            repetitions=2,
            steps=120,
            episodes=2,
            chart=chart,
            peers_directory=peers,
            environments_directory=environments,
        )
    )
    out = capsys.readouterr().out
    entries = {entry["name"]: entry for entry in document["summary"]}
    assert entries["stub"]["train_s"] == 15
    assert entries["stub"]["version"] == "1.2"
    assert entries["stub"]["times_ours"] == 15 / entries["ours"]["train_s"]
    assert entries["ours"]["return_mean"] < 0
    assert entries[training.LOOP]["train_s"] > 0
    assert "printed no measurement" in entries["silent"]["error"]
    assert "out of luck" in entries["broken"]["error"]
    assert "cannot be installed" in entries["missing"]["error"]
    names = [row["name"] for row in document["rows"] if "error" not in row]
    assert names == 2 * ["ours", training.LOOP, "stub"], "they do not take turns"
    assert [row["seed"] for row in document["rows"] if row["name"] == "ours"] == [0, 1]
    assert "Pendulum-v1" in chart.read_text()
    assert document["build"] == BUILD_TIMES
    assert document["overhead"]["host_cpu"] > 0
    assert f"add {100 * document['overhead']['wall']:.1f} % to the loop's time" in out
    assert f"time is {100 * document['overhead']['host_cpu']:.1f} % of the loop's" in out
    stored = training.result_path("td3", environments)
    assert json.loads(stored.read_text()) == document


@pytest.mark.all
def test_train_runs_the_other_algorithm_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_times, "build_times", lambda *_: BUILD_TIMES)
    peers, environments = tmp_path / "peers", tmp_path / "environments"
    add_peer(peers, environments, "pytorch", STUB, "sac.py")
    add_peer(peers, environments, "without", STUB, "td3.py")
    document = training.run(
        training.TrainingBenchmark(
            quick=True,
            steps=110,
            episodes=1,
            algorithm="sac",
            peers_directory=peers,
            environments_directory=environments,
        )
    )
    assert [row["name"] for row in document["rows"]] == ["ours", training.LOOP, "pytorch"]
    assert document["rows"][2]["train_s"] == 110 / 8
    assert capsys.readouterr().out.startswith("SAC on Pendulum-v1, 110 steps")
    assert training.result_path("sac", environments).is_file()
    assert not training.result_path("td3", environments).exists()


def test_peers_are_those_with_a_script_of_the_algorithm(tmp_path: Path) -> None:
    add_peer(tmp_path, tmp_path, "pytorch", STUB, "sac.py")
    add_peer(tmp_path, tmp_path, "without", STUB, "td3.py")
    assert training.peer_names("sac", tmp_path) == ["pytorch"]
    assert training.result_path("sac", tmp_path) != training.result_path("td3", tmp_path)


def test_overhead_is_neither_loop_nor_evaluation() -> None:
    rows: list[dict[str, Any]] = [
        {"name": training.OURS, "train_s": 1.13, "host_cpu_s": 0.02},
        {"name": training.OURS, "train_s": 1.19, "host_cpu_s": 0.5},
        {"name": training.OURS, "train_s": 1.15, "host_cpu_s": 0.01},
        {"name": training.LOOP, "train_s": 1.0, "evaluations_s": 0.12, "cpu_s": 0.8},
    ]
    expected = {"wall": 0.03, "host_cpu": 0.025}
    assert training.overhead(rows) == pytest.approx(expected)
    assert training.overhead([*rows[:3], {"name": training.LOOP, "error": "x"}]) is None


def test_screen_of_the_measured_run_is_a_terminal() -> None:
    script = "import sys, os; print(os.get_terminal_size(2).columns, file=sys.stderr); print(1)"
    with contenders.terminal() as screen:
        result = harness.run_to_end("x", [sys.executable, "-c", script], 60, error_stream=screen)
    assert (result.returncode, result.stdout) == (0, "1\n")


@pytest.mark.all
def test_build_measures_what_a_user_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    header = build_times.header_of_algorithm("pendulum-td3")
    directory = firmware.build_firmware(load_board("host"), "pendulum-td3").parents[1]
    objects = build_times.objects_of(header, directory, "pendulum-td3")
    assert sorted(path.name for path in objects) == [
        "describe.cpp.o",
        "main.cpp.o",
        "train_step.cpp.o",
    ]
    before = [path.stat().st_mtime_ns for path in objects]
    stamp = cmake.generate_protocol() / "stamp"  # its users are compiled again when it is newer
    generated = stamp.stat().st_mtime_ns
    plain = tmp_path / "compile"  # does not optimise, which is the longest part
    plain.write_text('#!/bin/sh\nexec "$@" -O0\n')
    plain.chmod(0o755)
    monkeypatch.setenv("CMAKE_CXX_COMPILER_LAUNCHER", str(plain))  # of a tree that is configured
    document = build_times.run("pendulum-td3", 1, tmp_path / "build-time")
    assert stamp.stat().st_mtime_ns == generated
    out = capsys.readouterr().out
    for name in ("unchanged_start_s", "changed_header_start_s", "from_nothing_s"):
        assert document[name] > 0
    assert f"built from nothing in {document['from_nothing_s']:.2f} s" in out
    assert document["header"].endswith("rl/algorithms/td3.h")
    after = [path.stat().st_mtime_ns for path in objects]
    assert all(a > b for a, b in zip(after, before, strict=True)), "nothing was built again"


def test_inference_compares_and_refuses_another_network(tmp_path: Path) -> None:
    peers, environments = tmp_path / "peers", tmp_path / "environments"
    script = (bench_inference.PEERS_DIRECTORY / "numpy" / "run.py").read_text()
    other = script.replace("np.float32(0)", "np.float32(-1)", 1)
    add_peer(peers, environments, "numpy", script, "run.py")
    add_peer(peers, environments, "other", other, "run.py")
    document = bench_inference.run(None, 1, peers, environments)
    rows: dict[str, dict[str, Any]] = {row["name"]: row for row in document["rows"]}
    for name in ("ours", "numpy"):
        assert rows[name]["latency_ns"] > 0
        assert rows[name]["batched_ns"] > 0
        assert rows[name]["largest_difference"] <= bench_inference.TOLERANCE
    assert "other computes something else: off by" in rows["other"]["error"]


PRODUCTS = ["forward", "weight gradient", "input gradient"]


def measured_layers(
    capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[dict[str, Any], dict[tuple[int, str], dict[str, Any]]]:
    assert cli.run(["bench", "layers", "--repetitions", "2", "--json", *words]) == 0
    document = json.loads(capsys.readouterr().out.splitlines()[-1])
    rows = {(row["width"], row["product"]): row for row in document["rows"]}
    assert document["peak_gflops"] > 0
    for row in rows.values():
        assert row["ours_gflops"] > 0
        assert row["ours_share"] > 0
    return document, rows


@pytest.mark.all  # as the tests of BLAS's kernels
@pytest.mark.skipif(
    bool(tools.missing_tools(["openblas"])), reason="OpenBLAS is not installed (rlt doctor)"
)
def test_layers_compare_with_blas_and_say_where_it_is_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document, rows = measured_layers(capsys, "--widths", "64,256", "--batches", "100")
    assert set(rows) == {(width, product) for width in (64, 256) for product in PRODUCTS}
    for (width, _), row in rows.items():
        assert row["blas_gflops"] > 0
        assert row["blas_share"] > 0
        assert row["blas_is_selected"] == (width == 256)
    assert document["blas"]["library"].startswith("OpenBLAS")
    assert document["without_blas"] is None
    # BLAS's products have the bias added last, ours begin with it: these are two kernels.
    assert 0 < rows[256, "forward"]["largest_difference"] < 1e-5


def test_layers_without_blas_are_ours_alone_and_the_reason_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tools, "missing_names", lambda names: list(names))
    document, rows = measured_layers(capsys, "--widths", "16", "--batches", "32", "--zeros", "50")
    assert set(rows) == {(16, product) for product in PRODUCTS}
    assert not any("blas_gflops" in row for row in rows.values())
    assert document["blas"] is None
    assert document["zeros_percent"] == 50
    assert "not measured: openblas is not installed" in "\n".join(bench_layers.lines(document))
    network = document["recurrent"]
    assert network["lanes"] == document["vector_lanes"]
    assert 0 < network["forward_ns"] < network["step_ns"]
    assert 0 < network["step_share"] < 1


def test_the_networks_share_counts_two_operations_a_multiply_add() -> None:
    raw = {
        "network": "2-GRU1-1",
        "windows": 3,
        "steps": 4,
        "lanes": 16,
        "forward_multiply_adds": 100,
        "multiply_adds": 300,
        "peak_gflops": [40.0, 50.0],
        "forward_ns": [10.0, 8.0],
        "step_ns": [30.0, 40.0],
    }
    row = bench_layers.evaluated_network(raw)
    assert row["forward_ns"] == 9
    assert row["forward_fastest_ns"] == 8
    assert row["forward_share"] == 0.5
    assert row["step_share"] == pytest.approx((0.5 + 0.3) / 2)
    text = "\n".join(bench_layers.network_lines(row))
    assert "2-GRU1-1 over 3 windows of 4 steps" in text
    assert "35 ns" in text


def test_layers_refuse_a_product_that_is_another() -> None:
    product = {
        "name": "forward",
        "ours_gflops": [1.0],
        "blas_gflops": [1.0],
        "blas_is_selected": True,
    }
    for difference in (0.5, float("nan")):
        raw = {"products": [{**product, "largest_difference": difference}], "peak_gflops": [2.0]}
        with pytest.raises(VerificationError, match="another forward for width 256, batch 100"):
            bench_layers.evaluated(raw, 256, 100)


def test_evaluation_of_peers_is_gymnasium_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """All episodes at once give the returns of one after another."""
    import gymnasium
    import numpy as np

    monkeypatch.syspath_prepend(str(harness.PEERS_DIRECTORY))
    import peer_run

    def policy(observations: Any) -> Any:
        return -observations[:, 1:2]

    expected = []
    for seed in range(2):
        environment = gymnasium.make("Pendulum-v1")
        observation, _ = environment.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            action = policy(np.asarray(observation, np.float32)[None])[0]
            observation, reward, terminated, truncated, _ = environment.step(action)
            total += float(reward)
            ended = terminated or truncated
        expected.append(total)
    assert peer_run.episode_returns(policy, "Pendulum-v1", 2) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("experiment", "names"),
    [
        ("pendulum-td3", "policy_delay action_noise policy_noise noise_clip"),
        ("pendulum-sac", "alpha target_entropy"),
    ],
)
def test_peers_have_the_experiment_s_settings(
    experiment: str, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(harness.PEERS_DIRECTORY))
    import peer_run

    settings = peer_run.Settings(seed=0, steps=1)
    description = experiments.describe(experiment)
    for name in ("learning_starts", "learning_rate", "gamma", "tau", *names.split()):
        default = description.hyperparameter(name).default
        assert getattr(settings, name) == pytest.approx(default), name
    document = description.document
    sizes = document["sizes"]
    assert settings.batch_size == sizes["batch_size"]
    assert settings.buffer_size == sizes["replay_capacity"]
    assert settings.hidden == tuple(document["networks"]["actor"]["dimensions"][1:-1])
    assert description.hyperparameter("steps").default == training.STEPS


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(path.parent, id=f"{path.parent.parent.name}/{path.parent.name}")
        for path in sorted(harness.PEERS_DIRECTORY.glob("*/*/requirements.txt"))
    ],
)
def test_every_peer_is_pinned_and_parses(folder: Path) -> None:
    scripts = sorted(path.name for path in folder.glob("*.py"))
    assert {"run.py", "td3.py"} & set(scripts)
    for script in scripts:
        compile((folder / script).read_text(), script, "exec")
    for line in (folder / "requirements.txt").read_text().splitlines():
        assert re.fullmatch(r"[a-z][\w.-]*(\[[\w,]+\])?==\d[\w.]*", line), line
    titles = (training.TITLES, bench_inference.TITLES, ppo_result.TITLES, airframes.TITLES)
    assert any(folder.name in known for known in titles)


def test_unknown_peer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "train", "--peers", "tianshuo"]) == 2
    assert "did you mean tianshou?" in capsys.readouterr().err
    assert cli.run(["bench", "roofline", "--repetitions", "0"]) == 2


def test_median_of_an_even_count_is_between_the_middle_two() -> None:
    assert harness.median([10.0, 1.0, 4.0, 2.0]) == 3.0
    assert harness.median([5.0, 1.0, 2.0]) == 2.0
