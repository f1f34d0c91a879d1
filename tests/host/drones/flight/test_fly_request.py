"""What may be asked of a flight over a board, at its bounds; nothing is flown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.boards.push import LONGEST_TRIAL_S
from rltools_host.drones.flight.disturbances import Disturbances, Fault
from rltools_host.drones.flight.gate import load_gate
from rltools_host.drones.flight.in_the_loop import CONTRACT, FlyRequest, rule_of
from rltools_host.drones.flight.simulator import flight_library
from rltools_host.errors import UsageError

HERE = PolicyTarget("host", None, CONTRACT)


def request_for(seconds: float = 1.0, **fields: Any) -> FlyRequest:
    return FlyRequest("x", HERE, rule_of(seconds), **fields)


def faulty(what: str, tick: int) -> Disturbances:
    return Disturbances(faults=(Fault(what, tick),))


def test_flights_at_their_bounds() -> None:
    for request in (
        *(request_for(0.002), request_for(60.0)),
        request_for(seed=2**32 - 1, start=2**32 - 1, trial_s=LONGEST_TRIAL_S),
        request_for(disturbances=faulty("nan", 499)),
    ):
        request.check()
    for request in (
        *(request_for(0.0019), request_for(60.01)),
        *(request_for(seed=2**32), request_for(seed=-1), request_for(start=2**32)),
        *(request_for(trial_s=0.0), request_for(trial_s=LONGEST_TRIAL_S + 1)),
        request_for(disturbances=faulty("nan", 500)),
        request_for(disturbances=Disturbances(loss=2.0)),
    ):
        with pytest.raises(UsageError):
            request.check()


def test_how_long_a_trial_may_last() -> None:
    """On the board's clock, which an emulator's flight hardly moves."""
    assert [request_for(seconds).trial_limit_s for seconds in (1, 4, 60)] == [
        300,
        400,
        LONGEST_TRIAL_S,
    ]
    over = faulty("trial", 100)
    assert request_for(3, disturbances=over).trial_limit_s == 20
    assert request_for(3, disturbances=over, trial_s=7.0).trial_limit_s == 7
    assert request_for(3, disturbances=faulty("nan", 100)).trial_limit_s == 300


def test_a_shorter_flight_is_judged_as_long_as_it_lasts() -> None:
    rule = load_gate("hover").rule
    assert rule_of(0.5) == replace(rule, seconds=0.5, last_seconds=0.5)
    assert rule_of(3) == replace(rule, seconds=3, last_seconds=1)
    assert request_for(0.5).ticks == 250
    wind = load_gate("steady-wind")
    assert rule_of(3, wind) == replace(wind.rule, seconds=3, last_seconds=2)


def test_settings_that_are_the_defaults_are_not_told() -> None:
    usual = flight_library().default("start_share")
    assert request_for(settings={"start_share": usual}).other_settings == {}
    other = {"start_share": usual / 2 + 0.1, "own": 1.0}
    assert request_for(settings=other).other_settings == other
