"""Random actions, and what is summed up of what they show."""

from __future__ import annotations

import numpy as np
import pytest

from rltools_host.build.description import Channel
from rltools_host.checks.findings import Figures
from rltools_host.checks.rules import Play, RandomActions

CHANNELS = (Channel("push", "N", -2.0, 1.0), Channel("gear", "low|middle|high", 0.0, 2.0))


def test_random_actions_fill_their_ranges() -> None:
    actions = RandomActions(CHANNELS, 4, seed=1)
    rows = np.stack([actions.next() for _ in range(2000)])  # (steps, rows, channels)
    drawn, held = rows[:, 0], rows[:, 1]
    assert drawn[:, 0].min() == pytest.approx(-2.0, abs=0.01)
    assert drawn[:, 0].max() == pytest.approx(1.0, abs=0.01)
    values, counts = np.unique(drawn[:, 1], return_counts=True)
    assert values.tolist() == [0.0, 1.0, 2.0]
    assert counts.min() > 600
    assert set(np.unique(held[:, 0])) == {-2.0, 1.0}
    assert set(np.unique(held[:, 1])) == {0.0, 2.0}
    changes = np.count_nonzero(np.diff(held[:, 0]))
    assert 150 < changes < 250, "every tenth step"
    again = RandomActions(CHANNELS, 4, seed=1)
    assert (again.next() == rows[0]).all()


def test_sums_are_those_of_all_rows() -> None:
    random = np.random.default_rng(2)
    seen = random.normal(3.0, 2.0, (50, 4, 2)).astype(np.float32)
    rewards = random.normal(-1.0, 0.5, (50, 4))
    play = Play((Channel("a", "1", -1.0, 5.0), Channel("b", "1", -100.0, 100.0)), 4)
    never = np.zeros(4, np.bool_)
    for step in range(50):
        play.see(seen[step])
        over = never.copy()
        over[1] = step % 10 == 9  # an episode of ten steps in the second row
        play.step(rewards[step], over if step > 20 else never, over)
    flat = seen.reshape(-1, 2)
    assert play.mean == pytest.approx(flat.mean(0), rel=1e-5)
    assert play.deviation == pytest.approx(flat.std(0), rel=1e-5)
    assert play.outside.tolist() == [int(((flat[:, 0] < -1) | (flat[:, 0] > 5)).sum()), 0]
    figures = Figures()
    play.write(figures)
    assert figures.steps == 200
    assert figures.reward_mean == pytest.approx(rewards.mean())
    assert figures.reward_std == pytest.approx(rewards.std())
    assert (figures.episodes, figures.terminated) == (5, 3)
    assert figures.episode_steps_mean == 10
    returns = rewards[:, 1].reshape(5, 10).sum(1)
    assert figures.return_mean == pytest.approx(returns.mean())
