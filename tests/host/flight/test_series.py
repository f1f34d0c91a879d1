"""What PX4 tells, in the contract's frames; and what a flight amounts to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rltools_host.flight.series import (
    FloatArray,
    Sample,
    Series,
    TargetFrame,
    enu_flu,
    limit_broken,
    measure,
    yaw_of,
)

ENU_OF_NED = np.array(((0, 1, 0), (1, 0, 0), (0, 0, -1.0)))
FLU_OF_FRD = np.diag((1.0, -1.0, -1.0))


def matrix(q: FloatArray) -> FloatArray:
    """Of a rotation, by its definition: v' = q v q*."""
    w, x, y, z = q
    columns = []
    for v in np.eye(3):
        t = 2.0 * np.cross((x, y, z), v)
        columns.append(v + w * t + np.cross((x, y, z), t))
    return np.array(columns).T


def rotations(count: int) -> FloatArray:
    values = np.random.default_rng(1).normal(size=(count, 4))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True))


def test_an_attitude_turns_the_body_into_the_world_in_both_pairs_of_frames() -> None:
    for q in rotations(200):
        np.testing.assert_allclose(
            matrix(enu_flu(q)), ENU_OF_NED @ matrix(q) @ FLU_OF_FRD, atol=1e-12
        )


def test_a_row_is_what_the_policy_sees() -> None:
    random = np.random.default_rng(2)
    for q in rotations(200):
        yaw = random.uniform(-4.0, 4.0)
        target, position, velocity, rates = random.normal(size=(4, 3))
        frame = TargetFrame(tuple(target), yaw)
        row = frame.row(Sample(1.0, tuple(position), tuple(velocity), tuple(q), tuple(rates)))
        cosine, sine = math.cos(yaw), math.sin(yaw)
        from_enu = np.array(((cosine, sine, 0), (-sine, cosine, 0), (0, 0, 1)))
        world = from_enu @ ENU_OF_NED
        np.testing.assert_allclose(row[:3], world @ (position - target), atol=1e-12)
        np.testing.assert_allclose(row[3:6], world @ velocity, atol=1e-12)
        np.testing.assert_allclose(matrix(row[6:10]), world @ matrix(q) @ FLU_OF_FRD, atol=1e-12)
        assert row[6] >= 0.0
        np.testing.assert_allclose(row[10:], FLU_OF_FRD @ rates)
        np.testing.assert_allclose(frame.world(frame.vector(velocity)), velocity, atol=1e-12)


def test_level_along_its_heading_is_no_rotation() -> None:
    for heading in np.arange(-3.0, 3.1, 0.3):
        q = (math.cos(heading / 2), 0.0, 0.0, math.sin(heading / 2))
        yaw = yaw_of(q)
        assert math.remainder(yaw - (math.pi / 2 - heading), 2 * math.pi) == pytest.approx(0)
        nowhere = (0.0, 0.0, 0.0)
        row = TargetFrame(nowhere, yaw).row(Sample(0.0, nowhere, nowhere, q, nowhere))
        np.testing.assert_allclose(row[6:10], (1, 0, 0, 0), atol=1e-12)


def flight(errors: FloatArray, end_s: float = 10.0) -> Series:
    rows = np.zeros((len(errors), 13))
    rows[:, 0], rows[:, 6] = errors, 1.0
    return Series(np.linspace(0.0, end_s, len(errors)), rows)


def test_what_settles_in_time_is_a_success() -> None:
    times = np.linspace(0.0, 10.0, 501)
    measures = measure(flight(1.0 - np.minimum(times, 5.0) / 5.0))
    assert measures.success
    assert measures.greatest_error_m == 1.0
    assert measures.settling_s == pytest.approx(4.0, abs=0.03)
    assert measures.last_second_error_m == 0.0


@pytest.mark.parametrize(
    ("until", "success"), [(8.98, True), (9.02, False), (9.98, False), (10.0, False)]
)
def test_the_last_second_counts_whole(until: float, success: bool) -> None:
    times = np.linspace(0.0, 10.0, 501)
    measures = measure(flight(np.where(times <= until + 1e-9, 0.21, 0.19)))
    assert measures.success is success
    assert (measures.settling_s is None) == (until == 10.0)


def test_what_ends_early_or_breaks_a_limit_is_none() -> None:
    assert not measure(flight(np.zeros(100), end_s=9.9)).success
    assert measure(flight(np.zeros(100))).success
    for column, value in ((1, 5.1), (4, -10.1), (11, 36.0), (3, math.nan), (0, math.inf)):
        series = flight(np.zeros(100))
        series.rows[10, column] = value
        assert not measure(series).success
        assert limit_broken(series.rows[10])
    assert limit_broken(np.array((5.0, -5.0, 0, 5, 5, 5, 1, 0, 0, 0, 35, -35, 0))) == ""
