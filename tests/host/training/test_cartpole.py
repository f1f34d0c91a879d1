"""CartPole is learned by PPO and DQN, whose actions are choices: 500 steps are the best episode."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.policies.evaluation import GYMNASIUM, evaluate_policy
from rltools_host.policies.image import read_run_policy
from training_calls import train_here

SOLVED = 475.0  # Gymnasium's threshold


@pytest.mark.all  # every day PyTorch's numbers: tests/lib/rl/algorithms/test_pytorch.cpp
@pytest.mark.parametrize("experiment", ["cartpole-ppo", "cartpole-dqn"])
def test_cartpole_is_solved(experiment: str, tmp_path: Path) -> None:
    """Here, and in Gymnasium's own CartPole-v1."""
    run = tmp_path / "run"
    document = train_here(experiment, "host", seed=0, out=run, tensorboard=False)
    assert document["return_mean"] >= SOLVED
    evaluation = evaluate_policy(read_run_policy(run), "run", 20, 1000, GYMNASIUM)
    assert evaluation.mean >= SOLVED
    assert max(evaluation.returns) == 500.0
