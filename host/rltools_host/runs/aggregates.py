"""Statistics of several runs: the interquartile mean and the probability of improvement, with
bootstrap intervals, as Agarwal et al. define them (NeurIPS 2021, arXiv 2108.13264; rliable).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
CONFIDENCE = 0.95
TRIMMED = 0.25  # of the values, at either end
MAX_AT_ONCE = 1_000_000  # values that are drawn

Values = NDArray[np.floating[Any]]
Interval = tuple[float, float]
NORMAL_QUANTILE_95 = 1.959963984540054  # 97.5 % of a standard normal distribution lie below


def interquartile_mean(values: Values) -> Values:
    """Return the mean over the last axis without the lowest and the highest quarter, each rounded
    down to whole values, as scipy.stats.trim_mean does."""
    count = values.shape[-1]
    cut = int(TRIMMED * count)
    return np.asarray(np.sort(values, axis=-1)[..., cut : count - cut].mean(axis=-1))


def interval_of_mean(values: Sequence[float]) -> Interval | None:
    """Return a percentile bootstrap of the interquartile mean over the runs; None for fewer than
    two."""
    given, random = np.array(values, float), np.random.default_rng(0)
    if given.size < 2:
        return None

    def draw(count: int) -> Values:
        return interquartile_mean(given[random.integers(0, given.size, (count, given.size))])

    return bootstrap(draw, given.size)


def probability_of_improvement(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the probability that a run of the first has a higher return than one of the second;
    equal returns count half."""
    return float(preferences(first, second).mean())


def interval_of_improvement(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Return a percentile bootstrap of that probability, with the runs of both drawn independently;
    None if neither has two."""
    wins, random = preferences(first, second), np.random.default_rng(0)
    if max(wins.shape) < 2:
        return None
    rows, columns = wins.shape

    def draw(count: int) -> Values:
        of_first = random.multinomial(rows, np.full(rows, 1 / rows), size=count)
        of_second = random.multinomial(columns, np.full(columns, 1 / columns), size=count)
        return np.asarray(((of_first @ wins) * of_second).sum(axis=1) / wins.size)

    return bootstrap(draw, rows + columns)


def preferences(first: Sequence[float], second: Sequence[float]) -> Values:
    """Return (first, second): 1 where the first is higher, 1/2 where they are equal, else 0."""
    rows, columns = np.array(first, float)[:, None], np.array(second, float)[None, :]
    return np.asarray((rows > columns) + 0.5 * (rows == columns))


def bootstrap(draw: Callable[[int], Values], width: int) -> Interval:
    """Return the percentiles of `draw` over many resamples, each of `width` values."""
    each = max(1, MAX_AT_ONCE // width)
    counts = [min(each, RESAMPLES - done) for done in range(0, RESAMPLES, each)]
    drawn = np.concatenate([draw(count) for count in counts])
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return float(low), float(high)


def wilson_interval(successes: int, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a rate: Wilson 1927,
    doi:10.1080/01621459.1927.10502953.

    It lies within [0, 1], and is right too if nearly all succeed.
    """
    z2 = NORMAL_QUANTILE_95**2
    rate = successes / count
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    half = math.sqrt(rate * (1 - rate) * z2 / count + (z2 / (2 * count)) ** 2) / (1 + z2 / count)
    low = 0.0 if successes == 0 else middle - half
    high = 1.0 if successes == count else middle + half
    return low, high
