"""`rlt bench inference`."""

from __future__ import annotations

from typing import Annotated

import typer

from rltools_host.bench import inference
from rltools_host.commands.options import Json

EXAMPLE = "rlt bench inference --peers onnxruntime,litert"


def command(
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of benchmarks/inference_peers. [default: all]"),
    ] = None,
    repetitions: Annotated[int, typer.Option(metavar="N", help="Medians count.")] = 20,
    json_output: Json = False,
) -> None:
    inference.run(json_output, peers, repetitions)
