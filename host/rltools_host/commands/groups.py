"""What two commands do with a group of runs, `train` with several seeds and `study`."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

from rltools_host.commands.next_command import evaluation_line
from rltools_host.errors import RltError, UsageError
from rltools_host.hints import command_line, near_path
from rltools_host.report.group_page import write_group_report
from rltools_host.runs.group import STUDY, GroupFolder
from rltools_host.training.group import train_group
from rltools_host.training.group_plan import GroupRequest
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.seeds import parse_seeds
from rltools_host.ui.group_screen import UNLIMITED, make_group_screen, result_lines
from rltools_host.ui.output import Output, lost


def run_seeds(
    request: TrainingRequest,
    seeds: str | None,
    jobs: int | None,
    tensorboard: bool | None = None,
    json_output: bool = False,
) -> dict[str, Any]:
    """What `rlt train` does with several seeds, and with any group that it goes on with."""
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
    return [*lines, f"  {word}  {evaluation_line(document, group)}"]
