"""`rlt bench environments`."""

from __future__ import annotations

from typing import Annotated

import typer

from rltools_host.bench import environments
from rltools_host.commands.options import Json

EXAMPLE = "bench environments --tasks Ant-v4,Pendulum-v1"


def command(
    tasks: Annotated[
        str | None, typer.Option(metavar="A,B", help="Gymnasium's names of tasks. [default: all]")
    ] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Threads of the rows with more than one.")
    ] = 2,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Turns of each; the median counts.")
    ] = environments.ROUNDS,
    json_output: Json = False,
) -> None:
    environments.run(json_output, tasks, threads, rounds)
