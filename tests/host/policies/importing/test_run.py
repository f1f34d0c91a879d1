"""What an import asks of rates and normalizers, and when a policy's fault is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.errors import UsageError
from rltools_host.policies.importing.faults import is_fault
from rltools_host.policies.importing.run import (
    steps_between,
)

HERE: Any = SimpleNamespace(
    name="here", contract=SimpleNamespace(step_interval_us=10_000, assumed=0)
)  # 100 Hz


@pytest.mark.parametrize(("rate_hz", "steps"), [(50.0, 2), (50.4, 2), (20.0, 5), (1.0, 100)])
def test_a_state_may_move_on_more_slowly_than_a_place_asks(rate_hz: float, steps: int) -> None:
    assert steps_between(rate_hz, HERE, may_differ=True) == steps
    with pytest.raises(UsageError, match=r"Hz: name a contract or environment with its rate$"):
        steps_between(rate_hz, HERE, may_differ=False)


@pytest.mark.parametrize("rate_hz", [200.0, 66.7, 51.0, 45.0])
def test_a_rate_that_is_no_whole_part(rate_hz: float) -> None:
    with pytest.raises(UsageError, match=r"with its rate, or a whole multiple of it$"):
        steps_between(rate_hz, HERE, may_differ=True)


# -- a fault -------------------------------------------------------------------------------------


def returns(mean: float, deviation: float, count: int = 4) -> np.ndarray:
    return mean + deviation * np.tile([1.0, -1.0], count // 2)


SCORES = np.linspace(0.0, 10.0, 11)  # of what was tried, the middle eight tenths from 1 to 9


@pytest.mark.parametrize(
    ("usual", "restored", "idle", "is_one"),
    [
        (returns(0, 0), returns(13.1, 0), 0.0, True),  # beyond 9 + 8 / 2
        (returns(0, 0), returns(12.9, 0), 0.0, False),
        (returns(0, 0), returns(100, 41), 0.0, False),  # five standard errors: 100 / (41 / 2)
        (returns(81, 0), returns(100, 0), 0.0, False),
        (returns(0, 0), returns(20, 0), 16.1, False),  # nothing does as well
    ],
)
def test_a_fault_stands_out(
    usual: np.ndarray, restored: np.ndarray, idle: float, is_one: bool
) -> None:
    assert is_fault(usual, restored, idle, SCORES) is is_one
