"""`rlt fly`: a policy flies a vehicle that is simulated, and what comes of it is reported.

What flies is an option, with a module of its own: `--board` has fly_board.py, `--px4` fly_px4.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.modes import mode, require
from rltools_host.commands.options import Json, Port, RunArgument
from rltools_host.errors import UsageError
from rltools_host.flight.disturbances import FAULTS, Disturbances, parse_fault
from rltools_host.flight.in_the_loop import CONTRACT
from rltools_host.flight.px4_flight import USUAL_STARTS
from rltools_host.flight.px4_start import STARTS
from rltools_host.policies.board import PolicyPlace

EXAMPLE = "fly latest --board qemu-stm32f405"
BOARD = mode(
    "with --board",
    *("run_name", "board", "port", "gate", "seconds", "start", "seed", "settings"),
    *("latency_ms", "jitter_ms", "loss", "noise", "faults", "trial_s", "json_output", "out"),
)
PX4 = mode("with --px4", "run_name", "px4", "starts", "settings", "json_output", "out")
MODES = (BOARD, PX4)


def command(
    context: typer.Context,
    run_name: RunArgument,
    board: Annotated[
        str | None,
        typer.Option("--board", metavar="BOARD", help="Over which the policy acts; `rlt boards`."),
    ] = None,
    port: Port = None,
    gate: Annotated[
        str | None,
        typer.Option("--gate", metavar="NAME", help="Its settings and starts, not the run's."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="S", help="Simulated. [the gate's]")
    ] = None,
    start: Annotated[
        int, typer.Option("--start", metavar="N", help="Which of the seed's starts, from 0.")
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Of starts, noise, gusts, losses. [the gate's]"),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Another setting than the run's; with --px4 than the vehicle's.",
        ),
    ] = None,
    latency_ms: Annotated[
        float, typer.Option("--latency", metavar="MS", help="Each observation is late.")
    ] = 0.0,
    jitter_ms: Annotated[
        float, typer.Option("--jitter", metavar="MS", help="Each by up to this much more.")
    ] = 0.0,
    loss: Annotated[
        float, typer.Option("--loss", metavar="SHARE", help="Of observations that never arrive.")
    ] = 0.0,
    noise: Annotated[
        float | None, typer.Option("--noise", metavar="FACTOR", help="Of the sensors; as --set.")
    ] = None,
    faults: Annotated[
        list[str] | None,
        typer.Option(
            "--fault", metavar="WHAT@S", help=f"On purpose, WHAT@S..S: {', '.join(FAULTS)}."
        ),
    ] = None,
    trial_s: Annotated[
        float | None,
        typer.Option("--trial", metavar="SECONDS", help="Of the board, for the whole flight."),
    ] = None,
    px4: Annotated[
        str | None,
        typer.Option(
            "--px4", metavar="udp:HOST:PORT", help="A PX4 in simulation, with our module."
        ),
    ] = None,
    starts: Annotated[
        int, typer.Option("--starts", metavar="N", help=f"How many, up to {len(STARTS)}.")
    ] = USUAL_STARTS,
    json_output: Json = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="File for the JSON."),
    ] = None,
) -> None:
    """With --board the simulator is here, and the policy acts on the board, 500 times a second of
    simulated time. It stays there if it flies well, with the bits of the flight on this machine.

    With --px4 the policy is pushed, and has the vehicle for ten seconds of each start; PX4's own
    modes do the rest. PX4 keeps a policy that ends each within 0.2 m of its target.

    What does not say that it is simulated is refused. docs/flight.md has all of it.
    """
    if (board is None) == (px4 is None):
        raise UsageError("say what is to fly: --board BOARD, or --px4 udp:HOST:PORT")
    require(context, MODES, BOARD if board is not None else PX4)
    if board is not None:
        from rltools_host.commands import fly_board

        request = fly_board.request_of(
            run_name,
            PolicyPlace(board, port, CONTRACT),
            fly_board.Conditions(gate, seconds, seed, settings or (), noise),
            start=start,
            disturbances=Disturbances(
                latency_ms, jitter_ms, loss, tuple(map(parse_fault, faults or ()))
            ),
            trial_s=trial_s,
        )
        fly_board.run(request, json_output, out)
        return
    assert px4 is not None
    from rltools_host.commands import fly_px4

    fly_px4.run(run_name, px4, starts, settings or (), json_output, out)
