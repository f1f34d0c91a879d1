"""A flight's log: CSV with a header of names that have their units in them (docs/fit.md)."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rltools_host.build import tools
from rltools_host.drones.fitting import formats
from rltools_host.drones.fitting.formats import ROTORS
from rltools_host.drones.fitting.ulog_process import read_ulog
from rltools_host.errors import DamagedFileError, near_matches

Array = NDArray[np.float64]

TIME = "time_s"
ATTITUDE = tuple(f"attitude_{part}" for part in "wxyz")
ANGULAR_VELOCITY = tuple(f"angular_velocity_{axis}_rad_s" for axis in "xyz")
ACCELERATION = tuple(f"acceleration_{axis}_m_s2" for axis in "xyz")
VELOCITY = tuple(f"velocity_{axis}_m_s" for axis in "xyz")
THRUST = tuple(f"thrust_{rotor}" for rotor in ROTORS)
SPEED = tuple(f"speed_{rotor}" for rotor in ROTORS)
RAD_S = tuple(f"rad_s_{rotor}" for rotor in ROTORS)
RPM = tuple(f"rpm_{rotor}" for rotor in ROTORS)
REQUIRED = (TIME, *ATTITUDE, *ANGULAR_VELOCITY)
KNOWN = (*REQUIRED, *ACCELERATION, *VELOCITY, *THRUST, *SPEED, *RAD_S, *RPM)

LARGEST_NUMBER = 1e17  # of any column: microseconds since 1970 are 2e15
MIN_ROWS = 200
MAX_FACTS = 1000  # lines above a header
MAX_COLUMNS = 500
MAX_LINES = 5_000_000  # over an hour of 1,000 a second
LONGEST_LINE = 200_000  # characters
ULOG_GROUP = "ulog"  # of Python packages
LONGEST_NAME = 80
OVERSHOOT, FEW_OVER = 0.1, 0.02  # of commands beyond 0 to 1; the part of them


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
    commands: Array | None  # [row, 4], 0 to 1
    commands_thrust: bool  # fractions of the greatest thrust; else of the greatest rotor speed
    unused: tuple[str, ...]  # columns that are not known
    rotor_speeds: Array | None = None  # [row, 4], measured, rad/s
    notes: tuple[str, ...] = ()  # on what was done to its rows

    @property
    def duration_s(self) -> float:
        return float(self.time_s[-1] - self.time_s[0])

    @cached_property
    def step_s(self) -> float:
        """Return the median time from row to row."""
        return float(np.median(np.diff(self.time_s)))

    @cached_property
    def largest_speed(self) -> float:
        """Return the largest speed of a rotor that was measured, rad/s."""
        assert self.rotor_speeds is not None
        return float(self.rotor_speeds.max())

    def speed_fractions(self) -> Array:
        """Return the measured speeds as fractions of the largest one."""
        assert self.rotor_speeds is not None
        result: Array = self.rotor_speeds / self.largest_speed
        return result

    def fault(self, reason: str, row: int | None = None) -> DamagedFileError:
        """Return the error for a log that cannot be used."""
        line = "" if row is None else f", line {self.lines[row]}"
        return DamagedFileError(f"{self.path}{line}: {reason}")


def read_log(path: Path) -> FlightLog:
    """Read the log of a file, by its first bytes and names; raise DamagedFileError with the
    position in the file and the remedy."""
    data = formats.bytes_of(path)
    if data.startswith(formats.ULOG):
        tools.ensure_group(ULOG_GROUP)  # the process is too limited to install packages
        table, digest = read_ulog(path)
        lines = np.arange(len(table.columns[TIME])) + 1
        return log_of(path, digest, lines, checked_table(path, table), (), table.notes)
    digest = hashlib.sha256(data).hexdigest()
    rows = csv.reader(physical_lines(path, data), strict=True, skipinitialspace=True)
    facts: dict[str, str] = {}
    try:
        names = [name.strip() for name in next(rows, [])]
        while len(names) == 2 and len(facts) < MAX_FACTS:  # of the Blackbox Explorer
            facts[names[0]] = names[1]
            names = [name.strip() for name in next(rows, [])]
        if len(names) > MAX_COLUMNS:
            raise DamagedFileError(
                f"{path} has {len(names):,} columns, and {MAX_COLUMNS:,} at most are read: keep "
                "those of docs/fit.md"
            )
        foreign = None
        if formats.is_betaflight(names):
            foreign = formats.betaflight_columns(names)
        elif formats.is_crazyflie(names):
            foreign = formats.crazyflie_columns(names)
        else:
            names = checked_header(path, names)
        known = set(KNOWN) if foreign is None else foreign
        indices = [index for index, name in enumerate(names) if name in known]
        lines, values = values_of(path, names, indices, rows)
    except csv.Error as error:
        raise DamagedFileError(f"{path}, line {rows.line_num}: it is not CSV: {error}") from None
    columns = {names[index]: column for index, column in zip(indices, values.T, strict=True)}
    if foreign is None:
        unused = tuple(name for name in names if name not in KNOWN)
        return log_of(path, digest, lines, columns, unused, [])
    if formats.is_betaflight(names):
        table = formats.betaflight(path, columns, facts)
    else:
        table = formats.crazyflie(path, columns)
    return log_of(path, digest, lines, checked_table(path, table), (), table.notes)


def checked_table(path: Path, table: formats.Table) -> dict[str, Array]:
    """Return the columns of another flight controller's log; raise DamagedFileError where one is
    missing or has numbers that are none."""
    names = checked_header(path, list(table.columns))
    if len(table.columns[TIME]) < MIN_ROWS:
        raise DamagedFileError(
            f"{path} has {len(table.columns[TIME])} rows of a flight: at least "
            f"{MIN_ROWS} are needed"
        )
    for name in names:
        column = table.columns[name]
        if not np.all(np.abs(column) < LARGEST_NUMBER):
            raise DamagedFileError(f"{path}: {name} has numbers that are no measurements")
    return table.columns


def log_of(
    path: Path,
    digest: str,
    lines: NDArray[np.int64],
    columns: Mapping[str, Array],
    unused: tuple[str, ...],
    notes: Sequence[str],
) -> FlightLog:
    """Return the log of columns by the names of docs/fit.md, which are all there."""

    def group(wanted: tuple[str, ...]) -> Array | None:
        if wanted[0] not in columns:
            return None
        return np.stack([columns[name] for name in wanted], axis=1)

    attitude, rates = group(ATTITUDE), group(ANGULAR_VELOCITY)
    thrust, speed = group(THRUST), group(SPEED)
    rad_s, rpm = group(RAD_S), group(RPM)
    if rpm is not None:
        rad_s = rpm * (2.0 * np.pi / 60.0)
    commands, said = speed if thrust is None else thrust, list(notes)
    if commands is not None:
        over = (commands < -1e-6) | (commands > 1.0 + 1e-6)
        least, most = float(commands.min()), float(commands.max())
        if 0.0 < over.mean() < FEW_OVER and least > -OVERSHOOT and most < 1.0 + OVERSHOOT:
            said.append(
                f"commands from {least:.3g} to {most:.3g} were taken as 0 to 1: of a filter that "
                "overshoots?"
            )
            commands = np.clip(commands, 0.0, 1.0)
    assert attitude is not None
    assert rates is not None
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
        unused,
        rad_s,
        tuple(said),
    )


def physical_lines(path: Path, data: bytes) -> Iterator[str]:
    """Yield the lines of a text, of a bounded length, each with whole quotes: so that the rows of a
    CSV are bounded, too."""
    if b"\0" in data:
        raise no_text(path)
    stream = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    try:
        for number, line in enumerate(stream, 1):
            if len(line) > LONGEST_LINE:
                raise DamagedFileError(
                    f"{path}, line {number}: it is longer than {LONGEST_LINE:,} characters: the "
                    "file is no log, or damaged there"
                )
            if line.count('"') % 2:
                raise DamagedFileError(f"{path}, line {number}: it is not CSV: an open quote")
            if number > MAX_LINES:
                raise DamagedFileError(
                    f"{path} has more than {MAX_LINES:,} lines: cut it to a flight"
                )
            yield line
    except UnicodeDecodeError:
        raise no_text(path) from None


def no_text(path: Path) -> DamagedFileError:
    return DamagedFileError(f"{path} is not text: write the log as CSV")


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
    seen = set[str]()
    for name in filter(None, names):
        if name in seen:
            raise fault(f"the column {name} is there twice")
        seen.add(name)
    groups = (ACCELERATION, VELOCITY, THRUST, SPEED, RAD_S, RPM)
    given = [columns for columns in groups if any(name in names for name in columns)]
    for name in itertools.chain(REQUIRED, *given):
        if name not in names:
            raise fault(f"the column {name} is missing: {hint(name, names)}")
    if ACCELERATION not in given and VELOCITY not in given:
        raise fault(
            f"neither {ACCELERATION[0]} (of an accelerometer) nor {VELOCITY[0]} is there: one of "
            "them says how large the thrust is"
        )
    if not set(given) - {ACCELERATION, VELOCITY}:
        raise fault(
            f"the commands are missing: name them {THRUST[0]} and so on (fractions of the greatest "
            f"thrust) or {SPEED[0]} (of the greatest rotor speed), or measured speeds {RPM[0]} or "
            f"{RAD_S[0]}"
        )
    for one, other in ((THRUST, SPEED), (RAD_S, RPM)):
        if one in given and other in given:
            raise fault(f"both {one[0]} and {other[0]} are there: keep one of them")
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
    indices: list[int],
    rows: csv._reader,  # type: ignore[name-defined]
) -> tuple[NDArray[np.int64], Array]:
    """Return the line of each row, and the numbers of the columns at these indices."""
    lines, values, width = array("q"), array("d"), len(names)
    for cells in rows:
        if not cells:
            continue
        line = rows.line_num
        if len(cells) != width:
            raise DamagedFileError(
                f"{path}, line {line}: it has {len(cells)} values and the header {width}: "
                "the file is cut off or damaged there"
            )
        try:
            row = [float(cells[index]) for index in indices]
        except ValueError:
            row = [math.nan]
        if not sum(map(abs, row)) < LARGEST_NUMBER:  # one of them, or together
            row = [number(path, line, names[index], cells[index]) for index in indices]
        lines.append(line)
        values.extend(row)
    if len(lines) < MIN_ROWS:
        raise DamagedFileError(
            f"{path} has {len(lines)} rows: at least {MIN_ROWS} are needed, better ten seconds "
            "of 250 a second"
        )
    return np.array(lines), np.frombuffer(values).reshape(len(lines), len(indices))


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
