"""What came of a group of runs, as lines of text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rltools_host.ui.table import aligned
from rltools_host.ui.training_screen import duration

UNLIMITED = 10_000  # columns, of what is no terminal
SHORTEST_NAME = 16


def result_lines(document: Mapping[str, Any], width: int = UNLIMITED) -> list[str]:
    """A row for each run, sentences on what failed, and what they come to."""
    runs: Sequence[Mapping[str, Any]] = document["runs"]
    labels: dict[str, str] = {e["variant"]: e["label"] for e in document["summary"]}
    has_variants = any(labels.values())
    rows: list[tuple[str, ...]] = [("variant", "seed", "state", "return", "step", "time")]
    notes = []
    for each in runs:
        label, seed = labels[each["variant"]], str(each["seed"])
        train_s = math.nan if each["train_s"] is None else each["train_s"]
        returned = with_deviation(each["return_mean"], each["return_std"])
        step = f"{each['step']:,}"
        rows.append((label, seed, each["state"], returned, step, duration(train_s)))
        name = f"{label}, seed {seed}" if has_variants else f"seed {seed}"
        if each["error"]:
            notes.append(f"  {name}: {each['error']}")
        elif count := each.get("environment_faults"):
            notes.append(f"  {name}: the environment failed {times(count)}, and was made again")
        if count := each.get("observations_outside"):
            notes.append(f"  {name}: observations lay outside their range {times(count)}")
    if not has_variants:
        rows = [row[1:] for row in rows]
    notes += [""] if notes else []
    return [*fitted(rows, width), "", *notes, *summary_lines(document["summary"], width)]


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def summary_lines(summary: Sequence[Mapping[str, Any]], width: int = UNLIMITED) -> list[str]:
    """What the final returns of the runs come to, a row for each variant."""
    known = [entry for entry in summary if entry["runs"]]
    if not known:
        return ["  no run has a final return yet"]
    rows: list[tuple[str, ...]] = [("return", "runs", "mean", "deviation", "worst", "median")]
    for entry in known:
        numbers = (entry[key] for key in ("mean", "std", "worst", "median"))
        label = entry["label"] or "all seeds"
        rows.append((label, str(entry["runs"]), *(f"{value:.1f}" for value in numbers)))
    return fitted(rows, width)


def fitted(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """The table without a line that is wrapped: a long name gives way, then the last columns."""
    while True:
        lines = [f"  {line}" for line in aligned(rows)]
        too_much = max(map(len, lines)) - width
        if too_much <= 0 or len(rows[0]) == 1:
            return lines
        longest = max(len(row[0]) for row in rows)
        if longest - too_much >= SHORTEST_NAME:
            rows = [(shortened(row[0], longest - too_much), *row[1:]) for row in rows]
        else:
            rows = [row[:-1] for row in rows]


def shortened(name: str, room: int) -> str:
    return name if len(name) <= room else f"{name[: room - 1]}…"


def with_deviation(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.1f}" if std is None else f"{mean:.1f} ± {std:.1f}"
