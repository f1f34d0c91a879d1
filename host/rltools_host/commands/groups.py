"""What `rlt train --seeds` and `rlt study` do with a group of runs: train it, sum it up."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from rltools_host.errors import RltError, UsageError
from rltools_host.hints import command_line, near_path
from rltools_host.report.group_page import write_group_report
from rltools_host.runs.group import STUDY, GroupFolder
from rltools_host.training.group import GroupRequest, train_group
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.seeds import parse_seeds
from rltools_host.ui.group_screen import make_group_screen
from rltools_host.ui.output import Output, lost
from rltools_host.ui.table import aligned
from rltools_host.ui.training_screen import duration

UNLIMITED = 10_000  # columns, of what is no terminal
SHORTEST_NAME = 16


def run_seeds(
    request: TrainingRequest,
    seeds: str | None,
    jobs: int | None,
    tensorboard: bool = True,
    json_output: bool = False,
) -> dict[str, Any]:
    """`rlt train --seeds`, and `--resume` of any group."""
    if request.seed is not None:
        raise UsageError("--seed does not go with --seeds or a group: name all seeds in --seeds")
    if seeds is not None and request.resume is not None:
        raise UsageError("--seeds does not go with --resume: a resumed group keeps its seeds")
    parsed = () if seeds is None else parse_seeds(seeds)
    return run(GroupRequest(request, parsed, jobs=jobs, tensorboard=tensorboard), json_output)


def run(request: GroupRequest, json_output: bool = False) -> dict[str, Any]:
    """Trains, prints what happens and returns the keys that `--json` prints."""
    output = Output(sys.stdout)
    stream = Output(sys.stderr) if json_output else output
    try:
        document = train_group(request, lambda view: make_group_screen(view, cast(IO[str], stream)))
    except RltError as error:
        if "runs" in error.details:
            lines = result_lines(error.details, columns(stream))
            print("\n".join(lines), file=stream, flush=True)
        raise
    group = GroupFolder.open(document["group"])
    document |= write_results(group)
    lines = [*result_lines(document, columns(stream)), *next_lines(document)]
    print("\n".join(lines), file=stream, flush=True)
    if json_output:
        print(json.dumps(document), file=output, flush=True)
    if output.error is not None:
        raise lost(output.error, near_path(group.path))
    return document


def columns(stream: Output) -> int:
    """Of a terminal."""
    with contextlib.suppress(OSError, ValueError):
        if stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns or UNLIMITED
    return UNLIMITED


def write_results(group: GroupFolder) -> dict[str, str]:
    """A study ends with its page and the curves as numbers."""
    if group.metadata["kind"] != STUDY:
        return {}
    report, curves = write_group_report(group)
    return {"report": str(report), "curves": str(curves)}


def result_lines(document: Mapping[str, Any], width: int = UNLIMITED) -> list[str]:
    """A row for each run, a sentence for each that failed, and what they come to."""
    runs: Sequence[Mapping[str, Any]] = document["runs"]
    labels: dict[str, str] = {e["variant"]: e["label"] for e in document["summary"]}
    has_variants = any(labels.values())
    rows: list[tuple[str, ...]] = [("variant", "seed", "state", "step", "return", "time")]
    failed = []
    for each in runs:
        label, seed = labels[each["variant"]], str(each["seed"])
        train_s = math.nan if each["train_s"] is None else each["train_s"]
        returned = with_deviation(each["return_mean"], each["return_std"])
        step = f"{each['step']:,}"
        rows.append((label, seed, each["state"], step, returned, duration(train_s)))
        if each["error"]:
            name = f"{label}, seed {seed}" if has_variants else f"seed {seed}"
            failed.append(f"  {name}: {each['error']}")
    if not has_variants:
        rows = [row[1:] for row in rows]
    return [*fitted(rows, width), "", *failed, *summary_lines(document["summary"], width)]


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


def next_lines(document: Mapping[str, Any]) -> list[str]:
    """Where it all lies, and how to look at it."""
    group = near_path(Path(document["group"]))
    lines = ["", f"  runs  {group}"]
    if "report" in document:
        lines.append(f"  page  {near_path(Path(document['report']))}")
        lines.append(f"        {near_path(Path(document['curves']))}")
    else:
        lines.append(f"  next  {command_line('report', group)}")
    word = "next" if "report" in document else "    "
    return [*lines, f"  {word}  {command_line('evaluate', group, '--in', 'gymnasium')}"]
