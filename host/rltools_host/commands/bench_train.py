"""`rlt bench train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rltools_host.bench import training
from rltools_host.commands.options import Json

EXAMPLE = "bench train --peers rltools,sbx --repetitions 5"


def command(
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare with plain PyTorch only, once.")
    ] = False,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of benchmarks/peers. [default: all]"),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", help="Runs of each, with seeds 0, 1 and so on.")
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Environment steps of a run.")] = 10_000,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Draw bars into this SVG."),
    ] = None,
    algorithm: Annotated[str, typer.Option(metavar="ALGORITHM", help="td3 or sac.")] = "td3",
    json_output: Json = False,
) -> None:
    request = training.TrainingBenchmark(
        quick, peers, repetitions, steps, chart=chart, algorithm=algorithm.lower()
    )
    training.run(request, json_output)
