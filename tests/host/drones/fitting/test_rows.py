"""Rows that are missing, or say the same again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rltools_host.drones.fitting.checks import check_log, check_time
from rltools_host.drones.fitting.log import FlightLog, read_log
from rltools_host.drones.fitting.rows import MAX_ROWS, liveliest, prepared
from rltools_host.errors import DamagedFileError
from rltools_host.tree import TREE

LOG = read_log(TREE.root / "examples" / "fit" / "flight.csv")
NAMES = ("lines", "time_s", "attitude", "angular_velocity", "acceleration", "velocity", "commands")


def rows(log: FlightLog, kept: np.ndarray) -> FlightLog:
    return replace(log, **{name: getattr(log, name)[kept] for name in NAMES})


def test_a_whole_log_stays_as_it_is() -> None:
    assert prepared(LOG) is LOG
    assert liveliest(LOG) is LOG


@pytest.mark.parametrize("name", ["velocity", "attitude", "acceleration"])
def test_held_values_become_lines(name: str) -> None:
    values = getattr(LOG, name)
    held = values[np.arange(len(values)) // 5 * 5]
    found = prepared(replace(LOG, **{name: held}))
    got = getattr(found, name)
    np.testing.assert_allclose(got[::5], values[::5], atol=2e-3)
    # Lines are nearer than what was held, which is two rows late on average.
    late, near = (np.abs(each[: len(got) - 5] - values[:-5]).mean() for each in (held, got))
    assert near < 0.95 * late
    assert found.notes == (
        f"{name} is held in 80 % of the rows: lines between the fresh ones were taken",
    )
    np.testing.assert_array_equal(found.commands, LOG.commands)  # which hold by their nature


def test_each_rotors_telemetry_is_fresh_at_its_own_rows() -> None:
    time_s = LOG.time_s
    true = 1500.0 + 200.0 * np.sin(7.0 * time_s[:, None] + np.arange(4))
    at = np.arange(len(time_s))[:, None]
    held = np.take_along_axis(true, np.maximum((at + np.arange(4)) // 4 * 4 - np.arange(4), 0), 0)
    found = prepared(replace(LOG, rotor_speeds=held)).rotor_speeds
    assert found is not None
    assert np.abs(found[8:-8] - true[8:-8]).max() < 2.0 < np.abs(held - true).max()


def test_dropped_rows_are_filled() -> None:
    rng = np.random.default_rng(2)
    kept = np.flatnonzero(rng.random(len(LOG.time_s)) > 0.03)
    kept = np.union1d(kept, [0, len(LOG.time_s) - 1])
    found = prepared(rows(LOG, kept))
    np.testing.assert_allclose(found.time_s, LOG.time_s, atol=1e-3)
    assert np.abs(found.angular_velocity - LOG.angular_velocity).max() < 0.4
    assert found.commands is not None
    assert LOG.commands is not None
    assert np.abs(found.commands - LOG.commands).mean() < 1e-3
    assert found.notes[0].endswith("rows are missing, and were filled with lines")
    check_log(found)


def test_of_a_log_with_a_gap_the_longest_part_is_used() -> None:
    kept = np.r_[0:500, 640:1750]
    found = prepared(rows(LOG, kept))
    np.testing.assert_array_equal(found.time_s, LOG.time_s[640:])
    assert "nothing was recorded before line 642: the longest part, lines 642 to" in found.notes[0]
    check_log(found)
    short = rows(LOG, np.r_[0:500, 620:1100, 1200:1750])
    with pytest.raises(
        DamagedFileError,
        match=r"line 622: nothing was recorded for 0\.726 s before it.*in 2 places",
    ):
        prepared(short)


def test_rows_that_were_numbered_anew_are_seen_by_the_attitude() -> None:
    """A second was cut out, and the times are as if nothing was."""
    cut = rows(LOG, np.r_[0:500, 667:1750])
    cut = replace(cut, time_s=LOG.time_s[: len(cut.time_s)])
    found = prepared(cut)
    assert len(found.time_s) == 1750 - 667
    assert "rows were left out and numbered anew before line 669: the longest" in found.notes[0]
    check_log(found)
    many = rows(LOG, np.r_[0:500, 667:1000, 1100:1500])
    many = replace(many, time_s=LOG.time_s[: len(many.time_s)])
    with pytest.raises(DamagedFileError, match="rows were left out there and time_s numbered anew"):
        prepared(many)
    wrong = LOG.attitude.copy()
    wrong[300] = [1.0, 0.0, 0.0, 0.0]  # one that is wrong is no gap
    assert prepared(replace(LOG, attitude=wrong)).notes == ()


def test_commands_of_a_slow_topic_are_refused() -> None:
    assert LOG.commands is not None
    slow = LOG.commands[np.arange(len(LOG.time_s)) // 16 * 16]
    with pytest.raises(
        DamagedFileError, match="its commands change 10 times a second and are held"
    ):
        check_log(replace(LOG, commands=slow))


def test_the_liveliest_part_of_a_long_log() -> None:
    times = MAX_ROWS // len(LOG.time_s) + 3
    kept = np.tile(np.arange(len(LOG.time_s)), times)
    long = rows(LOG, kept)
    quiet = np.where(np.arange(len(kept)) < 4000, 0.3, 1.0)[:, None]
    long = replace(
        long,
        time_s=LOG.step_s * np.arange(len(kept)),
        lines=np.arange(len(kept)) + 2,
        angular_velocity=long.angular_velocity * quiet,
    )
    found = liveliest(long)
    assert len(found.time_s) == MAX_ROWS
    assert found.lines[0] > 4000 - len(LOG.time_s)
    assert f"the liveliest 90 s of {long.duration_s:.0f} s, lines" in found.notes[0]
    # Of 4,000 rows a second 3.75 s were kept, and refused as too few.
    check_time(liveliest(replace(long, time_s=2.5e-4 * np.arange(len(kept)))))
