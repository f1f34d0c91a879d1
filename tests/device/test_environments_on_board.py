"""Environments beside the pendulum and the quadrotor, and a recurrent network: learned on an
emulated board and on this machine with the same bits. Most of the actions are choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards_under_test import EMULATED
from rltools_host.commands import cli
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder


@pytest.mark.all
@pytest.mark.parametrize(
    ("experiment", "steps", "epochs", "choices"),
    [
        ("cartpole-dqn", "1200", None, ("left", "right")),
        pytest.param(
            *("acrobot-ppo", "4096", 1, ("clockwise", "none", "counterclockwise")),
            marks=pytest.mark.slow,
        ),
        ("racing-car-ppo", "2048", 1, ()),
    ],
)
def test_learning_has_the_same_bits(
    experiment: str, steps: str, epochs: int | None, choices: tuple[str, ...], tmp_path: Path
) -> None:
    """PPO with one epoch of its ten: test_ppo_on_board.py has two."""
    images = []
    settings = ["--set", f"eval_freq={steps}", "--set", "n_eval_episodes=1", "--no-tensorboard"]
    settings += [] if epochs is None else ["--set", f"n_epochs={epochs}"]
    for board in ("host", EMULATED):
        words = ["--steps", steps, *settings, "--out", str(tmp_path / board)]
        assert cli.run(["train", experiment, "--board", board, *words]) == 0
        images.append(read_run_policy(tmp_path / board))
    assert images[0].data == images[1].data  # with the hash of the whole training state
    assert images[0].actions[0].choices == choices
    assert images[0].step >= int(steps)


@pytest.mark.all
@pytest.mark.timeout(600)
def test_a_recurrent_network_learns_with_the_same_bits(tmp_path: Path) -> None:
    """Here with two threads, too, and its policy's image. The run goes on from its checkpoint, and
    the policy is pushed to the board, which checks its sequences."""
    states, images = [], []
    settings = ["--set", "eval_freq=4096", "--set", "n_eval_episodes=1", "--set", "n_epochs=1"]
    settings.append("--no-tensorboard")
    for board in ("host", "host-threads", EMULATED):
        out = tmp_path / board
        words = ["--steps", "4096", *settings, "--out", str(out)]
        assert cli.run(["train", "pendulum-ppo-masked", "--board", board, *words]) == 0
        folder = RunFolder.open(out)
        states.append(folder.content.state_sha256)
        images.append(read_run_policy(folder).data)
    assert states == [states[0]] * 3
    assert images == [images[0]] * 3
    assert cli.run(["push", str(tmp_path / "host"), "--board", EMULATED]) == 0
    for board in ("host-threads", "host"):
        words = ["--resume", str(tmp_path / board), "--board", "host", "--steps", "12288"]
        assert cli.run(["train", *words, "--no-tensorboard"]) == 0
        states.append(RunFolder.open(tmp_path / board).content.state_sha256)
    assert states[3] == states[4] != states[0]
