"""`rlt export`: a run's policy in another form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.options import Json, Output, RunArgument
from rltools_host.errors import UsageError
from rltools_host.files import write_atomically
from rltools_host.policies.export import FORMATS, identifier
from rltools_host.policies.image import (
    read_run_policy,
)


def run(run_name: str, to: str = "image", output: Path | None = None) -> Path:
    """Exports the policy of a run after checking it on this machine; returns the file written."""
    if to not in FORMATS:
        raise UsageError(f'unknown export format "{to}": known are {", ".join(FORMATS)}')
    image = read_run_policy(run_name)
    image.verify()
    suffix, encode = FORMATS[to]
    path = output or Path(identifier(image.experiment) + suffix)
    if path.is_dir():
        path = path / (identifier(image.experiment) + suffix)
    write_atomically(path, encode(image))
    return path


EXAMPLE = "rlt export latest --to c --output policy.h"


def command(
    run_name: RunArgument,
    to: Annotated[str, typer.Option(metavar="FORMAT", help="image, c or c-image.")] = "image",
    output: Output = None,
    json_output: Json = False,
) -> None:
    path = run(run_name, to, output)
    print(f"wrote {path}")
    if json_output:
        print(json.dumps({"run": run_name, "format": to, "path": str(path)}))
