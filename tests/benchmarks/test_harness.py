"""The harness: turns of contenders, programs that end with it, peers as they are pinned."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import harness, ppo, train
from benchmarks.harness import Contender
from rltools_host.build import experiments
from rltools_host.tree import TREE
from waiting import is_running, wait_for

SCRIPT = """
import os
from turns import TrainingTurns
turns = TrainingTurns(1)
print("a library says something")
turns.say({"version": "1"})
while turns.order():
    print("and more", flush=True)
    turns.say({"pid": os.getpid()})
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[], Contender]]:
    """Make contenders, which end with the test."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    variables = {"PYTHONPATH": str(harness.PEERS)}
    with contextlib.ExitStack() as running:

        def make_one() -> Contender:
            command = [sys.executable, str(script)]
            contender = Contender("it", command, variables, tmp_path / "log", 60.0)
            running.callback(contender.end)
            return contender

        yield make_one


def state_of(pid: int) -> str:
    """T where it is stopped."""
    for _ in range(3000):  # a minute
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        if state == "T":
            return state
        time.sleep(0.02)
    return state


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_who_waits_is_stopped(make: Callable[[], Contender]) -> None:
    one, other = make(), make()
    pids = [contender.turn("0")["pid"] for contender in (one, other)]
    assert [state_of(pid) for pid in pids] == ["T", "T"]
    assert one.turn("0")["pid"] == pids[0], "it does not go on"
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
