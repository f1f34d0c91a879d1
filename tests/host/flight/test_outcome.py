"""When a flight is a success, in ticks; and the words of what ends one."""

from __future__ import annotations

from rltools_host.flight.simulator import FAILURES, Cause, Rule


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
