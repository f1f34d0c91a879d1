"""The bounds of what a log may be, on both sides; what is wrong with a flight is in test_log.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quadrotor_flight import Array
from rltools_host.drones.fitting import agreement, checks, sensors
from rltools_host.drones.fitting.log import FlightLog
from rltools_host.errors import DamagedFileError

STEP_S = 1 / 128  # whose multiples are exact
ROWS = 1000
Check = Callable[[FlightLog], None]


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


def judged(check: Check, log: FlightLog, reason: str | None) -> None:
    if reason is None:
        check(log)
        return
    with pytest.raises(DamagedFileError) as caught:
        check(log)
    assert str(caught.value).startswith(f"log{reason}")


@pytest.mark.parametrize(
    ("rows", "step_s", "reason"),
    [
        (513, STEP_S, None),  # 4 s
        (512, STEP_S, ": it lasts 4 s: 4 s in the air are the least"),
        (76801, STEP_S, None),  # 600 s
        (76802, STEP_S, ": it lasts 600 s: cut it to at most 600 s"),
        (1000, 0.0204, None),
        (1000, 0.0206, ": its rows are 0.0206 s apart: 0.02 s is the most"),
        (1000, 0.5, ": its rows are 0.5 s apart: 0.02 s is the most"),
        (1000, 0.75, ": its rows are 0.75 s apart: if time_s is in milliseconds"),
        (1000, 500.0, ": its rows are 500 s apart: if time_s is in milliseconds"),
        (1000, 501.0, ": its rows are 501 s apart: if time_s is in microseconds"),
    ],
)
def test_time(rows: int, step_s: float, reason: str | None) -> None:
    judged(checks.check_time, log_of(rows, step_s), reason)


@pytest.mark.parametrize(
    ("step_s", "gap_s", "is_one"),
    [
        (STEP_S, 4 * STEP_S, False),
        (STEP_S, 4.1 * STEP_S, True),
        (STEP_S / 8, 0.00395, False),  # 3 ms more than a step may be missing
        (STEP_S / 8, 0.0041, True),
    ],
)
def test_a_gap(step_s: float, gap_s: float, is_one: bool) -> None:
    log = log_of(8 * ROWS, step_s)
    log.time_s[700:] += gap_s - step_s
    start = f", line 702: nothing was recorded for {gap_s:.3g} s before it, where rows"
    judged(checks.check_time, log, start if is_one else None)


@pytest.mark.parametrize(
    ("field", "largest", "unit"),
    [
        ("angular_velocity", 80.0, "rad/s"),
        ("acceleration", 320.0, "m/s^2"),
        ("velocity", 100.0, "m/s"),
    ],
)
def test_the_largest_values(field: str, largest: float, unit: str) -> None:
    log = log_of()
    values: Array = getattr(log, field)
    values[7] = (0.0, -largest, largest)
    judged(checks.check_ranges, log, None)
    values[8, 1] = -largest - 0.5
    beyond = f"{-largest - 0.5:g} {unit} is more than any flight has: "
    judged(checks.check_ranges, log, f", line 10: {beyond}")


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (-1e-6, None),
        (1.0 + 1e-6, None),
        (-3e-6, "scale the commands from 0, the least, to 1, the greatest"),
        (1.01, "divide by 100"),
        (100.0, "divide by 100"),
        (101.0, "scale the commands from 0, the least, to 1, the greatest"),
        (2100.0, "scale the commands from 0, the least, to 1, the greatest"),
        (2101.0, "divide by 65535"),
    ],
)
@pytest.mark.parametrize("kind", ["speed", "thrust"])
def test_commands_are_fractions(command: float, remedy: str | None, kind: str) -> None:
    log = log_of(commands_thrust=kind == "thrust")
    log.commands[3, 2] = command
    start = f", line 5: a command of {command:g} is not a fraction, {kind}_* are 0 to 1: {remedy}"
    judged(checks.check_ranges, log, None if remedy is None else start)


@pytest.mark.parametrize(
    ("limit", "count", "change", "reason"),
    [
        (1.0, 400, 0.1, None),
        (1.0, 402, 0.1, "the rear left rotor's command is at its limit, mostly 1, in 40 % of"),
        (0.0, 402, 0.1, "the rear left rotor's command is at its limit, mostly 0, in 40 % of"),
        (0.5, 0, 0.0021, None),
        (0.5, 0, 0.0019, "its commands do not change"),
    ],
)
def test_commands_change_and_are_seldom_at_their_limits(
    limit: float, count: int, change: float, reason: str | None
) -> None:
    log = log_of()
    log.commands[::2] += change
    log.commands[1::2] -= change
    log.commands[:count, 2] = limit
    judged(checks.check_commands, log, None if reason is None else f": {reason}")


@pytest.mark.parametrize(
    ("up", "reason"),
    [
        (0.25, "its accelerations are 0.25 m/s^2 long on average, 0.0255 times gravity's 9.81"),
        (0.5, "its accelerations are 0.5 m/s^2 long on average: if they are in g"),
        (2.75, "its accelerations are 2.8 m/s^2 long on average: if they are in g"),
        (4.0, None),
        (29.0, None),
        (29.5, "its accelerations are 29.5 m/s^2 long on average, 3.01 times gravity's 9.81"),
        (-4.0, "acceleration_z is -4.0 m/s^2 on average: z is up"),
    ],
)
def test_gravity(up: float, reason: str | None) -> None:
    log = log_of(acceleration=np.tile([0.0, 0.0, up], (ROWS, 1)))
    judged(checks.check_gravity, log, None if reason is None else f": {reason}")


@pytest.mark.parametrize(
    ("up", "is_fault"), [(8.65, False), (8.6, True), (10.97, False), (11.0, True)]
)
def test_the_scale_of_gravity(up: float, is_fault: bool) -> None:
    """12 % of it may be wrong; without a velocity it may also have gained 10 m/s meanwhile."""
    log = log_of(acceleration=np.tile([0.0, 0.0, up], (ROWS, 1)))
    start = f": the acceleration is {up / 9.81:.3g} times what gravity and attitude say"
    judged(sensors.check_gravity_scale, log, start if is_fault else None)
    judged(sensors.check_gravity_scale, replace(log, velocity=None), None)


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
