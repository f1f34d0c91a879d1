"""A flight's log: CSV with a header of names that have their units in them (docs/fit.md)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rltools_host.errors import DamagedFileError, UsageError, near_matches
from rltools_host.files import read_limited

Array = NDArray[np.float64]

# In the contract's order (policy/contracts/quadrotor.h).
ROTORS = ("front_right", "rear_right", "rear_left", "front_left")
TIME = "time_s"
ATTITUDE = tuple(f"attitude_{part}" for part in "wxyz")
ANGULAR_VELOCITY = tuple(f"angular_velocity_{axis}_rad_s" for axis in "xyz")
ACCELERATION = tuple(f"acceleration_{axis}_m_s2" for axis in "xyz")
VELOCITY = tuple(f"velocity_{axis}_m_s" for axis in "xyz")
THRUST = tuple(f"thrust_{rotor}" for rotor in ROTORS)
SPEED = tuple(f"speed_{rotor}" for rotor in ROTORS)
REQUIRED = (TIME, *ATTITUDE, *ANGULAR_VELOCITY)
KNOWN = (*REQUIRED, *ACCELERATION, *VELOCITY, *THRUST, *SPEED)

LARGEST_FILE = 400_000_000  # bytes
LARGEST_NUMBER = 1e17  # of any column: microseconds since 1970 are 2e15
MIN_ROWS = 200
LONGEST_NAME = 80


@dataclass(frozen=True)
class FlightLog:
    """A log's columns as arrays [row, ...] in SI units; None where the file does not have them."""

    path: Path
    sha256: str  # of the file
    lines: NDArray[np.int64]  # of the file, by row
    time_s: Array
    attitude: Array  # [row, 4], w x y z: turns body vectors into the world
    angular_velocity: Array  # [row, 3], body
    acceleration: Array | None  # [row, 3], specific force, body
    velocity: Array | None  # [row, 3], world
    commands: Array  # [row, 4], 0 to 1
    commands_thrust: bool  # fractions of the greatest thrust; else of the greatest rotor speed
    unused: tuple[str, ...]  # columns that are not known

    @property
    def duration_s(self) -> float:
        return float(self.time_s[-1] - self.time_s[0])

    @cached_property
    def step_s(self) -> float:
        """Return the median time from row to row."""
        return float(np.median(np.diff(self.time_s)))

    def fault(self, reason: str, row: int | None = None) -> DamagedFileError:
        """Return the error for a log that cannot be used."""
        line = "" if row is None else f", line {self.lines[row]}"
        return DamagedFileError(f"{self.path}{line}: {reason}")


def read_log(path: Path) -> FlightLog:
    """Read the log of a file; raise DamagedFileError with the position in the file and the
    remedy."""
    text, digest = text_of(path)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(rows, [])
        names = checked_header(path, [name.strip() for name in header])
        lines, values = values_of(path, names, rows)
    except csv.Error as error:
        raise DamagedFileError(f"{path}, line {rows.line_num}: it is not CSV: {error}") from None
    columns = {name: values[:, index] for index, name in enumerate(names) if name}

    def group(wanted: tuple[str, ...]) -> Array | None:
        if wanted[0] not in columns:
            return None
        return np.stack([columns[name] for name in wanted], axis=1)

    attitude, rates = group(ATTITUDE), group(ANGULAR_VELOCITY)
    thrust, speed = group(THRUST), group(SPEED)
    commands = speed if thrust is None else thrust
    assert attitude is not None
    assert rates is not None
    assert commands is not None
    return FlightLog(
        path,
        digest,
        lines,
        columns[TIME],
        attitude,
        rates,
        group(ACCELERATION),
        group(VELOCITY),
        commands,
        thrust is not None,
        tuple(name for name in names if name not in KNOWN),
    )


def text_of(path: Path) -> tuple[str, str]:
    """Return the file's text, and the SHA-256 of its bytes."""
    try:
        data = read_limited(path, LARGEST_FILE)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        text = "\0"
    except ValueError:
        raise UsageError(
            f"{path} has more than {LARGEST_FILE // 10**6} MB: cut it to a flight"
        ) from None
    if "\0" in text:
        raise DamagedFileError(f"{path} is not text: write the log as CSV")
    return text, hashlib.sha256(data).hexdigest()


def checked_header(path: Path, names: list[str]) -> list[str]:
    """Return the columns' names; raise DamagedFileError where one is missing or there twice."""

    def fault(reason: str) -> DamagedFileError:
        return DamagedFileError(f"{path}: {reason}")

    if not any(names):
        raise fault("it is empty: a log begins with a line of column names, such as time_s")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        raise fault("its columns are separated by semicolons or tabs: write commas")
    if any(len(name) > LONGEST_NAME or not name.isprintable() for name in names):
        raise fault("its first line has no column names, such as time_s")
    if all(is_number(name) for name in names if name):
        raise fault(f"its first line has numbers: begin with column names, such as {KNOWN[0]}")
    for index, name in enumerate(names):
        if name and name in names[:index]:
            raise fault(f"the column {name} is there twice")
    for name in REQUIRED:
        if name not in names:
            raise fault(f"the column {name} is missing: {hint(name, names)}")
    if ACCELERATION[0] not in names and VELOCITY[0] not in names:
        raise fault(
            f"neither {ACCELERATION[0]} (of an accelerometer) nor {VELOCITY[0]} is there: one of "
            "them says how large the thrust is"
        )
    given = [columns for columns in (THRUST, SPEED) if any(name in names for name in columns)]
    if not given:
        raise fault(
            f"the commands are missing: name them {THRUST[0]} and so on (fractions of the greatest "
            f"thrust) or {SPEED[0]} (of the greatest rotor speed)"
        )
    if len(given) == 2:
        raise fault(
            f"both {THRUST[0]} and {SPEED[0]} are there: keep the commands that the motors got"
        )
    groups = [columns for columns in (ACCELERATION, VELOCITY) if any(n in names for n in columns)]
    for columns in (*given, *groups):
        for name in columns:
            if name not in names:
                raise fault(f"the column {name} is missing: {hint(name, names)}")
    return names


def hint(name: str, names: list[str]) -> str:
    """Return the file's columns with similar names."""
    return near_matches(name, [other for other in names if other and other not in KNOWN] or names)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def values_of(
    path: Path,
    names: list[str],
    rows: csv._reader,  # type: ignore[name-defined]
) -> tuple[NDArray[np.int64], Array]:
    """Return the line of each row, and the numbers of the known columns, 0 in others."""
    known = [index for index, name in enumerate(names) if name in KNOWN]
    lines: list[int] = []
    values: list[list[float]] = []
    for cells in rows:
        if not cells:
            continue
        line = rows.line_num
        if len(cells) != len(names):
            raise DamagedFileError(
                f"{path}, line {line}: it has {len(cells)} values and the header {len(names)}: "
                "the file is cut off or damaged there"
            )
        row = [0.0] * len(names)
        for index in known:
            row[index] = number(path, line, names[index], cells[index])
        lines.append(line)
        values.append(row)
    if len(values) < MIN_ROWS:
        raise DamagedFileError(
            f"{path} has {len(values)} rows: at least {MIN_ROWS} are needed, better ten seconds "
            "of 250 a second"
        )
    return np.array(lines), np.array(values)


def number(path: Path, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
        if math.isfinite(value) and abs(value) < LARGEST_NUMBER:
            return value
    except ValueError:
        pass
    shown = text.strip()[:20]
    reason = f"{json.dumps(shown)} is not a usable number" if shown else "there is nothing"
    raise DamagedFileError(f"{path}, line {line}, {name}: {reason}: leave out rows like this")
