"""A noisy velocity beside an accelerometer, which makes flapping look too small."""

from __future__ import annotations

import numpy as np
import pytest

from rltools_host.drones.fitting.velocity import most_likely_gain, smoothed, steadied

STEP_S, ROWS = 0.01, 3000
Array = np.ndarray


def walk(step: float, noise: float, seed: int) -> tuple[Array, Array]:
    """A random walk, and the same under white noise."""
    rng = np.random.default_rng(seed)
    true = step * np.cumsum(rng.standard_normal(ROWS))
    return true, true + noise * rng.standard_normal(ROWS)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 2.0])
def test_the_gain_is_that_of_the_kalman_filter(ratio: float) -> None:
    variance = 0.5 * ratio * (ratio + np.sqrt(ratio**2 + 4.0))
    found = [most_likely_gain(walk(ratio, 1.0, seed)[1]) for seed in range(8)]
    assert np.mean(found) == pytest.approx(variance / (variance + 1.0), rel=0.1)


def test_what_is_smoothed_is_as_near_as_can_be() -> None:
    """The best error of a walk that steps by a tenth of the noise is 0.22 of the noise."""
    errors = [
        float((smoothed(noisy) - true)[50:-50].std())
        for true, noisy in (walk(0.1, 1.0, seed) for seed in range(8))
    ]
    assert 0.2 < np.mean(errors) < 0.25


def test_a_steadied_velocity_keeps_its_quick_changes() -> None:
    """Plain smoothing of a velocity would take them away."""
    rng = np.random.default_rng(2)
    time_s = STEP_S * np.arange(ROWS)
    true = 0.1 * np.sin(20.0 * time_s + np.arange(3)[:, None]).T
    felt = np.gradient(true, STEP_S, axis=0) + 0.3 * rng.standard_normal(true.shape)
    changes = STEP_S * np.cumsum(felt, axis=0)
    found = steadied(true + 0.03 * rng.standard_normal(true.shape), changes)
    assert (found - true).std() < 0.4 * 0.03


def test_a_velocity_without_noise_stays_as_it_is() -> None:
    true, _ = walk(1.0, 0.0, 3)
    assert most_likely_gain(true) > 0.9
    np.testing.assert_allclose(smoothed(true), true, atol=0.1 * np.diff(true).std())
