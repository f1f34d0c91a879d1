"""What is recorded of a start: which samples are the policy's, and which the hand-back's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rltools_host.drones.vehicles.px4_result import StartResult
from rltools_host.drones.vehicles.px4_start import STARTS, StartRecorder, starts_for
from rltools_host.drones.vehicles.px4_state import HOLD, LAND, Mode, Sample, TargetFrame
from rltools_host.policies.contract import EntryEnvelope

POLICY = Mode(4, 11)
FRAME = TargetFrame((0.0, 0.0, 0.0), 0.0)


def sample(time_s: float) -> Sample:
    """It rises by 1 m/s."""
    up = (1.0, 0.0, 0.0, 0.0)
    return Sample(time_s, (0.0, 0.0, -time_s), (0.0, 0.0, -1.0), up, (0.0, 0.0, 0.0))


def recorded(*told: tuple[float, Mode]) -> tuple[StartRecorder, StartResult]:
    """What was told after an entry at 10 s."""
    vehicle: Any = SimpleNamespace(mode=HOLD, collective=0.5)
    start = StartResult((0.0, 0.0, 0.0))
    record = StartRecorder(vehicle, POLICY, FRAME, sample(10.0), start)
    for time_s, mode in told:
        vehicle.mode = mode
        record(sample(time_s))
    record.keep()
    return record, start


def test_time_begins_with_the_last_sample_before_the_mode() -> None:
    record, start = recorded((10.1, HOLD), (10.2, HOLD), (10.3, POLICY), (10.5, POLICY))
    assert start.series is not None
    np.testing.assert_allclose(start.series.times_s, [0.0, 0.1, 0.3])
    np.testing.assert_allclose(start.series.rows[:, 2], [10.2, 10.3, 10.5])
    assert (start.hand_back, record.is_over) == (None, False)
    _, start = recorded()
    assert start.series is not None
    assert start.series.times_s.tolist() == [0.0]
    _, start = recorded((10.1, LAND), (10.2, POLICY))  # what is neither's is not taken
    assert start.series is not None
    np.testing.assert_allclose(start.series.times_s, [0.0, 0.2])


def test_the_second_after_the_hand_back() -> None:
    begin = [(10.1, HOLD), (10.3, POLICY)]
    record, start = recorded(*begin, (10.4, HOLD), (11.2, HOLD))
    assert start.series is not None
    np.testing.assert_allclose(start.series.times_s, [0.0, 0.2])  # the policy's alone
    assert start.hand_back is not None
    assert start.hand_back.time_s == pytest.approx(0.2)
    assert start.hand_back.height_m == pytest.approx(0.9)
    assert not record.is_over
    record, start = recorded(*begin, (10.4, HOLD), (11.31, HOLD), (11.32, HOLD))
    assert record.is_over
    assert start.hand_back is not None
    assert start.hand_back.height_m == pytest.approx(0.1)  # of what was told within a second


@pytest.mark.parametrize(
    ("stated_m", "furthest_m", "arrived_m"),
    [(None, 0.15, 0.15), (0.3125, 0.156, 0.156), (0.625, 0.325, 0.3), (1.3, 1.0, 0.3)],
)
def test_a_vehicle_near_a_start_may_be_handed_over(
    stated_m: float | None, furthest_m: float, arrived_m: float
) -> None:
    entry = None if stated_m is None else EntryEnvelope(0.5, stated_m, 0.36, 1.75, 0.6)
    image: Any = SimpleNamespace(entry=entry)
    said = list[str]()
    starts = starts_for(image, len(STARTS), said.append)
    assert starts.arrived_m == pytest.approx(arrived_m, abs=0.001)
    distances = np.linalg.norm(np.array(starts.offsets_m), axis=1)
    assert distances.max() == pytest.approx(furthest_m, abs=0.01)
    assert bool(said) == (furthest_m < 1.0)
