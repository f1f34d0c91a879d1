"""`rlt fly`: fly a simulated vehicle with a policy, and report the result."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rltools_host.boards.policy_session import PolicyTarget
from rltools_host.commands.options import (
    Json,
    Port,
    RunArgument,
    Which,
    refuse,
)
from rltools_host.drones.flight.airframes import read_airframe, settings_of
from rltools_host.drones.flight.disturbances import FAULTS, Disturbances, parse_fault
from rltools_host.drones.flight.gate import hover_rule, load_gate
from rltools_host.drones.flight.in_the_loop import (
    CONTRACT,
    USUAL_SEED,
    FlyRequest,
    farthest_start,
    fly_over_board,
    rule_of,
)
from rltools_host.drones.flight.in_the_loop import STARTS as LOOP_STARTS
from rltools_host.drones.flight.result import LoopResult, predictor
from rltools_host.drones.flight.simulator import check_policy, flight_library
from rltools_host.drones.flight.view import page
from rltools_host.drones.vehicles import px4_flight
from rltools_host.drones.vehicles.px4_flight import USUAL_STARTS, Px4Request
from rltools_host.drones.vehicles.px4_result import DONE, FILE, FlightResult, lines
from rltools_host.drones.vehicles.px4_start import STARTS
from rltools_host.errors import UsageError
from rltools_host.files import write_atomically
from rltools_host.interruption import Interruption
from rltools_host.lines import ProgressLine, columns, in_columns, say
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import FLIGHT, LAST, result_file
from rltools_host.training.hyperparameters import given_numbers
from rltools_host.tree import near_path

TICKS_SHOWN = 50  # from one line of progress to the next
EXAMPLE = "fly latest --board qemu-stm32f405"


def command(
    context: typer.Context,
    run_name: RunArgument,
    board: Annotated[
        str | None,
        typer.Option("--board", metavar="BOARD", help="The board on which the policy acts."),
    ] = None,
    port: Port = None,
    gate: Annotated[
        str | None,
        typer.Option(
            "--gate", metavar="NAME", help="Take the gate's settings and starts, not the run's."
        ),
    ] = None,
    airframe: Annotated[
        Path | None,
        typer.Option(
            "--airframe",
            metavar="FILE",
            help="Fly this drone: a file that `rlt fit` writes, or one like it.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", help="Simulated time. [default: the gate's]"),
    ] = None,
    start: Annotated[
        int | None,
        typer.Option(
            "--start",
            metavar="N",
            help=f"Number of the start, from 0. [default: the farthest of the first {LOOP_STARTS}]",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="Seed of starts, noise, gusts and losses. [default: the gate's]",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a setting of the run; with --px4, of the vehicle.",
        ),
    ] = None,
    latency_ms: Annotated[
        float, typer.Option("--latency", metavar="MS", help="Delay each observation by this.")
    ] = 0.0,
    jitter_ms: Annotated[
        float, typer.Option("--jitter", metavar="MS", help="Delay each by up to this much more.")
    ] = 0.0,
    loss: Annotated[
        float, typer.Option("--loss", metavar="SHARE", help="Lose this share of the observations.")
    ] = 0.0,
    faults: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            metavar="WHAT@S",
            help=f"Inject a fault, also WHAT@S..S: {', '.join(FAULTS)}.",
        ),
    ] = None,
    trial_s: Annotated[
        float | None,
        typer.Option("--trial", metavar="SECONDS", help="Board's time limit for the whole flight."),
    ] = None,
    px4: Annotated[
        str | None,
        typer.Option(
            "--px4", metavar="udp:HOST:PORT", help="Fly a simulated PX4 that has our module."
        ),
    ] = None,
    starts: Annotated[
        int, typer.Option("--starts", metavar="N", help=f"Number of starts, up to {len(STARTS)}.")
    ] = USUAL_STARTS,
    which: Which = LAST,
    json_output: Json = False,
) -> None:
    """Simulate here with --board, while the policy acts on the board, 500 times a second of
    simulated time. The board keeps it if it flies well, with the bits of the same flight here.

    With --px4 the command pushes the policy and gives it the vehicle for ten seconds of each start;
    PX4's own modes do the rest. PX4 keeps a policy that ends each start within 0.2 m of its target.
    A vehicle that does not report that it is simulated is refused.

    docs/flight.md has the details.
    """
    if (board is None) == (px4 is None):
        raise UsageError("choose what flies: --board BOARD, or --px4 udp:HOST:PORT")
    if board is not None:
        refuse(context, "with --board", "starts")
        request = request_of(
            run_name,
            PolicyTarget(board, port, CONTRACT),
            Conditions(gate, seconds, seed, settings or (), airframe),
            start=start,
            disturbances=Disturbances(
                latency_ms, jitter_ms, loss, tuple(map(parse_fault, faults or ()))
            ),
            trial_s=trial_s,
            which=which,
        )
        fly_board(request, json_output)
        return
    assert px4 is not None
    of_a_board = ("port", "gate", "airframe", "seconds", "start", "seed", "trial_s")
    refuse(context, "with --px4", *of_a_board, "latency_ms", "jitter_ms", "loss", "faults")
    fly_px4(run_name, px4, starts, settings or (), json_output, which)


# -- over a board ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conditions:
    """The conditions of a flight that the user gave; None: the gate's, or the default."""

    gate: str | None
    seconds: float | None
    seed: int | None
    settings: Sequence[str]
    airframe: Path | None = None


def request_of(
    run_name: str,
    target: PolicyTarget,
    conditions: Conditions,
    start: int | None = None,
    **fields: Any,
) -> FlyRequest:
    """Return the request; the gate's settings, or the run's own, hold where no others are given."""
    given = given_numbers(conditions.settings)
    run = RunFolder.open(run_name)
    gate = load_gate(conditions.gate) if conditions.gate is not None else None
    if gate is not None and gate.entry is not None:
        raise UsageError(
            f"--gate {gate.name}: its starts are no settings; evaluate it, and fly another one"
        )
    known = dict(gate.settings) if gate is not None else settings_of(run)
    if conditions.airframe is not None:
        known |= read_airframe(conditions.airframe)
    rule = gate.rule if gate is not None else hover_rule()
    if conditions.seconds is not None:
        rule = rule_of(conditions.seconds, gate)
    seed = conditions.seed
    if seed is None:
        seed = gate.seed if gate is not None else USUAL_SEED
    if "disturbances" in fields:
        fields["disturbances"] = replace(fields["disturbances"], seed=seed)
    settings = {**known, **given}
    if start is None:
        start = farthest_start(seed, settings)
        say(sys.stdout, f"start {start}, the farthest from hover of the first {LOOP_STARTS}")
    return FlyRequest(run_name, target, rule, seed, start, settings, **fields)


def fly_board(request: FlyRequest, json_output: bool = False) -> LoopResult:
    """Fly over a board; write the replay and the result into the run's folder, whatever the
    outcome."""
    folder = RunFolder.open(request.run).path
    replay = folder / result_file(FLIGHT, request.target.board, ".html")

    line = ProgressLine()

    def watch(result: LoopResult) -> None:
        trace = result.trace
        if trace is not None and trace.count % TICKS_SHOWN == 0:
            what = f"ticks, {trace.errors_m[-1]:.2f} m from the target"
            line.show(what, trace.count, trace.planned)

    def keep(result: LoopResult) -> None:
        if result.trace is None:
            return
        text = (json.dumps(result.document(), indent=1) + "\n").encode()
        write_atomically(folder / result_file(FLIGHT, request.target.board), text)
        write_atomically(replay, page(result).encode())
        say(sys.stdout, f"replay: {near_path(replay)}")

    with Interruption():  # each lands the vehicle as Ctrl-C does
        try:
            result = fly_over_board(request, line.say, watch, keep)
        finally:
            line.clear()
    say(sys.stdout, f"kept: {request.target.board} has the policy now")
    if json_output:
        print(json.dumps(result.document()))
    return result


# -- with a PX4 ------------------------------------------------------------------------------------


def fly_px4(
    run_name: str,
    url: str,
    starts: int,
    settings: Sequence[str],
    json_output: bool,
    which: str = LAST,
) -> FlightResult:
    """Fly a PX4; `settings` change those with which the prediction flies, which the vehicle
    reports."""
    if not 1 <= starts <= len(STARTS):
        raise UsageError(f"--starts {starts}: give 1 to {len(STARTS)}")
    given = given_numbers(settings)
    flight_library().setting_bits(given)
    folder = RunFolder.open(run_name).path
    image = read_run_policy(run_name, which)
    check_policy(image)
    request = Px4Request(run_name, url, starts, functools.partial(predictor, image), given, which)
    line = ProgressLine()

    def keep(result: FlightResult) -> None:
        line.clear()
        if result.state == DONE:
            width = columns(sys.stdout)
            print("\n".join(in_columns(lines(result, width), width)), flush=True)
        if result.starts:
            write_atomically(folder / FILE, (json.dumps(result.document()) + "\n").encode())

    with Interruption():  # each lands the vehicle as Ctrl-C does
        result = px4_flight.fly(request, line.say, keep, line.sent)
    if json_output:
        print(json.dumps(result.document(with_series=False)))
    return result
