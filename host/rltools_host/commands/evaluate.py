"""`rlt evaluate`: deterministic episodes of a run's policy, or its flights through a gate."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rltools_host.commands.evaluate_group import evaluate_group
from rltools_host.commands.modes import mode, require
from rltools_host.commands.options import Json, RunArgument
from rltools_host.errors import UsageError
from rltools_host.policies.evaluation import CORE, Evaluation
from rltools_host.policies.run_evaluation import evaluated
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import find_group

USUAL_EPISODES, USUAL_SEED = 100, 0


def run(
    run_name: str,
    episodes: int = USUAL_EPISODES,
    seed: int = USUAL_SEED,
    simulator: str | None = None,
    as_json: bool = False,
    task: str | None = None,
) -> Evaluation:
    """Evaluates the policy of a run and prints the outcome."""
    evaluation, notes = evaluated(RunFolder.open(run_name), episodes, seed, simulator, task)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps({**evaluation.document(), "notes": notes}))
    else:
        print("\n".join(evaluation.lines()))
    return evaluation


EXAMPLE = "evaluate latest --in gymnasium"
EPISODES = mode(
    "without --gate", "run_name", "episodes", "seed", "simulator", "task", "json_output"
)
GATE = mode("with --gate", "run_name", "gate", "episodes", "seed", "least", "json_output")
MODES = (EPISODES, GATE)


def command(
    context: typer.Context,
    run_name: RunArgument,
    episodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of episodes. [default: 100, or the gate's]"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of the initial states. [default: 0, or the gate's]"),
    ] = None,
    simulator: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="SIMULATOR",
            help="core, or gymnasium as the reference. [default: core; gymnasium for its tasks]",
        ),
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Fly a quadrotor through a gate of docs/gate.md: hover, another of "
            "experiments/gates, or your own file.",
        ),
    ] = None,
    least: Annotated[
        float | None,
        typer.Option(
            metavar="RATE", help="With --gate: fail if a smaller share succeeds, as 0.95."
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="gym:…",
            help="The run's task, if you have not named its Python file here before.",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """For a group of runs it evaluates each policy, and sums up."""
    require(context, MODES, EPISODES if gate is None else GATE)
    if gate is not None:
        from rltools_host.commands.evaluate_gate import evaluate_gate

        evaluate_gate(run_name, gate, episodes, seed, least, json_output)
        return
    if task is not None and simulator == CORE:
        raise UsageError("--task: the core's simulator plays no task of Gymnasium's")
    count = USUAL_EPISODES if episodes is None else episodes
    first = USUAL_SEED if seed is None else seed
    if find_group(run_name) is not None:
        evaluate_group(run_name, count, first, simulator, json_output, task)
    else:
        run(run_name, count, first, simulator, json_output, task)
