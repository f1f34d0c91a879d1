"""`rlt compare`: runs and groups beside each other, also of different algorithms."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.options import Json, Output
from rltools_host.errors import UsageError
from rltools_host.files import plain_json
from rltools_host.hints import near_path
from rltools_host.lines import aside, columns, folded
from rltools_host.report.comparison import (
    Comparison,
    compare,
    difference_lines,
    write_comparison,
)
from rltools_host.runs.aggregates import RESAMPLES, Interval
from rltools_host.runs.group import statistics_of
from rltools_host.ui.output import without_commands


def run(
    names: Sequence[str],
    threshold: float | None,
    takes_any: bool,
    output: Path | None,
    json_output: bool,
    joins: bool = False,
) -> None:
    """Prints the comparison, and writes its page where one is asked for."""
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"--threshold {threshold}: give a number")
    comparison = compare(names, threshold, takes_any, joins)
    document = comparison.document()
    if output is not None:
        document["path"] = str(write_comparison(comparison, output))
    for note in comparison.notes:
        aside(without_commands(f"note: {note}"))
    if json_output:
        print(json.dumps(plain_json(document)))
        return
    lines = comparison_lines(comparison, columns(sys.stdout))
    if output is not None:
        lines += ["", f"wrote {near_path(Path(document['path']))}"]
    print(without_commands("\n".join(lines)))


def comparison_lines(comparison: Comparison, width: int) -> list[str]:
    """Tables of final returns, of the threshold, and of probabilities."""
    contenders = comparison.contenders
    heads = "return algorithm runs IQM 95_% mean deviation median worst length"
    rows = [tuple(word.replace("_", " ") for word in heads.split())]
    for each in contenders:
        figures = statistics_of(each.returns)
        numbers = (figures[key] for key in ("mean", "std", "median", "worst"))
        shown = ["-" if value is None else f"{value:,.1f}" for value in numbers]
        of_runs = (each.first.algorithm or "-", str(len(each.runs)), f"{each.mean:,.1f}")
        length = "-" if each.length is None else f"{each.length:,.0f}"
        rows.append((each.name, *of_runs, interval(each.interval, 1), *shown, length))
    lines = folded(rows, width)
    reached = [each.reached for each in contenders if each.reached is not None]
    if reached:
        rows = [(f"return of {reached[0].threshold:g}", "reached", "steps", "seconds")]
        for each, when in zip(contenders, reached, strict=True):
            steps, seconds = when.median(when.steps), when.median(when.seconds)
            share = f"{when.count} of {len(when.steps)}"
            medians = (
                "-" if steps is None else f"{steps:,.0f}",
                "-" if seconds is None else f"{seconds:,.1f}",
            )
            rows.append((each.name, share, *medians))
        lines += ["", *folded(rows, width)]
    rows = [("probability of a higher return", "", "95 %")]
    rows += [
        (f"{each.of} over {each.over}", f"{each.probability:.2f}", interval(each.interval, 2))
        for each in comparison.improvements
    ]
    lines += ["", *folded(rows, width)]
    if differences := difference_lines(contenders):
        lines += ["", *(f"differs  {line}" for line in differences)]
    return [*lines, "", f"intervals: bootstrap over runs, {RESAMPLES:,} resamples, seed 0"]


def interval(ends: Interval | None, digits: int) -> str:
    return "-" if ends is None else " to ".join(f"{end:,.{digits}f}" for end in ends)


EXAMPLE = "compare td3-seeds sac-seeds --threshold -200 --output comparison.html"


def command(
    names: Annotated[
        list[str],
        typer.Argument(metavar="RUN…", help="Runs or groups: folders, names under runs/, latest."),
    ],
    threshold: Annotated[
        float | None,
        typer.Option(metavar="RETURN", help="Say when the runs reach this return."),
    ] = None,
    takes_any: Annotated[
        bool, typer.Option("--any", help="Compare runs of different environments, too.")
    ] = False,
    joins: Annotated[
        bool,
        typer.Option("--join", help="Combine runs that differ only in their seeds into one row."),
    ] = False,
    output: Output = None,
    json_output: Json = False,
) -> None:
    """Each run, and each variant of a group, is a row: the return of the last evaluations as
    interquartile mean with a bootstrap interval over the runs (Agarwal et al. 2021), and how
    probable a higher return is. --output writes a page with learning curves.
    """
    run(names, threshold, takes_any, output, json_output, joins)
