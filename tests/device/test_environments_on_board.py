"""Environments beside the pendulum and the quadrotor: learnt on an emulated board and on this
machine with the same bits. Most of their actions are choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from boards_under_test import EMULATED
from rltools_host import cli
from rltools_host.policies.image import read_run_policy


@pytest.mark.all
@pytest.mark.parametrize(
    ("experiment", "steps", "choices"),
    [
        ("cartpole-ppo", "2048", ("left", "right")),
        ("cartpole-dqn", "1200", ("left", "right")),
        ("acrobot-ppo", "4096", ("clockwise", "none", "counterclockwise")),
        ("racing-car-ppo", "2048", ()),
    ],
)
def test_learning_has_the_same_bits(
    experiment: str, steps: str, choices: tuple[str, ...], tmp_path: Path
) -> None:
    images = []
    for board in ("host", EMULATED):
        words = ["--steps", steps, "--no-tensorboard", "--out", str(tmp_path / board)]
        assert cli.run(["train", experiment, "--board", board, *words]) == 0
        images.append(read_run_policy(tmp_path / board))
    assert images[0].data == images[1].data  # with the hash of the whole training state
    assert images[0].actions[0].choices == choices
    assert images[0].step >= int(steps)
