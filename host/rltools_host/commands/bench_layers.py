"""`rlt bench layers`."""

from __future__ import annotations

from typing import Annotated

import typer

from rltools_host.bench import layers
from rltools_host.commands.options import Json

EXAMPLE = "bench layers --widths 512,1024 --batches 100"


def command(
    widths: Annotated[
        str, typer.Option(metavar="A,B", help="Widths, of 16, 32, 64, 128, 256, 512, 1024.")
    ] = "64,128,256,512,1024",
    batches: Annotated[
        str, typer.Option(metavar="A,B", help="Batches, of 1, 32, 100, 256.")
    ] = "100,256",
    zeros: Annotated[
        int,
        typer.Option(
            metavar="PERCENT", help="Zeros among inputs and gradients, as ReLU leaves them."
        ),
    ] = 0,
    repetitions: Annotated[
        int, typer.Option(metavar="N", help="Repetitions; the median counts.")
    ] = 7,
    json_output: Json = False,
) -> None:
    layers.run(json_output, widths, batches, zeros, repetitions)
