"""`rlt export`, `report`, `compare`: a run's policy in another form; a page about a run or a group
of runs; runs and groups beside each other, also of different algorithms."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.options import (
    Json,
    Output,
    RunArgument,
    SafeActionOption,
    StepIntervalOption,
    Which,
)
from rltools_host.errors import UsageError
from rltools_host.files import plain_json, write_atomically
from rltools_host.lines import aside, columns, folded, without_commands
from rltools_host.policies.contract import safe_action_of
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.export import FORMATS, encode_array, identifier
from rltools_host.policies.folders import FOLDERS, write_folder
from rltools_host.policies.frameworks import FRAMEWORK_FOLDERS, FRAMEWORK_FORMATS
from rltools_host.policies.image_writing import restated
from rltools_host.policies.statements import assumptions
from rltools_host.report.comparison import Comparison, compare, difference_lines, write_comparison
from rltools_host.runs.aggregates import RESAMPLES, Interval
from rltools_host.runs.group import GroupFolder, statistics_of
from rltools_host.runs.names import LAST, find_group
from rltools_host.tree import near_path

# -- export ----------------------------------------------------------------------------------------


ACTING_SAFELY = ("c", "arduino", "esp-idf", "zephyr")  # exports with a safe action
HOLDING_IMAGES = ("image", "c-image")
SAFE_BY = '--safe-action, or "safe" in the channels of the task'
SAFE_THERE = '"safe" in the channels of the task, or kSafeAction of the contract in C++'
INTERVAL_BY = "--step-interval-us, or step_interval_us in the channels of the task"


def run(
    run_name: str,
    to: str = "image",
    output: Path | None = None,
    which: str = LAST,
    safe_action: str | None = None,
    step_interval_us: int | None = None,
) -> Path:
    """Check a run's policy on this machine, export it, and return the file or folder."""
    formats, folders = FORMATS | FRAMEWORK_FORMATS, FOLDERS | FRAMEWORK_FOLDERS
    if to not in (*formats, *folders):
        known = ", ".join((*formats, *folders))
        raise UsageError(f'unknown export format "{to}": known are {known}')
    image = read_leaving_policy(run_name, which, aside)
    image.verify()
    acts_safely = to in ACTING_SAFELY
    if safe_action is not None and not acts_safely:
        raise UsageError(
            f"--safe-action: {to} has none, as the place where it acts does: state it there, or "
            f"export to {', '.join(ACTING_SAFELY)}"
        )
    given = () if safe_action is None else safe_action_of(safe_action, image.actions)
    if acts_safely or step_interval_us is not None:
        image = restated(image, given, step_interval_us)
    safe = SAFE_BY if acts_safely else SAFE_THERE if to in HOLDING_IMAGES else None
    for line in assumptions(image, safe, INTERVAL_BY):
        aside(line)
    if to in folders:
        files_of, mark = folders[to]
        name, files = files_of(image)
        path = (output or Path()) / name
        write_folder(path, files, mark)
        return path
    suffix, encode = formats[to]
    path = output or Path(identifier(image.experiment) + suffix)
    if path.is_dir():
        path = path / (identifier(image.experiment) + suffix)
    # The file and its array have one name.
    content = encode_array(image, path.stem) if encode is encode_array else encode(image)
    write_atomically(path, content)
    return path


EXPORT_EXAMPLE = "export latest --to c --output policy.h"


def export_command(
    run_name: RunArgument,
    to: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="image; c, c-image, arduino, esp-idf, zephyr; onnx, safetensors or pytorch.",
        ),
    ] = "image",
    output: Output = None,
    which: Which = LAST,
    safe_action: SafeActionOption = None,
    step_interval_us: StepIntervalOption = None,
    json_output: Json = False,
) -> None:
    path = run(run_name, to, output, which, safe_action, step_interval_us)
    print(f"wrote {path}")
    if json_output:
        print(json.dumps({"run": run_name, "format": to, "path": str(path)}))


# -- report ----------------------------------------------------------------------------------------


def report(run_name: str, output: Path | None, which: str, json_output: bool) -> None:
    from rltools_host.report.group_page import write_group_report
    from rltools_host.report.page import write_report

    if find_group(run_name) is not None:
        if which != LAST:
            raise UsageError(f"--which is of one run, and {run_name} is a group: name a run of it")
        path, _ = write_group_report(GroupFolder.open(run_name), output)
    else:
        path = write_report(run_name, output, which)
    print(f"wrote {path}")
    if json_output:
        print(json.dumps({"run": run_name, "path": str(path)}))


REPORT_EXAMPLE = "report latest --output report.html"


def report_command(
    run_name: RunArgument,
    output: Output = None,
    which: Which = LAST,
    json_output: Json = False,
) -> None:
    """Draw the learning curves of all runs where RUN is a group, and write them as CSV."""
    report(run_name, output, which, json_output)


def compare_runs(
    names: Sequence[str],
    threshold: float | None,
    takes_any: bool,
    output: Path | None,
    json_output: bool,
    joins: bool = False,
) -> None:
    """Print the comparison, and write its page where one is asked for."""
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
        lines += ["", f"wrote {near_path(Path(str(document['path'])))}"]
    print(without_commands("\n".join(lines)))


def comparison_lines(comparison: Comparison, width: int) -> list[str]:
    """Return tables of final returns, of the threshold, and of probabilities."""
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


COMPARE_EXAMPLE = "compare td3-seeds sac-seeds --threshold -200 --output comparison.html"


def compare_command(
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
    """Show a row for each run, and for each variant of a group.

    A row has the return of the last evaluations as interquartile mean with a bootstrap interval
    over the runs (Agarwal et al. 2021), and the probability of a higher return. --output writes a
    page with learning curves.
    """
    compare_runs(names, threshold, takes_any, output, json_output, joins)
