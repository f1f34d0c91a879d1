"""How long episodes are, from what a board reports; what TensorBoard is told."""

from __future__ import annotations

import math

import pytest

from rltools_host.boards.messages import Evaluation, TrainingProgress
from rltools_host.training.metrics_log import (
    RECENT,
    EpisodeLengths,
    Scalars,
)


def report(step: int, episodes: int, last: float = math.nan, *metrics: float) -> TrainingProgress:
    return TrainingProgress(0, step, 10**6, step // 2, episodes, last, last, metrics)


def test_mean_length_of_the_last_episodes() -> None:
    lengths = EpisodeLengths()
    assert math.isnan(lengths.take(report(100, 0)))
    assert lengths.take(report(200, 1)) == 200
    assert lengths.take(report(300, 1)) == 200
    assert lengths.take(report(400, 3)) == pytest.approx(400 / 3)
    for number in range(1, 2 * RECENT):
        length = lengths.take(report(400 + 50 * number, 3 + number))
    assert length == 50  # the first ones count no more


def test_a_run_that_goes_on_counts_from_its_first_report() -> None:
    lengths = EpisodeLengths(first_step=1001)
    assert math.isnan(lengths.take(report(1100, 40)))
    assert lengths.take(report(1300, 42)) == 100


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
