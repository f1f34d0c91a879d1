"""`rlt evaluate`: deterministic episodes of a run's policy."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rltools_host.commands.options import Json, RunArgument
from rltools_host.policies.evaluation import CORE, Evaluation, evaluate_policy
from rltools_host.policies.image import read_run_policy
from rltools_host.runs.folder import RunFolder


def run(
    run_name: str,
    episodes: int = 100,
    seed: int = 0,
    simulator: str = CORE,
    as_json: bool = False,
) -> Evaluation:
    """Evaluates the policy of a run and prints the outcome."""
    folder = RunFolder.open(run_name)
    image = read_run_policy(folder)
    image.verify()
    evaluation = evaluate_policy(image, str(folder.path), episodes, seed, simulator)
    if as_json:
        print(json.dumps(evaluation.document()))
    else:
        print("\n".join(evaluation.lines()))
    return evaluation


EXAMPLE = "rlt evaluate latest --in gymnasium"


def command(
    run_name: RunArgument,
    episodes: Annotated[int, typer.Option(metavar="N", help="How many.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the initial states.")] = 0,
    simulator: Annotated[
        str,
        typer.Option("--in", metavar="SIMULATOR", help="core, or gymnasium for the reference."),
    ] = CORE,
    json_output: Json = False,
) -> None:
    run(run_name, episodes, seed, simulator, json_output)
