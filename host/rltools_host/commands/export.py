"""`rlt export` and `rlt report`: a run's policy in another form; a page about a run or a group."""

from __future__ import annotations

import json
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
from rltools_host.files import write_atomically
from rltools_host.lines import aside
from rltools_host.policies.contract import safe_action_of
from rltools_host.policies.entry import read_leaving_policy
from rltools_host.policies.export import FORMATS, encode_array, identifier
from rltools_host.policies.folders import FOLDERS, write_folder
from rltools_host.policies.frameworks import FRAMEWORK_FOLDERS, FRAMEWORK_FORMATS
from rltools_host.policies.image_writing import restated
from rltools_host.policies.statements import assumptions
from rltools_host.runs.group import GroupFolder
from rltools_host.runs.names import LAST, find_group, of_one_run

# -- export ----------------------------------------------------------------------------------------


ACTING_SAFELY = ("c", "arduino", "esp-idf", "zephyr")  # exports with a safe action
HOLDING_IMAGES = ("image", "c-image")
SAFE_BY = '--safe-action, or "safe" in the channels of the task'
SAFE_THERE = '"safe" in the channels of the task, or kSafeAction of the contract in C++'
INTERVAL_BY = "--step-interval-us, or step_interval_us in the channels of the task"
AS_FILES, AS_FOLDERS = FORMATS | FRAMEWORK_FORMATS, FOLDERS | FRAMEWORK_FOLDERS
NAMES = ", ".join((*AS_FILES, *AS_FOLDERS))


def run(
    run_name: str,
    to: str = "image",
    output: Path | None = None,
    which: str = LAST,
    safe_action: str | None = None,
    step_interval_us: int | None = None,
) -> Path:
    """Check a run's policy on this machine, export it, and return the file or folder."""
    if to not in AS_FILES | AS_FOLDERS:
        raise UsageError(f'unknown export format "{to}": known are {NAMES}')
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
    if to in AS_FOLDERS:
        files_of, mark = AS_FOLDERS[to]
        name, files = files_of(image)
        path = (output or Path()) / name
        write_folder(path, files, mark)
        return path
    suffix, encode = AS_FILES[to]
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
        typer.Option(metavar="FORMAT", help=f"{NAMES}."),
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

    if (group := find_group(run_name)) is not None:
        if which != LAST:
            raise of_one_run("--which", group)
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
