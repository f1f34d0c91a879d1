"""`rlt fit` is as sure as it says: of noisy logs, in gusts, and of what a log hardly shows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.signal import lfilter

from quadrotor_drones import DRONES
from quadrotor_fit import (
    NAMES,
    fitted,
    flown,
    off,
    share_covered,
)
from quadrotor_flight import Flight, Noise
from rltools_host.drones.fitting.estimate import (
    Estimate,
    covariance_of,
)
from rltools_host.drones.fitting.model import Filter, Gusts, most_likely
from rltools_host.drones.fitting.result import FitResult

NOISY = Flight(noise=Noise(gyro_rad_s=0.1, acceleration_m_s2=1.0))
SMALL_GUSTS = Flight(noise=Noise(gust=0.02))
GUSTS = Flight(noise=Noise(gust=0.05))


def width(result: FitResult, name: str) -> float:
    value = fitted(result)[name]
    assert value.low is not None
    assert value.high is not None
    return value.high - value.low


@pytest.mark.parametrize(
    ("blocks", "outside", "quantile"),
    [(11, 0.05, 2.228), (11, 0.10, 1.812), (31, 0.05, 2.042), (2, 0.05, 2.571)],
)
def test_an_interval_leaves_out_as_much_on_both_sides(
    blocks: int, outside: float, quantile: float
) -> None:
    """By printed tables of Student's distribution, with 5 degrees of freedom at least."""
    nothing = np.zeros(1)
    found = Estimate(nothing, np.zeros((1, 1)), (0,), blocks, nothing)
    assert found.quantile(outside) == pytest.approx(quantile, abs=5e-4)


# -- gusts -----------------------------------------------------------------------------------------


@pytest.mark.all
def test_gusts_widen_the_intervals() -> None:
    calm, gusts = flown("decks"), flown("decks", flight=SMALL_GUSTS)
    assert width(gusts, "inertia_x") > 1.3 * width(calm, "inertia_x")
    # The controller answers to gusts, which must not look like weak rotors.
    for axis in range(2):
        value = fitted(gusts)[f"inertia_{'xy'[axis]}"]
        assert off(value, 1e6 * DRONES["decks"].inertia[axis]) < 0.08
    assert "times its sensor's noise: gusts" in gusts.fit.warnings[-1]
    assert "gusts" not in " ".join(calm.fit.warnings)


def gusty(integrated: bool, size: float, duration_s: float, seed: int) -> np.ndarray:
    """Of a sensor whose noise is 1, 250 rows a second."""
    rng = np.random.default_rng(seed)
    kept = np.exp(-0.004 / duration_s)
    state, rows = 0.0, []
    for shake in rng.standard_normal(5000) * size * np.sqrt(1.0 - kept**2):
        rows.append(state)
        state = kept * state + shake
    shown = 0.004 * np.cumsum(rows) if integrated else np.array(rows)
    result: np.ndarray = shown + rng.standard_normal(5000)
    return result


@pytest.mark.parametrize(("integrated", "size"), [(False, 1.5), (True, 60.0)])
def test_what_a_filter_leaves_of_gusts_is_white(integrated: bool, size: float) -> None:
    values = gusty(integrated, size, 0.3, 4) + 3.0 * integrated  # which may begin anywhere
    found = most_likely(values[None], [integrated], 0.004, 0.3)
    assert found.gusts[0].size == pytest.approx(size, rel=0.3)
    assert found.gusts[0].duration_s == pytest.approx(0.3, rel=0.5)
    left = found(values[None])[0]
    assert 1.0 < left.std() < 1.3
    for later in (1, 2, 5, 20, 100):
        assert abs(np.corrcoef(left[later:], left[:-later])[0, 1]) < 0.06


@pytest.mark.parametrize("integrated", [False, True])
@pytest.mark.parametrize("size", [1e-3, 0.5, 60.0])
def test_a_filter_is_the_kalman_filter_of_its_gusts(size: float, integrated: bool) -> None:
    step_s, kept = 0.004, np.exp(-0.004 / 0.3)
    change, shown = np.array([[1.0, step_s], [0.0, kept]]), np.array([[1.0, 0.0]])
    if not integrated:
        change, shown = np.diag([0.0, kept]), np.array([[0.0, 1.0]])
    pushed = np.diag([0.0, size**2 * (1.0 - kept**2)])
    covariance = solve_discrete_are(change.T, shown.T, pushed, np.eye(1))
    gain = change @ covariance @ shown.T / (shown @ covariance @ shown.T + 1.0)
    values = np.random.default_rng(4).standard_normal(200)
    state, expected = np.zeros((2, 1)), []
    for value in values:
        left = value - (shown @ state).item()
        expected.append(left)
        state = change @ state + gain * left
    found = lfilter(*Gusts(size, 0.3, integrated).filter(step_s), values)
    np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("size", [0.5, 60.0])  # the smaller, the longer does a row matter
def test_a_filter_looks_back_only(size: float) -> None:
    """Else what a controller does later would be correlated with what is left."""
    model = Gusts(size, 0.3, False)
    values = np.random.default_rng(2).standard_normal((1, 500))
    changed = values.copy()
    changed[0, 300:] += 7.0
    one, other = (Filter([model], 0.004, 500)(each)[0] for each in (values, changed))
    np.testing.assert_allclose(one[:300], other[:300], atol=1e-9)
    assert other[300] - one[300] == pytest.approx(7.0)


def test_errors_that_are_alike_within_blocks_count_as_few() -> None:
    rng = np.random.default_rng(3)
    block = np.repeat(np.arange(40), 50)
    j = np.ones((2000, 1))
    nothing = np.zeros((0, 1))
    own, _ = covariance_of(j, rng.standard_normal(2000), block, nothing)
    alike, count = covariance_of(j, np.repeat(rng.standard_normal(40), 50), block, nothing)
    assert count == 40
    assert own[0, 0] == pytest.approx(1.0 / 2000.0, rel=0.5)
    assert alike[0, 0] == pytest.approx(1.0 / 40.0, rel=0.5)
    assumed, _ = covariance_of(j, rng.standard_normal(2000), block, np.array([[100.0]]))
    assert assumed[0, 0] == pytest.approx(1.0 / (2000.0 + 100.0**2), rel=0.2)


# -- many seeds ------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "flight",
    [Flight(), Flight(latency_steps=4, seconds=20.0), NOISY, GUSTS],
    ids=["usual", "late", "noisy", "gusts"],
)
def test_true_values_are_within_the_intervals_over_many_seeds(flight: Flight) -> None:
    share, count = share_covered(NAMES * 10, ("thrust", "speed"), 5, flight)
    assert count > 800
    assert share >= 0.92
