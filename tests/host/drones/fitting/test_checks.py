"""The bounds of what a log may be, on both sides; what is wrong with a flight is in test_log.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.drones.fitting import agreement
from rltools_host.drones.fitting.log import FlightLog

STEP_S = 1 / 128  # whose multiples are exact
ROWS = 1000


def log_of(rows: int = ROWS, step_s: float = STEP_S, **changes: Any) -> FlightLog:
    """A log whose values are small, at these times."""
    zeros = np.zeros((rows, 3))
    fields: dict[str, Any] = {
        "time_s": np.arange(rows) * step_s,
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1)),
        "angular_velocity": zeros.copy(),
        "acceleration": zeros + np.array([0.0, 0.0, 9.81]),
        "velocity": zeros.copy(),
        "commands": np.full((rows, 4), 0.5),
        "commands_thrust": False,
    }
    given = {**fields, **changes}
    return FlightLog(Path("log"), "", np.arange(2, rows + 2), *given.values(), ())


def test_a_scale_lies_between_two_regressions() -> None:
    """Noise in either of two sensors, or in both, leaves the true scale within the bounds."""
    rng = np.random.default_rng(3)
    log = log_of(8 * ROWS)
    windows = agreement.Windows(log, 0.1)
    signal = np.cumsum(rng.normal(size=(8 * ROWS, 3)), axis=0)
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
