"""What `rlt train --seeds` and `rlt study` do with a group of runs: train it, sum it up."""

from __future__ import annotations

import json
import math
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
            print("\n".join(result_lines(error.details)), file=stream, flush=True)
        raise
    group = GroupFolder.open(document["group"])
    document |= write_results(group)
    print("\n".join([*result_lines(document), *next_lines(document)]), file=stream, flush=True)
    if json_output:
        print(json.dumps(document), file=output, flush=True)
    if output.error is not None:
        raise lost(output.error, near_path(group.path))
    return document


def write_results(group: GroupFolder) -> dict[str, str]:
    """A study ends with its page and the curves as numbers."""
    if group.metadata["kind"] != STUDY:
        return {}
    report, curves = write_group_report(group)
    return {"report": str(report), "curves": str(curves)}


def result_lines(document: Mapping[str, Any]) -> list[str]:
    """A row for each run, what they come to, and a sentence for each that failed."""
    runs: Sequence[Mapping[str, Any]] = document["runs"]
    labels = {entry["variant"]: entry["label"] for entry in document["summary"]}
    has_variants = any(labels.values())
    rows = [(*(("variant",) * has_variants), "seed", "state", "step", "return", "time")]
    for run_of in runs:
        variant = (labels[run_of["variant"]],) * has_variants
        rows.append(
            (
                *variant,
                str(run_of["seed"]),
                run_of["state"],
                f"{run_of['step']:,}",
                with_deviation(run_of["return_mean"], run_of["return_std"]),
                duration(math.nan if run_of["train_s"] is None else run_of["train_s"]),
            )
        )
    lines = [f"  {line}" for line in aligned(rows)]
    lines += ["", *summary_lines(document["summary"])]
    for run_of in runs:
        if run_of["error"]:
            label = f"{labels[run_of['variant']]}, " if has_variants else ""
            lines.append(f"  {label}seed {run_of['seed']}: {run_of['error']}")
    return lines


def summary_lines(summary: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the final returns of the runs come to, a row for each variant."""
    known = [entry for entry in summary if entry["runs"]]
    if not known:
        return ["  no run has a final return yet"]
    rows = [("final return", "runs", "mean", "median", "deviation", "worst")]
    for entry in known:
        numbers = (entry[key] for key in ("mean", "median", "std", "worst"))
        label = entry["label"] or "all seeds"
        rows.append((label, str(entry["runs"]), *(f"{value:.1f}" for value in numbers)))
    return [f"  {line}" for line in aligned(rows)]


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
