"""`rlt train foundation-quadrotor` with the real program of this machine: a run of seconds."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from safetensors.numpy import load_file

from rltools_host.build import experiments
from rltools_host.commands import train as train_command
from rltools_host.drones.flight.gate import Gate, load_gate
from rltools_host.errors import Interrupted
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from run_folders import document_of
from training_bench import interrupt_at, metrics
from training_calls import train_here

NAME = "foundation-quadrotor"
MAX_PARAMETERS = 2084  # RAPTOR's policy has as many


def train(out: Path, seed: int, steps: int, *settings: str) -> dict[str, Any]:
    return train_here(NAME, "host", out=out, seed=seed, steps=steps, settings=settings)


def hover(airframes: int) -> Gate:
    """From up to 90 degrees, with the first so many of the gate's airframes."""
    return structs.replace(load_gate("any-airframe").kinds["hover"], episodes=airframes)


@pytest.mark.all  # compiles it
def test_it_trains_with_all_that_the_gate_has() -> None:
    """The gate's distribution or a wider one: a policy is worst at the edges of what it learned."""
    found = {entry.name: entry.default for entry in experiments.describe(NAME).hyperparameters}
    within = {
        "mass": (0.02, 5),
        "lift": (1.5, 5),
        "turn": (40, 1200),
        "lag_up": (0.03, 0.1),
        "lag_down": (0.03, 0.3),
        "yaw": (0.005, 0.05),
    }
    for name, (low, high) in within.items():
        assert found[f"{name}_min"] <= low * (1 + 1e-6), name
        assert found[f"{name}_max"] >= high * (1 - 1e-6), name
    gate = hover(1).settings
    assert found["airframe"] == 9  # the tables too
    assert found["latency_ms"] == gate["latency_ms"] == 20
    assert found["noise"] == gate["noise"] == 1
    assert found["gust_m_s2"] > gate["gust_m_s2"] > 0
    assert 0 < found["table_share"] < 1
    for name in ("start_position", "start_velocity", "start_tilt", "start_rate"):
        assert found[name] >= gate[name], name


@pytest.mark.all  # 19 s of the compiler, once for all tests here
def test_some_thousand_steps(tmp_path: Path) -> None:
    """Of both parts of a run; the policy is small, and flies in the executor. No airframe of the
    gate is drawn, though the run has the gate's seed: evaluations have streams of their own."""
    gate = hover(1000)
    settings = ("teacher_steps=8192", "eval_freq=16384", "n_eval_episodes=2", "table_share=0")
    runs = [train(tmp_path / name, gate.seed, 40960, *settings) for name in ("run0", "run1")]
    assert runs[0]["state_sha256"] == runs[1]["state_sha256"]
    image = read_run_policy(tmp_path / "run0")
    assert image.shape == "17-16-GRU16-4"
    assert image.parameter_count == 1988 <= MAX_PARAMETERS
    assert image.recurrence is not None
    assert image.recurrence.trained_interval_us == 10_000
    image.verify()
    first, second = (hover(5).fly(read_run_policy(tmp_path / run)) for run in ("run0", "run1"))
    assert first.tobytes() == second.tobytes()
    held_out = set(gate.airframes()["mass_kg"].tolist())
    state = load_file(RunFolder.open(tmp_path / "run0").checkpoint_path)
    assert len(held_out) == 1000
    for part in ("", "teacher/"):
        drawn = state[f"{part}environment_parameters/mass_kg"].ravel().tolist()
        assert len(drawn) >= 128
        assert held_out.isdisjoint(drawn), part


@pytest.mark.all  # 4 s of a processor
def test_a_pause_in_the_students_part_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher, steps = 200_000, 1_500_000
    settings = (f"teacher_steps={teacher}", "report_every=50000", "eval_freq=500000")
    settings += ("n_eval_episodes=10",)
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(teacher + 200_000))
        with pytest.raises(Interrupted, match="checkpoint saved"):
            train(tmp_path / "run", 7, steps, *settings)
    paused = document_of(RunFolder.open(tmp_path / "run"))
    assert teacher + 200_000 <= paused["checkpoint_step"] < steps
    resumed = train_here(resume=str(tmp_path / "run"))
    whole = train(tmp_path / "whole", 7, steps, *settings)
    assert paused["state_sha256"] != whole["state_sha256"]
    assert resumed["state_sha256"] == whole["state_sha256"]
    rows = [
        [(row["step"], row["return_mean"]) for row in metrics(tmp_path / run, "evaluation")]
        for run in ("run", "whole")
    ]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 3


@pytest.mark.all  # 4 s of a processor
def test_a_teacher_does_not_learn_to_end_its_episodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a `cost_limit` of 20 the teacher of seed 1001 flew away for all of its 30 M steps, in
    episodes of 53 to 59 steps: that cost less than to be far from the target. Its student learned
    from that for 300 M steps."""
    with monkeypatch.context() as patch:
        patch.setattr(train_command, "make_screen", interrupt_at(1_000_000))
        with pytest.raises(Interrupted, match="checkpoint saved"):
            train(tmp_path / "run", 1001, 300_000_000, "report_every=20000")
    returns = [row["last_return"] for row in metrics(tmp_path / "run", "progress")]
    half = len(returns) // 2
    assert half > 10
    assert statistics.median(returns[half:]) > 100  # 9 where it flies away
