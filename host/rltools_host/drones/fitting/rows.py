"""Rows that are missing or say the same again: what a logger, a radio or a merge of topics leaves.

Values that a slower sensor holds become lines between its fresh ones. A few rows that were dropped
are filled in the same way. Where more are missing, also where the rows were numbered anew since,
the longest part is kept. Each is told in a note.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rltools_host.drones.fitting.formats import interpolated, nearest_signs
from rltools_host.drones.fitting.log import FlightLog

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

HELD = 0.2  # the part of the rows that hold the values before: more is no chance
WIDEST_GAP = 4.0  # of the usual step
REGULAR, MULTIPLE = 0.2, 0.25  # deviation from the usual step, and from a multiple of it
MAX_IRREGULAR = 0.1  # part of the steps
JUMP, SMALLEST_JUMP_RAD = 12.0, 0.05  # of the usual difference of attitude and gyroscope
IMPOSSIBLE = 1.5  # times the turn of a row at the greatest angular velocity
SHORTEST_S = 4.0
MAX_ROWS = 15_000  # that are fitted: a minute at 250 a second, but no less than SHORTEST_S
ARRAYS = ("attitude", "angular_velocity", "acceleration", "velocity", "rotor_speeds")


def prepared(log: FlightLog) -> FlightLog:
    """Return the log with lines where values were held, and without gaps."""
    if np.any(np.diff(log.time_s) <= 0.0):
        return log  # which the checks refuse
    return filled(without_gaps(lines_where_held(log)))


def rows_of(log: FlightLog, rows: slice, note: str) -> FlightLog:
    """Return a part of a log."""
    arrays = {
        name: None if getattr(log, name) is None else getattr(log, name)[rows]
        for name in ("lines", "time_s", "commands", *ARRAYS)
    }
    return with_arrays(log, arrays, note)


def with_arrays(log: FlightLog, arrays: Mapping[str, object], *notes: str) -> FlightLog:
    """Return the log with other arrays and some more notes."""
    return replace(log, notes=(*log.notes, *notes), **cast(Any, arrays))


# -- held values -----------------------------------------------------------------------------------


def fresh_rows(values: Array) -> Indices:
    """Return the rows of [row, n] values that differ from the row before."""
    fresh = np.any(np.diff(values, axis=0) != 0.0, axis=1)
    return np.concatenate([[0], np.flatnonzero(fresh) + 1])


def lines_where_held(log: FlightLog) -> FlightLog:
    changed: dict[str, Array] = {}
    notes = []
    for name in ARRAYS:
        values = getattr(log, name)
        if values is None:
            continue
        if name == "rotor_speeds":  # each has a telemetry of its own
            each = [fresh_rows(column[:, None]) for column in values.T]
            fresh = max(each, key=len)
            held = 1.0 - min(map(len, each)) / len(values)
        else:
            fresh = fresh_rows(values)
            each = [fresh] * values.shape[1]
            held = 1.0 - len(fresh) / len(values)
        if held <= HELD or len(fresh) < 3:
            continue
        if name == "attitude":
            values = nearest_signs(values)
        columns = [
            np.interp(log.time_s, log.time_s[rows], column[rows])
            for column, rows in zip(values.T, each, strict=True)
        ]
        result = np.stack(columns, axis=1)
        if name == "attitude":
            result /= np.maximum(np.linalg.norm(result, axis=1, keepdims=True), 1e-9)
        changed[name] = result
        notes.append(
            f"{name.replace('_', ' ')} is held in {100 * held:.0f} % of the rows: lines between "
            "the fresh ones were taken"
        )
    return with_arrays(log, changed, *notes) if changed else log


# -- missing rows ----------------------------------------------------------------------------------


def without_gaps(log: FlightLog) -> FlightLog:
    """Return the longest part without a gap; raise DamagedFileError unless it is long enough."""
    steps, usual = np.diff(log.time_s), log.step_s
    gaps = steps > max(WIDEST_GAP * usual, usual + 0.003)
    hidden = jumps(log) & ~gaps
    cuts = np.flatnonzero(gaps | hidden) + 1
    if not len(cuts):
        return log
    edges = np.concatenate([[0], cuts, [len(log.time_s)]])
    longest = int(np.argmax(log.time_s[edges[1:] - 1] - log.time_s[edges[:-1]]))
    rows = slice(int(edges[longest]), int(edges[longest + 1]))
    kept_s = float(log.time_s[rows.stop - 1] - log.time_s[rows.start])
    row = int(cuts[0])
    if kept_s < SHORTEST_S:
        kind = (
            "the attitude turns from the row before as it cannot by the angular velocity: rows "
            "were left out there and time_s numbered anew"
            if hidden[row - 1]
            else f"nothing was recorded for {steps[row - 1]:.3g} s before it, where rows are "
            f"{usual:.3g} s apart"
        )
        raise log.fault(
            f"{kind} (in {len(cuts)} places): keep a part of {SHORTEST_S:g} s or more without gaps",
            row,
        )
    kind = "rows were left out and numbered anew" if hidden.any() else "nothing was recorded"
    return rows_of(
        log,
        rows,
        f"{kind} before line {log.lines[row]}"
        f"{f' and in {len(cuts) - 1} more places' if len(cuts) > 1 else ''}: the longest part, "
        f"lines {log.lines[rows.start]} to {log.lines[rows.stop - 1]}, {kept_s:.1f} s, was used",
    )


def jumps(log: FlightLog) -> NDArray[np.bool_]:
    """Return the steps within which the attitude turns otherwise than the gyroscope says, and does
    not turn back: where rows are missing that the times do not show."""
    q = nearest_signs(log.attitude)
    last, here = q[:-1], q[1:]
    # To first order the vector is half the turn, in the body.
    turned = 2.0 * (
        last[:, :1] * here[:, 1:] - here[:, :1] * last[:, 1:] - np.cross(last[:, 1:], here[:, 1:])
    )
    rates = log.angular_velocity
    expected = 0.5 * (rates[1:] + rates[:-1]) * np.diff(log.time_s)[:, None]
    off = turned - expected
    size = np.linalg.norm(off, axis=1)
    quickest = float(np.linalg.norm(rates, axis=1).max()) * log.step_s
    limit = max(JUMP * float(np.median(size)), SMALLEST_JUMP_RAD, IMPOSSIBLE * quickest)
    found = size > limit
    # A single wrong attitude turns there and back.
    back = np.zeros(len(size), bool)
    back[1:] |= np.linalg.norm(off[1:] + off[:-1], axis=1) < 0.5 * size[1:]
    back[:-1] |= np.linalg.norm(off[1:] + off[:-1], axis=1) < 0.5 * size[:-1]
    found &= ~back
    # More than a few are another thing: units, signs or frames, which the checks name.
    return found if found.mean() < 0.01 else np.zeros_like(found)


def filled(log: FlightLog) -> FlightLog:
    """Return a log of regular steps with rows in the place of the few that were dropped: sensors
    lie on lines, and commands are between those before and after."""
    steps, usual = np.diff(log.time_s), log.step_s
    number = np.round(steps / usual).astype(int)
    regular = np.abs(steps / usual - number) < np.where(number > 1, MULTIPLE * number, REGULAR)
    dropped = (number > 1) & (number <= WIDEST_GAP) & regular
    if not dropped.any() or (~regular).mean() > MAX_IRREGULAR:
        return log
    number = np.where(dropped, number, 1)
    places = np.concatenate([[0], np.cumsum(number)])
    first = np.repeat(np.arange(len(steps)), number)
    parts = np.arange(places[-1]) - places[:-1][first]
    time_s = np.append(log.time_s[first] + parts * steps[first] / number[first], log.time_s[-1])
    arrays: dict[str, Array | Indices] = {"time_s": time_s}
    for name in ARRAYS:
        values = getattr(log, name)
        if values is not None:
            values = nearest_signs(values) if name == "attitude" else values
            arrays[name] = interpolated(time_s, log.time_s, values)
    if log.commands is not None:
        new = np.append(first, len(steps))
        commands = log.commands[new]
        missing = np.append(parts > 0, False)
        commands[missing] = 0.5 * (log.commands[new[missing]] + log.commands[new[missing] + 1])
        arrays["commands"] = commands
    arrays["lines"] = log.lines[np.append(first, len(steps))]
    count = int((number - 1).sum())
    note = f"{count} of {len(time_s)} rows are missing, and were filled with lines"
    return with_arrays(log, arrays, note)


# -- long logs -------------------------------------------------------------------------------------


def liveliest(log: FlightLog) -> FlightLog:
    """Return the part of a long log that moves the most: as the battery sags, a whole one is not of
    one drone, and more rows add little."""
    count = max(MAX_ROWS, math.ceil(SHORTEST_S / log.step_s) + 1)
    if len(log.time_s) <= count:
        return log
    squares = np.cumsum((log.angular_velocity**2).sum(axis=1))
    start = int(np.argmax(squares[count:] - squares[:-count])) + 1
    rows = slice(start, start + count)
    seconds = float(log.time_s[rows.stop - 1] - log.time_s[start])
    return rows_of(
        log,
        rows,
        f"the liveliest {seconds:.0f} s of {log.duration_s:.0f} s, lines {log.lines[start]} to "
        f"{log.lines[rows.stop - 1]}, were fitted",
    )
