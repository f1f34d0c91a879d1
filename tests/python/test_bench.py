"""`rlt bench`: the benchmarks run and say what they promise; nothing here asserts a time."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rltools_host import bench, bench_inference, bench_roofline, bench_train, build, cli, paths
from rltools_host.errors import VerificationError

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
STUB = """
import json, sys
steps = int(sys.argv[sys.argv.index("--steps") + 1])
seed = int(sys.argv[sys.argv.index("--seed") + 1])
print("a line that is not the measurement")
print(json.dumps({"version": "1.2", "setup_s": 0.5, "train_s": steps / 8, "return_mean": -150.0,
                  "seed": seed}))
"""


def add_peer(peers: Path, environments: Path, name: str, script: str) -> None:
    """A peer whose environment is there already: this interpreter with what it has installed."""
    (peers / name).mkdir(parents=True)
    (peers / name / "run.py").write_text(script)
    (peers / name / "requirements.txt").write_text("# nothing\n")
    environment = environments / name
    (environment / "bin").mkdir(parents=True)
    python = environment / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (environment / "rlt-requirements.txt").write_text("# nothing\n")


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
    for key in ("peak_gflops", "achieved_gflops", "share", "bandwidth_gb_s", "step_us"):
        assert document[key] > 0, key
    assert document["share"] < 1.2  # more than the peak is a mistake in the count
    assert re.search(r"^whole step +100 %", out, re.MULTILINE)


def test_roofline_counts_the_arithmetic_of_the_shapes() -> None:
    """Counted a second time, from the description of the experiment."""
    document = build.describe("pendulum-td3").document
    batch = document["batch_size"]

    def products(network: str) -> list[int]:
        widths = document[network]["dimensions"]
        return [a * b for a, b in itertools.pairwise(widths)]

    actor, critic = products("actor"), products("critic")
    expected = {
        "target values": batch * (sum(actor) + 2 * sum(critic)),
        "critic forward": batch * 2 * sum(critic),
        "critic backward": batch * 2 * (2 * sum(critic) - critic[0]),
        "actor": batch * (3 * sum(actor) - actor[0] + 2 * sum(critic)) / 2,
    }
    raw, _ = bench.run_program("roofline", 300, 1, 1)
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


def test_train_compares_and_goes_on_without_who_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers, environments = tmp_path / "peers", tmp_path / "environments"
    add_peer(peers, environments, "stub", STUB)
    add_peer(peers, environments, "silent", "print('nothing')")
    add_peer(peers, environments, "broken", "raise SystemExit('out of luck')")
    (peers / "missing").mkdir()
    (peers / "missing" / "run.py").write_text(STUB)
    (peers / "missing" / "requirements.txt").write_text("./no-such-package\n")
    chart = tmp_path / "chart.svg"
    document = bench_train.run(
        json_output=True,
        repetitions=2,
        steps=120,
        episodes=2,
        chart=chart,
        peers_directory=peers,
        environments_directory=environments,
    )
    out = capsys.readouterr().out
    assert json.loads(out.splitlines()[-1]) == json.loads(json.dumps(document))
    entries = {entry["name"]: entry for entry in document["summary"]}
    assert entries["stub"]["train_s"] == 15
    assert entries["stub"]["version"] == "1.2"
    assert entries["stub"]["times_ours"] == 15 / entries["ours"]["train_s"]
    assert entries["ours"]["return_mean"] < 0
    assert entries[bench_train.LOOP]["train_s"] > 0
    assert "printed no measurement" in entries["silent"]["error"]
    assert "out of luck" in entries["broken"]["error"]
    assert "cannot be installed" in entries["missing"]["error"]
    names = [row["name"] for row in document["rows"] if "error" not in row]
    assert names == 2 * ["ours", bench_train.LOOP, "stub"], "they do not take turns"
    assert [row["seed"] for row in document["rows"] if row["name"] == "ours"] == [0, 1]
    assert "Pendulum-v1" in chart.read_text()
    assert 0 < document["build"]["unchanged_s"] < document["build"]["from_nothing_s"]


def test_inference_compares_and_refuses_another_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers, environments = tmp_path / "peers", tmp_path / "environments"
    script = (bench_inference.PEERS_DIRECTORY / "numpy" / "run.py").read_text()
    add_peer(peers, environments, "numpy", script)
    add_peer(peers, environments, "other", script.replace("inputs @ weights + bias", "bias", 1))
    document = bench_inference.run(True, None, 1, peers, environments)
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == document
    rows: dict[str, dict[str, Any]] = {row["name"]: row for row in document["rows"]}
    for name in ("ours", "numpy"):
        assert rows[name]["latency_ns"] > 0
        assert rows[name]["batched_ns"] > 0
        assert rows[name]["largest_difference"] <= bench_inference.TOLERANCE
    assert "error" in rows["other"]


def test_evaluation_of_peers_is_gymnasium_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """All episodes at once give the returns of one after another."""
    import gymnasium
    import numpy as np

    monkeypatch.syspath_prepend(str(bench.BENCHMARKS_DIRECTORY))
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


def test_peers_have_the_experiment_s_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(bench.BENCHMARKS_DIRECTORY))
    import peer_run

    settings = peer_run.Settings(seed=0, steps=1)
    description = build.describe("pendulum-td3")
    for name in (
        *("warmup_steps", "learning_rate", "discount", "polyak", "policy_delay"),
        *("exploration_std", "target_std", "target_clip"),
    ):
        default = description.hyperparameter(name).default
        assert getattr(settings, name) == pytest.approx(default), name
    assert settings.batch_size == description.document["batch_size"]
    assert settings.buffer_size == description.document["replay_capacity"]
    assert settings.hidden == tuple(description.document["actor"]["dimensions"][1:-1])
    assert description.hyperparameter("steps").default == bench_train.STEPS


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(script.parent, id=f"{script.parent.parent.name}/{script.parent.name}")
        for script in sorted((paths.REPOSITORY / "benchmarks").glob("*peers/*/run.py"))
    ],
)
def test_every_peer_is_pinned_and_parses(folder: Path) -> None:
    compile((folder / "run.py").read_text(), "run.py", "exec")
    for line in (folder / "requirements.txt").read_text().splitlines():
        assert re.fullmatch(r"[a-z][\w.-]*(\[\w+\])?==\d[\w.]*", line), line
    assert folder.name in {**bench_train.TITLES, **bench_inference.TITLES}


def test_unknown_peer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "train", "--peers", "tianshuo"]) == 2
    assert "did you mean tianshou?" in capsys.readouterr().err
    assert cli.run(["bench", "roofline", "--repetitions", "0"]) == 2


@pytest.mark.parametrize("command", ["roofline", "train", "inference"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", command, "--help"]) == 0
    assert f"Example: rlt bench {command}" in capsys.readouterr().out
