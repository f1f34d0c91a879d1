"""`rlt bench ppo`: contenders take turns and are compared turn by turn; nothing asserts a time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rltools_host import cli
from rltools_host.bench import contenders, harness, ppo, ppo_result
from rltools_host.bench.contenders import OURS, ROLLOUT, TRAIN, Setting
from rltools_host.bench.harness import Contender
from rltools_host.build import experiments
from stub_peers import add_peer

# A peer that does 10 steps at once, whose returns are 40 times the number of the step.
STUB = """
import sys
import numpy as np
import ppo_run
settings = ppo_run.settings()
turns = ppo_run.TrainingTurns(10)
turns.say({"version": "1.2", "observation_dim": %(observations)d, "action_dim": 8,
           "threads": {"it": settings.threads + %(more_threads)d}, "simulator": "none",
           "settings": "published" if settings.published else "shared"})
step = 0
while True:
    turns.begin_iteration()
    if %(fails)d and step:
        sys.exit("out of luck")
    for _ in range(3):
        step += 1
        turns.add_step(np.full(10, 40.0 * step), np.full(10, True))
"""


def stub(observations: int = 27, more_threads: int = 0, fails: int = 0) -> str:
    return STUB % {"observations": observations, "more_threads": more_threads, "fails": fails}


def add_ppo_peer(root: Path, name: str, script: str) -> None:
    add_peer(root / "peers", root / "ppo", name, script, "run.py")


def with_stubs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of what needs MuJoCo: peers of these names."""
    for name in (OURS, TRAIN, ROLLOUT):
        add_ppo_peer(root / "own", name, stub())

    def starter(name: str) -> Any:
        def start(setting: Setting, _: Path) -> Contender:
            own = root / "own"
            return contenders.start_peer(name, setting, own / "ppo", own / "peers")

        return start

    monkeypatch.setattr(contenders, "start_ours", starter(OURS))
    monkeypatch.setattr(contenders, "start_train", starter(TRAIN))
    monkeypatch.setattr(contenders, "start_rollout", starter(ROLLOUT))
    monkeypatch.setattr(ppo, "ITERATION_STEPS", 30)


@pytest.mark.all
def test_contenders_take_turns_and_who_fails_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_stubs(tmp_path, monkeypatch)
    add_ppo_peer(tmp_path, "pytorch", stub())
    add_ppo_peer(tmp_path, "envpool", stub())
    add_ppo_peer(tmp_path, "other_task", stub(observations=111))
    add_ppo_peer(tmp_path, "greedy", stub(more_threads=1))
    add_ppo_peer(tmp_path, "broken", stub(fails=1))
    (tmp_path / "peers" / "missing").mkdir()
    (tmp_path / "peers" / "missing" / "run.py").write_text(stub())
    (tmp_path / "peers" / "missing" / "requirements.txt").write_text("./no-such-package\n")
    chart = tmp_path / "chart.svg"
    document = ppo.run(
        ppo.PpoBenchmark(
            threads=1,
            rounds=2,
            turn_steps=50,
            chart=chart,
            peers_directory=tmp_path / "peers",
            directory=tmp_path / "ppo",
        )
    )
    out = capsys.readouterr().out
    order = [(row["turn"], row["name"]) for row in document["rows"]]
    names = [OURS, TRAIN, "pytorch", "envpool", ROLLOUT]
    assert order == [(turn, name) for turn in (1, 2) for name in names]
    assert {row["steps"] for row in document["rows"]} == {60}, "whole iterations of 30"
    errors = document["errors"]
    assert sorted(errors) == ["broken", "greedy", "missing", "other_task"]
    assert "out of luck" in errors["broken"]
    assert errors["greedy"] == "greedy computes with other threads than 1: {'it': 2}"
    assert "cannot be installed" in errors["missing"]
    assert "111 observations and 8 actions, Ant-v4 27 and 8" in errors["other_task"]
    for reason in errors.values():
        assert reason in out
    assert "Against the fastest library, PyTorch, single file: " in out
    rows = [re.split("  +", line) for line in out.splitlines()]
    (row,) = [row for row in rows if row[0] == "PyTorch, single file"]
    assert row[1:4] == ["1.2", "none", "shared"], "version, simulator, settings, as it says"
    assert "rollouts of" not in out
    assert "this repository" in chart.read_text()
    assert json.loads(ppo.result_path(tmp_path / "ppo").read_text())["rounds"] == 2


def test_time_to_a_return_is_that_of_the_iteration_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stub's last 100 episodes are those of ten steps: their mean is 40 (step - 4.5)."""
    with_stubs(tmp_path, monkeypatch)
    monkeypatch.setattr(ppo, "RETURNS", (200.0, 500.0))
    add_ppo_peer(tmp_path, "pytorch", stub())
    add_ppo_peer(tmp_path, "envpool", stub())
    document = ppo.run(
        ppo.PpoBenchmark(
            threads=1,
            turn_steps=60,
            to_return=True,
            steps=150,
            peers_directory=tmp_path / "peers",
            directory=tmp_path / "ppo",
        )
    )
    assert [entry["name"] for entry in document["summary"]] == [OURS, "pytorch"], "who learns"
    for entry, row in zip(document["summary"], document["curves"], strict=True):
        assert entry["settings"] == "published"
        curve = row["curve"]
        assert [point["steps"] for point in curve] == [30, 60, 90, 120, 150]
        means = [point["return_mean"] for point in curve]
        assert means == [None, None, None, pytest.approx(300), pytest.approx(420)]
        seconds = [point["train_s"] for point in curve]
        assert seconds == sorted(seconds)
        assert seconds[-1] <= entry["train_s"]
        first, second = entry["reached"]
        assert first == {"return": 200.0, "train_s": seconds[3], "steps": 120}
        assert second is None
    out = capsys.readouterr().out
    assert "not reached" in out
    assert ppo.result_path(tmp_path / "ppo", to_return=True).is_file()
    chart = tmp_path / "chart.svg"
    assert ppo_result.draw_returns(document, chart)
    assert "to a mean training return of 200" in chart.read_text()
    chart.unlink()
    assert not ppo_result.draw_returns({**document, "summary": []}, chart)
    assert not chart.exists()


def test_threads_of_peers_sleep_unless_the_caller_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = Setting(threads=3, seed=0, steps=1, published=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    variables = contenders.script_variables(setting)
    assert (variables["OMP_WAIT_POLICY"], variables["OMP_NUM_THREADS"]) == ("PASSIVE", "3")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert contenders.script_variables(setting)["OMP_WAIT_POLICY"] == "ACTIVE"


def rows_of(name: str, seconds: list[float]) -> list[dict[str, Any]]:
    return [
        {"name": name, "turn": turn, "steps": 100, "wall_s": wall_s, "cpu_s": 2 * wall_s}
        for turn, wall_s in enumerate(seconds, 1)
    ]


def test_ratios_are_those_of_neighbours() -> None:
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
    entries = ppo_result.summary(rows, said, {"lost": "why"})
    assert [entry["name"] for entry in entries] == [OURS, TRAIN, "fast", "slow", ROLLOUT, "lost"]
    ours, train, fast, slow, rollout, lost = entries
    assert ours["steps_s"] == 100
    assert ours["of_rollout"] == pytest.approx(0.8)
    assert fast["ours_times"] == pytest.approx(2)
    assert slow["ours_times"] == pytest.approx(10)
    assert rollout["of_rollout"] == 1
    assert ours["cpu_us_a_step"] == pytest.approx(2e4)
    assert lost == {"name": "lost", "title": "lost", "error": "why"}
    assert train["cpu_us_a_step"] is None
    assert [entry["settings"] for entry in entries[:-1]] == [
        f"those of {entry['name']}" for entry in entries[:-1]
    ]
    assert ppo_result.best_peer(entries) == fast
    assert ppo_result.best_peer([ours, train, rollout, lost]) is None


def test_a_return_is_reached_once() -> None:
    curve = [{"steps": i, "return_mean": mean} for i, mean in enumerate([None, 1.0, 5.0, 2.0])]
    assert ppo_result.reached(curve, 5.0) == curve[2]
    assert ppo_result.reached(curve, 1.5) == curve[2]
    assert ppo_result.reached(curve, 5.1) is None
    assert ppo_result.is_done(curve, 100, (1.0, 5.0))
    assert not ppo_result.is_done(curve, 100, (1.0, 6.0))
    assert ppo_result.is_done(curve, 3, (1.0, 6.0))
    assert not ppo_result.is_done([], 3, (1.0,))


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


def test_unknown_peer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bench", "ppo", "--peers", "rl_game"]) == 2
    assert "did you mean rl_games?" in capsys.readouterr().err
    assert cli.run(["bench", "ppo", "--threads", "0"]) == 2


# -- with MuJoCo ----------------------------------------------------------------------------------


def test_peers_have_the_experiment_s_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    monkeypatch.syspath_prepend(str(harness.PEERS_DIRECTORY))
    import ppo_run

    settings = ppo_run.Settings(seed=0, threads=1, published=False, steps=1)
    description = experiments.describe("ant-ppo")
    names = (
        *("epochs", "learning_rate", "gamma", "gae_lambda", "clip_range", "value_weight"),
        *("max_grad_norm", "initial_log_std", "reward_scale", "kl_target"),
    )
    for name in names:
        default = description.hyperparameter(name).default
        assert getattr(settings, name) == pytest.approx(default), name
    document = description.document
    assert settings.rollout_steps == 2 * document["sizes"]["rollout_steps"]
    assert settings.batch_size == 2 * document["sizes"]["batch_size"]
    for network in ("actor", "critic"):
        assert settings.hidden == tuple(document["networks"][network]["dimensions"][1:-1])
    assert settings.environments * settings.rollout_steps == ppo.ITERATION_STEPS
    assert ppo_run.OBSERVATION_DIM == contenders.OBSERVATION_DIM


@pytest.mark.all
def test_our_loop_and_the_rollout_do_what_they_say(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    (tmp_path / "peers").mkdir()
    document = ppo.run(
        ppo.PpoBenchmark(
            threads=2,
            rounds=1,
            turn_steps=5000,
            peers_directory=tmp_path / "peers",
            directory=tmp_path / "ppo",
        )
    )
    assert document["errors"] == {}
    assert [row["name"] for row in document["rows"]] == [OURS, TRAIN, ROLLOUT]
    sizes = experiments.describe("ant-ppo").document["sizes"]
    iteration = 64 * sizes["rollout_steps"]  # 5,000 steps are done in whole ones
    of_ours = -(-5000 // iteration) * iteration
    steps = [row["steps"] for row in document["rows"]]
    assert steps == [of_ours, of_ours, 2 * ppo.ITERATION_STEPS]
    ours = document["contenders"][OURS]
    assert (ours["observation_dim"], ours["threads"]) == (27, {"host-threads": 2})
    assert ours["simulator"] == document["contenders"][ROLLOUT]["simulator"]
    assert document["rows"][0]["episodes"] > 50, "ants of a new policy fall within 200 steps"
