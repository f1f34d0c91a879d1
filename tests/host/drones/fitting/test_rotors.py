"""What rotors do, side by side in pieces of time, is what they do step by step."""

from __future__ import annotations

import numpy as np
import pytest

from quadrotor_flight import Array
from rltools_host.drones.fitting.rotors import (
    RotorParameters,
    delayed,
    measured_motion,
    motions,
    set_points,
)

PARTS = 40  # of a step, in the reference: latencies of whole milliseconds are between two


def one_by_one(time_s: Array, targets: Array, p: RotorParameters) -> tuple[Array, Array]:
    """Speeds at the rows and integrals of thrust, with the command of each moment looked up."""
    w, speeds, impulses = targets[0].copy(), [targets[0].copy()], []
    for k, step_s in enumerate(np.diff(time_s)):
        impulse = np.zeros(4)
        h = step_s / PARTS
        for part in range(PARTS):
            middle_s = time_s[k] + (part + 0.5) * h - p.latency_s
            row = max(int(np.searchsorted(time_s, middle_s, side="right")) - 1, 0)
            target = targets[row]
            lag = np.maximum(np.where(w < target, p.lag_up_s, p.lag_down_s), 1e-7)

            def thrust(speed: Array) -> Array:
                result: Array = p.shape_0 + p.shape_1 * speed + p.shape_2 * speed**2
                return result

            half = target + (w - target) * np.exp(-0.5 * h / lag)
            after = target + (w - target) * np.exp(-h / lag)
            impulse += h / 6.0 * (thrust(w) + 4.0 * thrust(half) + thrust(after))
            w = after
        speeds.append(w.copy())
        impulses.append(impulse)
    return np.array(speeds), np.array(impulses)


def commands_of(rows: int, jitter_ms: int = 1) -> tuple[Array, Array]:
    """Times about 5 ms apart, and commands that jump and hold."""
    rng = np.random.default_rng(rows)
    time_s = np.cumsum(rng.integers(5 - jitter_ms, 6 + jitter_ms, rows)) * 1e-3
    held = np.repeat(rng.uniform(0.1, 1.0, (rows // 3 + 1, 4)), 3, axis=0)[:rows]
    return time_s, held


SETS = [
    RotorParameters(0.05, 0.2, 0.0, 0.1, 0.3),
    RotorParameters(0.2, 0.05, 0.003),
    RotorParameters(0.03, 0.03, 0.011, 0.0, 0.2),
    RotorParameters(0.5, 0.004, 0.002),
]


@pytest.mark.parametrize("rows", [2, 3, 90, 101])
@pytest.mark.parametrize("p", SETS)
def test_they_do_what_they_do_step_by_step(rows: int, p: RotorParameters) -> None:
    # With a latency two commands may arrive in a long step, of which one is left out.
    time_s, commands = commands_of(rows, 0 if p.latency_s else 1)
    (found,) = motions(time_s, commands, False, [p])
    speeds, impulses = one_by_one(time_s, commands, p)
    thrust = p.shape_0 + p.shape_1 * speeds + p.shape_2 * speeds**2
    np.testing.assert_allclose(found.thrust, thrust, atol=1e-9)
    np.testing.assert_allclose(found.impulse, impulses, atol=1e-9)


def test_thrust_of_measured_speeds_is_integrated_as_by_simpsons_rule() -> None:
    """The speeds lie on lines between the rows, so that the rule is exact."""
    p = RotorParameters(0.1, 0.1, 0.0, 0.05, 0.2)
    time_s, speeds = commands_of(90)
    w, h = np.stack([speeds[:-1], 0.5 * (speeds[:-1] + speeds[1:]), speeds[1:]]), np.diff(time_s)
    first, middle, last = p.shape_0 + p.shape_1 * w + p.shape_2 * w**2
    impulses = h[:, None] / 6.0 * (first + 4.0 * middle + last)
    np.testing.assert_allclose(measured_motion(time_s, speeds, p).impulse, impulses, rtol=1e-12)


@pytest.mark.parametrize("irregular_s", [0.0, 1e-4])
def test_a_delay_keeps_a_curve(irregular_s: float) -> None:
    random = np.random.default_rng(0)
    time_s = np.arange(3000) * 0.002 + irregular_s * random.standard_normal(3000)
    for delay_s in (-0.0037, 0.0, 0.0004, 0.011):
        found = delayed(np.sin(20.0 * time_s)[:, None], time_s, delay_s)[100:-100, 0]
        expected = np.sin(20.0 * (time_s - delay_s))[100:-100]
        np.testing.assert_allclose(found, expected, atol=2e-5 + 40.0 * irregular_s)


def test_a_delay_keeps_the_size_of_noise() -> None:
    """On lines between the rows it would be 0.71 in the middle, and a fit would find a delay."""
    noise = np.random.default_rng(0).standard_normal((20_000, 4))
    found = delayed(noise, np.arange(20_000) * 0.002, 0.001)
    assert found.std() == pytest.approx(noise.std(), rel=1e-3)


def test_set_points_are_of_the_same_curve() -> None:
    p = RotorParameters(0.1, 0.1, 0.0, 0.05, 0.2)
    fractions = np.linspace(0.05, 1.0, 20)
    w = set_points(fractions, p)
    np.testing.assert_allclose(p.shape_0 + p.shape_1 * w + p.shape_2 * w**2, fractions)
    square = RotorParameters(0.1, 0.1, 0.0)
    np.testing.assert_allclose(set_points(np.array([0.0, 0.25, 1.0]), square), [0.0, 0.5, 1.0])
