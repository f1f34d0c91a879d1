"""The tags of scalars are those of Stable-Baselines3."""

from __future__ import annotations

import math

from rltools_host.boards.messages import Evaluation, TrainingProgress
from rltools_host.training.metrics_log import (
    Scalars,
)


def report(step: int, episodes: int, last: float = math.nan, *metrics: float) -> TrainingProgress:
    return TrainingProgress(0, step, 10**6, step // 2, episodes, last, last, metrics)


def test_scalars_have_the_tags_of_stable_baselines3() -> None:
    scalars = Scalars(("actor_loss", "kl"))
    scalars.of(report(200, 1, -10.0, 0.5, 0.25), 200, 0.5)
    scalars.of(report(300, 1, -10.0, 0.5, 0.25), 200, 0.5)  # the same episode again
    assert scalars.of(report(400, 2, -4.0, 0.5, 0.25), 200, 0.5) == {
        "rollout/ep_rew_mean": -7.0,
        "rollout/ep_len_mean": 200,
        "time/fps": 800.0,
        "train/n_updates": 200,
        "train/actor_loss": 0.5,
        "train/approx_kl": 0.25,
    }
    evaluation = Evaluation(1, 400, 10, -5.0, 1.0, -6.0, -4.0, 150.5)
    assert scalars.of(evaluation, math.nan, 1.0) == {
        "eval/mean_reward": -5.0,
        "eval/std_reward": 1.0,
        "eval/mean_ep_length": 150.5,
    }
