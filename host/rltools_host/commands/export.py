"""`rlt export`, `report`: a run's policy in another form; a page about a run or a group of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.options import Json, Output, RunArgument, Which
from rltools_host.errors import UsageError
from rltools_host.files import write_atomically
from rltools_host.policies.export import FORMATS, encode_array, identifier
from rltools_host.policies.folders import FOLDERS, write_folder
from rltools_host.policies.frameworks import FRAMEWORK_FOLDERS, FRAMEWORK_FORMATS
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.group import GroupFolder
from rltools_host.runs.names import LAST, find_group

# -- export ----------------------------------------------------------------------------------------


def run(run_name: str, to: str = "image", output: Path | None = None, which: str = LAST) -> Path:
    """Exports a run's policy after checking it on this machine; returns the file or folder."""
    formats, folders = FORMATS | FRAMEWORK_FORMATS, FOLDERS | FRAMEWORK_FOLDERS
    if to not in (*formats, *folders):
        known = ", ".join((*formats, *folders))
        raise UsageError(f'unknown export format "{to}": known are {known}')
    image = read_run_policy(run_name, which)
    image.verify()
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
    # A program includes the file and names the array: they have one name.
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
    json_output: Json = False,
) -> None:
    path = run(run_name, to, output, which)
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
    """For a group of runs it shows the learning curves of all, and also writes them as CSV."""
    report(run_name, output, which, json_output)
