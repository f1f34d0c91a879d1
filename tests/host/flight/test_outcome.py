"""When a flight is a success, in ticks; and the interval of a rate."""

from __future__ import annotations

import pytest

from rltools_host.flight.gate_result import wilson_interval
from rltools_host.flight.simulator import FAILURES, Cause, Rule


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
    ],
)
def test_wilsons_interval(successes: int, count: int, low: float, high: float) -> None:
    assert wilson_interval(successes, count) == pytest.approx((low, high), abs=5e-5)


def test_the_interval_solves_its_equation() -> None:
    rate, count = 0.934, 1000
    for bound in wilson_interval(934, count):
        assert (rate - bound) ** 2 == pytest.approx(1.959964**2 * bound * (1 - bound) / count)
    assert wilson_interval(0, 7)[0] == 0.0
    assert wilson_interval(7, 7)[1] == 1.0


def test_a_rule_in_ticks() -> None:
    assert Rule(10, 1, 0.2).in_ticks(0.002) == (5000, 500, 500)
    assert Rule(12, 6, 0.3, 0.95).in_ticks(0.002) == (6000, 3000, 2850)
    # 95 % of 10 is 9.5, and nothing less will do; 0.07 of 100 is 7, whatever the rounding says.
    assert Rule(1, 0.02, 0.3, 0.95).in_ticks(0.002) == (500, 10, 10)
    assert Rule(1, 0.2, 0.3, 0.07).in_ticks(0.002) == (500, 100, 7)


def test_causes_have_words() -> None:
    assert {cause.key for cause in FAILURES} == {
        *("position_limit", "velocity_limit", "rate_limit", "executor_fault", "too_far"),
    }
    assert all(Cause.of(cause.key) == cause for cause in Cause)
    assert len({cause.short for cause in Cause}) == len({cause.text for cause in Cause}) == 6
