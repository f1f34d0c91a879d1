"""`rlt bench inference`."""

from __future__ import annotations

from typing import Annotated

import typer

from rltools_host.bench import board_forward, inference
from rltools_host.commands.modes import mode, require
from rltools_host.commands.options import Json

EXAMPLE = "bench inference --peers onnxruntime,litert"
HERE = mode("without --board", "peers", "repetitions", "json_output")
BOARD = mode("with --board", "board", "json_output")
MODES = (HERE, BOARD)


def command(
    context: typer.Context,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of benchmarks/inference_peers. [default: all]"),
    ] = None,
    repetitions: Annotated[
        int, typer.Option(metavar="N", help="Repetitions; the median counts.")
    ] = 20,
    board: Annotated[
        str | None,
        typer.Option(
            metavar="BOARD",
            help="On an emulated board, or all-emulated: guest instructions of generic code, "
            "CMSIS-DSP, the board's kernels and a policy image.",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    require(context, MODES, HERE if board is None else BOARD)
    if board is not None:
        board_forward.run(board, json_output)
    else:
        inference.run(json_output, peers, repetitions)
