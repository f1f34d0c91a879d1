"""What an import asks of rates and normalizers, and when a policy's fault is one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.errors import UsageError
from rltools_host.policies.importing import run as importing
from rltools_host.policies.importing.faults import is_bad, is_fault
from rltools_host.policies.importing.network import Dense, ForeignPolicy, Normalize
from rltools_host.policies.importing.run import (
    rate_of,
    steps_between,
    with_normalizer,
)
from rltools_host.policies.importing.stable_baselines3 import UNKNOWN_NORMALIZER

HERE: Any = SimpleNamespace(
    name="here", contract=SimpleNamespace(step_interval_us=10_000, assumed=0)
)  # 100 Hz
DENSE = Dense(np.ones((2, 1)), np.zeros(1))
FRONT = Normalize(np.zeros(2), np.ones(2))


@pytest.mark.parametrize("rate_hz", [None, 100.0, 100.9, 99.1])
def test_rates_that_are_the_places(rate_hz: float | None) -> None:
    for may_differ in (False, True):
        assert steps_between(rate_hz, HERE, may_differ=may_differ) == 1


@pytest.mark.parametrize(("rate_hz", "steps"), [(50.0, 2), (50.4, 2), (20.0, 5), (1.0, 100)])
def test_a_state_may_move_on_more_slowly_than_a_place_asks(rate_hz: float, steps: int) -> None:
    assert steps_between(rate_hz, HERE, may_differ=True) == steps
    with pytest.raises(UsageError, match=r"Hz: name a contract or environment with its rate$"):
        steps_between(rate_hz, HERE, may_differ=False)


@pytest.mark.parametrize("rate_hz", [200.0, 66.7, 51.0, 45.0])
def test_a_rate_that_is_no_whole_part(rate_hz: float) -> None:
    with pytest.raises(UsageError, match=r"with its rate, or a whole multiple of it$"):
        steps_between(rate_hz, HERE, may_differ=True)


@pytest.mark.parametrize(
    ("rate_hz", "sentence"),
    [
        (101.1, "the policy is for 101.1 Hz, and here is asked at 100 Hz"),
        (98.9, "the policy is for 98.9 Hz"),
        *((wrong, "a rate is a number above 0") for wrong in (0.0, np.nan)),
        (1e-320, "a step takes at most 600 s"),
    ],
)
def test_rates_that_are_not(rate_hz: float, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        steps_between(rate_hz, HERE, may_differ=False)
    assert sentence in str(caught.value)


def test_a_rate_is_of_the_steps_interval() -> None:
    assert rate_of(ForeignPolicy("a library", (DENSE,), step_interval_us=20_000)) == 50.0
    assert rate_of(ForeignPolicy("a library", (DENSE,))) is None


def test_a_normalizer_comes_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "read_normalizer", lambda *_: [FRONT])
    bounds = np.zeros(2), np.ones(2)
    lacking = ForeignPolicy(
        "a library",
        (DENSE,),
        lacks_normalizer=True,
        assumed=(UNKNOWN_NORMALIZER, "b"),
        observation_bounds=bounds,
    )
    found = with_normalizer(lacking, Path("n"), b"")
    assert found.stages == (FRONT, DENSE)
    assert (found.lacks_normalizer, found.observation_bounds) == (False, None)
    assert found.assumed == ("b",)
    with pytest.raises(UsageError, match="the file has a normalizer of its own"):
        with_normalizer(found, Path("n"), b"")
    other = ForeignPolicy("a library", (Dense(np.ones((3, 1)), np.zeros(1)),))
    with pytest.raises(UsageError, match="another number of observations than the policy"):
        with_normalizer(other, Path("n"), b"")


# -- a fault -------------------------------------------------------------------------------------


def returns(mean: float, deviation: float, count: int = 4) -> np.ndarray:
    return mean + deviation * np.tile([1.0, -1.0], count // 2)


def test_bad_is_no_better_than_nothing() -> None:
    """By a standard error: 2 / sqrt(4)."""
    assert is_bad(returns(11.0, 2.0), 10.0)
    assert not is_bad(returns(11.1, 2.0), 10.0)


SCORES = np.linspace(0.0, 10.0, 11)  # of what was tried, the middle eight tenths from 1 to 9


@pytest.mark.parametrize(
    ("usual", "restored", "idle", "is_one"),
    [
        (returns(0, 0), returns(14, 0), 0.0, True),
        (returns(0, 0), returns(13.1, 0), 0.0, True),  # beyond 9 + 8 / 2
        (returns(0, 0), returns(12.9, 0), 0.0, False),
        (returns(0, 0), returns(100, 36), 0.0, True),
        (returns(0, 0), returns(100, 41), 0.0, False),  # five standard errors: 100 / (41 / 2)
        (returns(79, 0), returns(100, 0), 0.0, True),  # a fifth of what is gained over nothing
        (returns(81, 0), returns(100, 0), 0.0, False),
        (returns(0, 0), returns(20, 0), 16.1, False),  # nothing does as well
        (returns(0, 0), returns(20.5, 0), 16.1, True),
        (returns(0, 0), returns(20, 0), -79.0, True),
        (returns(0, 0), returns(20, 0), -81.0, False),
    ],
)
def test_a_fault_stands_out(
    usual: np.ndarray, restored: np.ndarray, idle: float, is_one: bool
) -> None:
    assert is_fault(usual, restored, idle, SCORES) is is_one
