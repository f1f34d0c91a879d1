"""`rlt evaluate`: deterministic episodes of a run's policy."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rltools_host.commands.evaluate_group import evaluate_group
from rltools_host.commands.options import Json, RunArgument
from rltools_host.policies.evaluation import Evaluation
from rltools_host.policies.run_evaluation import evaluated
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import find_group


def run(
    run_name: str,
    episodes: int = 100,
    seed: int = 0,
    simulator: str | None = None,
    as_json: bool = False,
) -> Evaluation:
    """Evaluates the policy of a run and prints the outcome."""
    evaluation, notes = evaluated(RunFolder.open(run_name), episodes, seed, simulator)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps({**evaluation.document(), "notes": notes}))
    else:
        print("\n".join(evaluation.lines()))
    return evaluation


EXAMPLE = "rlt evaluate latest --in gymnasium"


def command(
    run_name: RunArgument,
    episodes: Annotated[int, typer.Option(metavar="N", help="How many.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the initial states.")] = 0,
    simulator: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="SIMULATOR",
            help="core, or gymnasium for the reference. [default: core; gymnasium for its tasks]",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Of a group of runs: of each one's policy, and what they come to."""
    if find_group(run_name) is not None:
        evaluate_group(run_name, episodes, seed, simulator, json_output)
    else:
        run(run_name, episodes, seed, simulator, json_output)
