"""The harness: turns of contenders, programs that end with it, peers as they are pinned."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import harness, ppo, train
from benchmarks.harness import Contender
from rltools_host.build import experiments
from rltools_host.tree import TREE
from waiting import is_running, wait_for

IMPORTS = """
import os, sys, time
import numpy as np
from turns import TrainingTurns, Turns
"""
ECHO = """
turns = Turns()
print("a library says something")
turns.say({"version": "1"})
while True:
    words = turns.order()
    print("and more", flush=True)
    if words[0] == "die":
        sys.exit("out of luck")
    if words[0] == "sleep":
        time.sleep(60)
    if words[0] == "text":
        turns._answers.write("no JSON\\n")
        turns._answers.flush()
        continue
    time.sleep(float(words[0]))
    turns.say({"said": words, "pid": os.getpid()})
"""


class Made:
    """Contenders of a test, ended with it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.all: list[Contender] = []

    def __call__(self, script: str, limit_s: float = 60.0) -> Contender:
        path = self.directory / f"{len(self.all)}.py"
        path.write_text(IMPORTS + script)
        variables = {"PYTHONPATH": str(harness.PEERS)}
        command = [sys.executable, str(path)]
        contender = Contender("it", command, variables, path.with_suffix(".log"), limit_s)
        self.all.append(contender)
        return contender


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Made]:
    made = Made(tmp_path)
    yield made
    for contender in made.all:
        contender.end()


def state_of(pid: int) -> str:
    """T where it is stopped."""
    for _ in range(3000):  # a minute
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        if state == "T":
            return state
        time.sleep(0.02)
    return state


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_who_waits_is_stopped(make: Made) -> None:
    one, other = make(ECHO), make(ECHO)
    pids = [contender.turn("0", 60)["pid"] for contender in (one, other)]
    assert [state_of(pid) for pid in pids] == ["T", "T"]
    assert one.turn("0", 60)["pid"] == pids[0], "it does not go on"
    one.end()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


BENCHMARK = """
import sys
from benchmarks.harness import run_to_end
SLEEPS = "import os, time; print(os.getpid(), file=open(sys.argv[1] + '.new', 'w'));"
SLEEPS = "import sys;" + SLEEPS + "os.rename(sys.argv[1] + '.new', sys.argv[1]); time.sleep(60)"
run_to_end("p", [sys.executable, "-c", SLEEPS, sys.argv[1]], 60.0)
"""


def test_who_is_killed_leaves_no_program_behind(tmp_path: Path) -> None:
    (tmp_path / "bench.py").write_text(BENCHMARK)
    said = tmp_path / "pids"
    command = [sys.executable, str(tmp_path / "bench.py"), str(said)]
    folders = os.pathsep.join([str(TREE.root), str(TREE.root / "host")])
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": folders}) as bench:
        wait_for(said.exists)
        bench.kill()
    pids = [int(word) for word in said.read_text().split()]
    wait_for(lambda: not any(is_running(pid) for pid in pids), 30.0)


def test_evaluation_of_peers_is_gymnasium_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """All episodes at once give the returns of one after another."""
    import gymnasium
    import numpy as np

    monkeypatch.syspath_prepend(str(harness.PEERS))
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
        ("pendulum-td3", "policy_delay action_noise target_policy_noise target_noise_clip"),
        ("pendulum-sac", "alpha target_entropy"),
    ],
)
def test_peers_have_the_experiment_s_settings(
    experiment: str, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(harness.PEERS))
    import peer_run

    settings = peer_run.Settings(seed=0, steps=1)
    description = experiments.describe(experiment)
    for name in ("learning_starts", "learning_rate", "gamma", "tau", *names.split()):
        default = description.hyperparameter(name).default
        assert getattr(settings, name) == pytest.approx(default), name
    document = description.document
    sizes = document["sizes"]
    assert settings.batch_size == sizes["batch_size"]
    assert settings.buffer_size == sizes["buffer_size"]
    assert settings.hidden == tuple(document["networks"]["actor"]["dimensions"][1:-1])
    assert description.hyperparameter("steps").default == train.STEPS


def test_peers_of_ppo_have_the_experiment_s_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco", reason="MuJoCo is not installed")
    monkeypatch.syspath_prepend(str(harness.PEERS))
    import ppo_run

    settings = ppo_run.Settings(seed=0, threads=1, published=False, steps=1)
    description = experiments.describe("ant-ppo")
    names = (
        *("n_epochs", "learning_rate", "gamma", "gae_lambda", "clip_range", "vf_coef"),
        *("max_grad_norm", "log_std_init", "reward_scale", "target_kl"),
    )
    for name in names:
        default = description.hyperparameter(name).default
        assert getattr(settings, name) == pytest.approx(default), name
    document = description.document
    assert settings.n_steps == 2 * document["sizes"]["n_steps"]
    assert settings.batch_size == 2 * document["sizes"]["batch_size"]
    for network in ("actor", "critic"):
        assert settings.hidden == tuple(document["networks"][network]["dimensions"][1:-1])
    assert settings.environments * settings.n_steps == ppo.ITERATION_STEPS
    assert ppo_run.OBSERVATION_DIM == ppo.OBSERVATION_DIM
