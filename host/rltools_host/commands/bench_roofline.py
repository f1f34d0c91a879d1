"""`rlt bench roofline`."""

from __future__ import annotations

from typing import Annotated

import typer

from rltools_host.bench import roofline
from rltools_host.commands.options import Json

EXAMPLE = "bench roofline --json"


def command(
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of a run.")] = 10_000,
    repetitions: Annotated[int, typer.Option(metavar="N", help="Runs; the median counts.")] = 5,
    buffer_mb: Annotated[
        int | None,
        typer.Option(
            metavar="MB", help="Buffer for the memory bandwidth. [default: well beyond the caches]"
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    roofline.run(json_output, steps, repetitions, buffer_mb)
