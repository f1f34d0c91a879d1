"""`rlt bench ppo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rltools_host.bench import ppo
from rltools_host.commands.modes import mode, require
from rltools_host.commands.options import Json

EXAMPLE = "bench ppo --peers rl_games --threads 2"
COMMON = ("peers", "threads", "turn_steps", "seed", "chart", "json_output")
TURNS = mode("without --to-return", *COMMON, "rounds")
TO_RETURN = mode("with --to-return", *COMMON, "to_return", "steps")
MODES = (TURNS, TO_RETURN)


def command(
    context: typer.Context,
    peers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Folders of benchmarks/ppo_peers. [default: all]"),
    ] = None,
    threads: Annotated[
        int, typer.Option(metavar="N", help="Threads and cores of each contender.")
    ] = 2,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Turns of each; the median counts.")
    ] = ppo.ROUNDS,
    turn_steps: Annotated[
        int, typer.Option(metavar="N", help="Environment steps of a turn.")
    ] = ppo.TURN_STEPS,
    to_return: Annotated[
        bool,
        typer.Option(
            "--to-return",
            help="Measure the time to a mean return of 2,000 and 4,000, with each one's settings.",
        ),
    ] = False,
    steps: Annotated[
        int,
        typer.Option(metavar="N", help="With --to-return: steps after which a contender gives up."),
    ] = ppo.RETURN_STEPS,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of every contender.")] = 0,
    chart: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Draw bars into this SVG.")
    ] = None,
    json_output: Json = False,
) -> None:
    require(context, MODES, TO_RETURN if to_return else TURNS)
    request = ppo.PpoBenchmark(
        peers, threads, rounds, turn_steps, to_return, steps, seed, chart=chart
    )
    ppo.run(request, json_output)
