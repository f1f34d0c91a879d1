"""How far two noisy sensors of one motion bound the ratio of their values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from rltools_host.drones.fitting import agreement

STEP_S = 1 / 128  # whose multiples are exact
ROWS = 8000


def test_a_scale_lies_between_two_regressions() -> None:
    """Noise in either of two sensors, or in both, leaves the true scale within the bounds."""
    rng = np.random.default_rng(3)
    time_s = STEP_S * np.arange(ROWS)
    log: Any = SimpleNamespace(time_s=time_s, step_s=STEP_S, duration_s=time_s[-1])
    windows = agreement.Windows(log, 0.1)
    signal = np.cumsum(rng.normal(size=(ROWS, 3)), axis=0)
    for noise in (0.0, 0.3):
        for other in (0.0, 0.3):
            curve = 2.0 * signal + noise * rng.normal(size=signal.shape)
            changes = windows.change(signal)
            expected = changes + other * rng.normal(size=changes.shape)
            found = agreement.match(windows, curve, expected, 0.01)
            assert found.of == (0, 1, 2)
            assert found.signs == (1, 1, 1)
            assert found.delay_s == 0.0
            for axis in range(3):
                low, high = found.bounds(axis)
                assert low * 0.999 < 2.0 < high * 1.001
                assert high / low < 1.6
