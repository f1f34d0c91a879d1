"""When the hidden state of a policy moves on, and what makes it zero."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from rltools_host.policies.acting import WRAP, HiddenState
from rltools_host.policies.contract import RESET_AT_FAULT, RESET_AT_PAUSE, RESET_AT_STALE_INPUT
from rltools_host.policies.image import PolicyImage

ALL = RESET_AT_FAULT | RESET_AT_PAUSE | RESET_AT_STALE_INPUT
INPUTS = np.zeros((1, 1), np.float32)


class Counter:
    """A runner whose state counts the steps that it has kept, and whose output is that count."""

    def begin(self) -> Any:
        return np.zeros(1, np.float32)

    def run(self, inputs: Any, state: Any = None) -> Any:
        if state is None:
            return -1, inputs
        state += 1
        return int(state[0]), inputs


def made(reset_at: int) -> HiddenState:
    recurrence = SimpleNamespace(reset_at=reset_at, max_pause_us=300, trained_interval_us=100)
    image = SimpleNamespace(recurrence=recurrence, runner=Counter())
    return HiddenState(cast(PolicyImage, image))


def steps(hidden: HiddenState, *times: int) -> list[int]:
    return [cast(int, hidden.run(now_us, INPUTS)[0]) for now_us in times]


def test_the_state_moves_on_at_the_rate_of_training() -> None:
    assert steps(made(0), 10, 60, 109, 110, 111, 209, 210) == [1, 1, 1, 2, 2, 2, 3]
    assert steps(made(0), WRAP - 50, 49, 50, 51) == [1, 1, 2, 2], "also where the clock wraps"


@pytest.mark.parametrize(
    ("reset_at", "pause", "expected"),
    [(ALL, 300, 2), (ALL, 301, 1), (RESET_AT_PAUSE, 301, 1), (ALL & ~RESET_AT_PAUSE, 301, 2)],
)
def test_a_pause_ends_what_it_knew(reset_at: int, pause: int, expected: int) -> None:
    assert steps(made(reset_at), 1000, 1000 + pause)[1] == expected


@pytest.mark.parametrize(
    ("reset_at", "status", "is_reset"),
    [
        *(
            (RESET_AT_STALE_INPUT, f"observation_{status}", True)
            for status in ("missing", "frozen")
        ),
        (RESET_AT_STALE_INPUT, "observation_not_finite", False),
        (RESET_AT_FAULT, "observation_not_finite", True),
        (RESET_AT_FAULT, "output_not_finite", True),
        (RESET_AT_FAULT, "observation_stale", False),
        (0, "observation_stale", False),
        (0, "output_not_finite", False),
    ],
)
def test_which_failures_make_it_zero(reset_at: int, status: str, is_reset: bool) -> None:
    hidden = made(reset_at)
    steps(hidden, 1000, 1100)
    hidden.fail(status)
    # A step after a reset is kept at once, whatever the rate.
    assert steps(hidden, 1150, 1200) == ([1, 1] if is_reset else [2, 3])
