"""Experiments with the kernels of a GPU's block, on this machine: three seeds of each end with the
states of the board `host`. (The same for a few algorithms, every day: tests/lib/kernels/block.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.commands import cli
from rltools_host.runs.folder import RunFolder

pytestmark = [pytest.mark.all, pytest.mark.slow, pytest.mark.timeout(900)]

STEPS = {
    "pendulum-td3": 300,
    "pendulum-sac": 300,
    "pendulum-ppo": 4000,
    "pendulum-ppo-masked": 4000,
    "pendulum-xqc": 400,
    "cartpole-ppo": 4000,
    "cartpole-dqn": 2000,
    "acrobot-ppo": 4096,
    "acrobot-dqn": 1500,
    "racing-car-sac": 400,
    "quadrotor-td3": 1200,
    "quadrotor-sac": 4000,
    "quadrotor-ppo": 20000,
    "crazyflie-ppo": 20000,
}
SETTINGS = ("eval_freq=4294967295", "n_eval_episodes=1")


@pytest.mark.parametrize("experiment", STEPS)
def test_a_block_ends_with_this_machines_bits(experiment: str, tmp_path: Path) -> None:
    states: dict[str, list[str | None]] = {}
    for board in ("host", "host-block"):
        out = tmp_path / board
        words = ["train", experiment, "--board", board, "--seeds", "0-2", "--out", str(out)]
        words += ["--steps", str(STEPS[experiment]), "--jobs", "1", "--no-tensorboard"]
        words += [word for setting in SETTINGS for word in ("--set", setting)]
        assert cli.run(words) == 0
        folders = [RunFolder.open(out / f"s{seed}") for seed in range(3)]
        states[board] = [folder.content.state_sha256 for folder in folders]
    assert states["host-block"] == states["host"]
    assert len(set(states["host"])) == 3
