"""What comes of a flight over a board, from its trace."""

from __future__ import annotations

import numpy as np
import pytest

from rltools_host.drones.flight.disturbances import TICKS_A_S, Disturbances
from rltools_host.drones.flight.loop import Trace
from rltools_host.drones.flight.result import LoopResult
from rltools_host.drones.flight.simulator import Cause, Rule

RULE = Rule(seconds=1.0, last_seconds=0.4, radius_m=0.2)


def flown(errors_m: np.ndarray[tuple[int], np.dtype[np.float64]]) -> LoopResult:
    """A whole flight that was this far from its target before each tick, and at its end."""
    trace = Trace(len(errors_m) - 1)
    trace.count = trace.planned
    trace.states["position_m"][:, 1] = errors_m
    result = LoopResult("host", "runs/x", "a policy", "00", RULE, 0, 0, Disturbances())
    result.trace = trace
    return result


@pytest.mark.parametrize(("share", "expected_m"), [(0.25, 0.1), (0.95, 0.3)])
def test_the_error_is_that_of_the_end(share: float, expected_m: float) -> None:
    """It began nearer; of its last 0.4 s the first half was at 0.3 m, the second at 0.1 m."""
    errors = np.full(TICKS_A_S + 1, 0.05)
    errors[-round(0.4 * TICKS_A_S) :] = 0.3
    errors[-round(0.2 * TICKS_A_S) :] = 0.1
    result = flown(errors)
    result.rule = Rule(seconds=1.0, last_seconds=0.4, radius_m=0.2, share=share)
    assert result.error_m == pytest.approx(expected_m)
    assert result.cause is (Cause.SUCCESS if expected_m < 0.2 else Cause.TOO_FAR)
    assert result.settling_s == pytest.approx(1.0 - 0.2 + 1.0 / TICKS_A_S)
