"""rlt.train, on fake boards and on this machine; rlt.evaluate; where the package is found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import rlt
import rlt.api
from rltools_host.commands import train as train_command
from rltools_host.runs.folder import RunFolder
from rltools_host.tree import TREE
from training_bench import PAUSED_BOARD, Bench, interrupt_at, is_valid, saved_checkpoint


def train_fake(out: Path | None = None, **options: Any) -> rlt.Run:
    options = {"board": "host", "quiet": True, **options}
    if "resume" not in options:
        options = {"task": "fake-td3", "seed": 3, "out": out, **options}
    return rlt.train(**options)


def test_a_run_and_its_summary(
    bench: Bench, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = train_fake(tmp_path / "run", settings={"report_every": 50, "learning_rate": 2e-3})
    assert run.path == tmp_path / "run"
    assert run.summary["step"] == 1000
    assert run.summary["state_sha256"] == saved_checkpoint(run.path).state_sha256
    values = is_valid(run.path)["hyperparameters"]
    assert (values["report_every"], values["learning_rate"]) == (50, 0.002)
    assert capfd.readouterr() == ("", "")
    assert list(run.path.glob("events*"))
    assert bench.built == 1


def test_ctrl_c_saves_a_checkpoint_to_go_on_from(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.options = PAUSED_BOARD
    with monkeypatch.context() as patch:
        patch.setattr(rlt.api, "Screen", lambda view: interrupt_at(200)(view, sys.stdout))
        patch.setattr(train_command, "make_screen", interrupt_at(200))
        with pytest.raises(rlt.Interrupted, match="checkpoint saved") as caught:
            train_fake(tmp_path / "run", settings={"report_every": 20})
    bench.options = {}
    assert caught.value.details["run"] == str(tmp_path / "run")
    assert 200 <= saved_checkpoint(tmp_path / "run").step < 1000
    assert train_fake(resume=caught.value.details["run"]).summary["step"] == 1000
    run = rlt.Run(tmp_path / "run", {})
    assert train_fake(resume=run, steps=1100).summary["step"] == 1100
    again = train_fake(tmp_path / "again", steps=1100)
    assert again.summary["state_sha256"] == saved_checkpoint(tmp_path / "run").state_sha256


def test_a_policy_that_was_trained_here_acts(tmp_path: Path) -> None:
    run = rlt.train("pendulum-td3", board="host", seed=1, steps=200, out=tmp_path / "r", quiet=True)
    assert run.policy.step == 200
    assert run.policy.image.state_sha256 == run.summary["state_sha256"]
    assert RunFolder.open(run.path).content.state == "finished"
    env = rlt.make("Pendulum-v1", num_envs=5, threads=2)
    observations, _ = env.reset(seed=0)
    actions = run.policy(observations)
    assert actions.shape == env.action_space.shape
    assert env.action_space.contains(actions)
    returns = [rlt.evaluate(each, "gym:Pendulum-v1", 2) for each in (run.policy, run, run.path)]
    assert len({tuple(each) for each in returns}) == 1


# -- returns ---------------------------------------------------------------------------------------


def test_returns_are_those_of_gymnasium_s_episodes() -> None:
    def policy(observation: Any) -> Any:
        return -observation[2:]

    setattr(policy, "episode", 3)  # noqa: B010 - its own business
    returns = rlt.evaluate(policy, "Pendulum-v1", episodes=3, seed=10)
    for i in range(3):
        env = gymnasium.make("Pendulum-v1")
        observation, _ = env.reset(seed=10 + i)
        rewards = []
        for _ in range(200):
            observation, reward, _, truncated, _ = env.step(policy(observation))
            rewards.append(reward)
        assert truncated
        assert returns[i] == pytest.approx(sum(rewards))
    env = gymnasium.make("rlt/Pendulum-v1", max_episode_steps=20)
    short = rlt.evaluate(policy, env, 2)
    assert short.shape == (2,)
    assert (short > -20 * 16.3).all()
    env.reset()  # is not closed: it is the caller's
    with pytest.raises(rlt.RltError, match="episodes=0: give a whole number from 1"):
        rlt.evaluate(policy, env, 0)


# -- the package -----------------------------------------------------------------------------------


def test_it_is_found_beside_the_host_package(tmp_path: Path) -> None:
    """Anywhere, by the path file that the set-up writes into .venv."""
    code = "import rlt, gymnasium; print(rlt.__file__); gymnasium.spec('rlt/Pendulum-v1')"
    command = [sys.executable, "-I", "-c", code]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()).resolve() == TREE.root / "host" / "rlt" / "__init__.py"
    code = "import gymnasium; gymnasium.make('rlt:rlt/Pendulum-v1').reset(seed=0)"
    subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, check=True, timeout=250)


# -- several seeds ---------------------------------------------------------------------------------


def make_pendulum() -> Any:
    return gymnasium.make("Pendulum-v1", max_episode_steps=20)


def test_a_run_for_each_seed(tmp_path: Path) -> None:
    group = rlt.train(
        "pendulum-td3", board="host", seeds=(3, 5), steps=120, out=tmp_path / "g", quiet=True
    )
    assert isinstance(group, rlt.Group)
    assert [run.path.name for run in group.runs] == ["s3", "s5"]
    alone = rlt.train(
        "pendulum-td3", board="host", seed=5, steps=120, out=tmp_path / "r", quiet=True
    )
    assert group.runs[1].summary["state_sha256"] == alone.summary["state_sha256"]
    assert group.runs[1].policy.step == 120
    assert group.summary["summary"][0]["runs"] == 2
    again = rlt.train(resume=group, steps=150, quiet=True)
    assert isinstance(again, rlt.Group)
    assert [run.summary["step"] for run in again.runs] == [150, 150]


@pytest.mark.all  # a program is compiled
def test_a_function_with_several_seeds(tmp_path: Path) -> None:
    """Its environments are in this process; each run has the bits of one that is trained alone."""
    asked: dict[str, Any] = {"hidden": (8, 8), "quiet": True, "name": "Seeds"}
    path = tmp_path / "g"
    group = rlt.train(make_pendulum, seeds=[1, 2], steps=120, out=path, **asked)
    alone = rlt.train(make_pendulum, seed=2, steps=120, out=tmp_path / "r", **asked)
    assert group.runs[1].summary["state_sha256"] == alone.summary["state_sha256"]
    again = rlt.train(make_pendulum, resume=group, steps=150, quiet=True)
    assert isinstance(again, rlt.Group)
    assert [run.summary["step"] for run in again.runs] == [150, 150]
    with pytest.raises(rlt.RltError, match=r"go on there with rlt\.train\(make_env"):
        rlt.train(resume=group, steps=200)


@pytest.mark.all  # a program is compiled
def test_ctrl_c_pauses_a_function_s_seeds(tmp_path: Path) -> None:
    steps = 0

    class Interrupting(gymnasium.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == 1500:
                os.kill(os.getpid(), signal.SIGINT)
            return self.env.step(action)

    def make() -> Any:
        return Interrupting(make_pendulum())

    asked: dict[str, Any] = {"quiet": True, "name": "Seeds", "hidden": (8, 8)}
    with pytest.raises(rlt.Interrupted, match="paused: 0 of 2 runs have finished") as caught:
        rlt.train(make, seeds=[1, 2], steps=100_000, out=tmp_path / "g", **asked)
    assert [run["state"] for run in caught.value.details["runs"]] == ["paused", "waiting"]
