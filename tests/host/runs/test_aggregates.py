"""Interquartile mean and probability of improvement, against SciPy's and by hand."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from rltools_host.runs.aggregates import (
    interquartile_mean,
    interval_of_improvement,
    interval_of_mean,
    probability_of_improvement,
    wilson_interval,
)

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 10, 33])
def test_interquartile_mean_is_scipys(count: int) -> None:
    values = RANDOM.normal(size=(6, count))
    expected = stats.trim_mean(values, 0.25, axis=-1)
    assert interquartile_mean(values) == pytest.approx(expected, rel=1e-12)


def test_probability_is_mann_whitneys() -> None:
    first, second = RANDOM.integers(0, 5, 9).tolist(), RANDOM.integers(0, 5, 7).tolist()
    u = stats.mannwhitneyu(first, second).statistic
    assert probability_of_improvement(first, second) == pytest.approx(u / 63)
    both = probability_of_improvement(first, second) + probability_of_improvement(second, first)
    assert both == pytest.approx(1)
    assert probability_of_improvement([1.0], [1.0]) == 0.5


def test_interval_of_a_mean_is_as_wide_as_the_normal_one() -> None:
    """Of 400 normal values the trimmed mean's deviation is some 1.09 of the mean's."""
    values = RANDOM.normal(10, 1, 400).tolist()
    found = interval_of_mean(values)
    assert found is not None
    half = NormalDist().inv_cdf(0.975) * 1.09 / 20
    center = float(interquartile_mean(np.array(values)))
    assert found == pytest.approx((center - half, center + half), abs=0.02)
    assert interval_of_mean(values) == found, "the same seed draws the same"


def test_intervals_at_the_ends() -> None:
    assert interval_of_mean([3.0]) is None
    assert interval_of_mean([3.0, 3.0]) == (3.0, 3.0)
    assert interval_of_improvement([1.0], [2.0]) is None
    assert interval_of_improvement([5.0, 6.0, 7.0], [1.0, 2.0]) == (1.0, 1.0)
    low, high = interval_of_improvement([1.0, 3.0], [2.0]) or (0, 0)
    assert (low, high) == (0.0, 1.0), "each of two runs may be drawn twice"


def test_interval_of_improvement_is_resampled_pairs() -> None:
    """As rliable draws: the runs of each, independently."""
    first, second = RANDOM.normal(0.5, 1, 12), RANDOM.normal(0, 1, 9)
    drawn = []
    for _ in range(4000):
        a, b = RANDOM.choice(first, 12), RANDOM.choice(second, 9)
        drawn.append(np.mean(a[:, None] > b[None, :]))
    found = interval_of_improvement(first.tolist(), second.tolist())
    assert found == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), abs=0.03)


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
        # Medicine 17 (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # Their mirror images, and the definition's own: (p - x)^2 = z^2 x (1 - x) / n.
        (182, 263, 0.6338, 0.7447),
        (20, 20, 0.8389, 1.0000),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
    ],
)
def test_wilsons_interval(successes: int, count: int, low: float, high: float) -> None:
    assert wilson_interval(successes, count) == pytest.approx((low, high), abs=5e-5)
