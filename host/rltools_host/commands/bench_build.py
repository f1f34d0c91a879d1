"""`rlt bench build`."""

from __future__ import annotations

from typing import Annotated

import typer

from rltools_host.bench import build_times
from rltools_host.commands.options import Json

EXAMPLE = "bench build --json"


def command(
    experiment: Annotated[
        str, typer.Argument(metavar="[EXPERIMENT]", help="The experiment to build and start.")
    ] = "pendulum-td3",
    repetitions: Annotated[
        int, typer.Option(metavar="N", help="Repetitions; the median counts.")
    ] = 3,
    json_output: Json = False,
) -> None:
    build_times.run(json_output, experiment, repetitions)
