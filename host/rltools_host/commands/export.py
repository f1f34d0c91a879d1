"""`rlt export`: a run's policy in another form."""

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
from rltools_host.runs.names import LAST


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


EXAMPLE = "export latest --to c --output policy.h"


def command(
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
