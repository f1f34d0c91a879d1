"""`rlt evaluate`: deterministic episodes of a run's policy."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from rltools_host.build import experiments
from rltools_host.commands.options import Json, RunArgument
from rltools_host.errors import RltError
from rltools_host.policies.evaluation import CORE, Evaluation, evaluate_policy
from rltools_host.policies.image import PolicyImage, read_run_policy
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.learning import difference
from rltools_host.runs.names import find_group


def run(
    run_name: str,
    episodes: int = 100,
    seed: int = 0,
    simulator: str = CORE,
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


def evaluated(
    folder: RunFolder, episodes: int, seed: int, simulator: str
) -> tuple[Evaluation, list[str]]:
    """The evaluation of a run's policy, and what must be known to read it."""
    image = read_run_policy(folder)
    image.verify()
    evaluation = evaluate_policy(image, str(folder.path), episodes, seed, simulator)
    return evaluation, notes_on(folder, image, simulator)


def notes_on(folder: RunFolder, image: PolicyImage, simulator: str) -> list[str]:
    """What must be known of the policy to read the figures: unfinished, or of other sources."""
    notes = []
    steps = int(folder.metadata.get("steps", 0))
    if image.step < steps:
        notes.append(
            f"the policy is of step {image.step:,} of {steps:,}, where the run was saved last"
        )
    try:
        present = experiments.describe(image.experiment)
    except RltError:  # which matters to the core's simulator only, and that has said so
        return notes
    if present.fingerprint != image.fingerprint:
        what = difference(folder.metadata.get("learning", {}), present.learning)
        what = what or f"fingerprint {image.fingerprint:08x}, here {present.fingerprint:08x}"
        where = ", and so does the simulator" if simulator == CORE else ""
        notes.append(f"the run's {image.experiment} differs from this tree's{where}: {what}")
    return notes


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
    if find_group(run_name) is not None:
        from rltools_host.commands.evaluate_group import evaluate_group

        evaluate_group(run_name, episodes, seed, simulator, json_output)
    else:
        run(run_name, episodes, seed, simulator, json_output)
