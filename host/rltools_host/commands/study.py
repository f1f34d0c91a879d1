"""`rlt study`: an experiment's learning with and without parts of it, over several seeds."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.options import (
    Jobs,
    Json,
    RunSteps,
    RunThreads,
    TensorBoard,
    mode,
    require,
)
from rltools_host.commands.train import run_group
from rltools_host.hints import command_line
from rltools_host.lines import columns, folded
from rltools_host.runs.group import STUDY, spoken
from rltools_host.training.group_plan import GroupRequest, parse_seeds
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.study import Study, load_study, study_names


def request_of(
    study: Study,
    given: TrainingRequest,
    seeds: str | None = None,
    jobs: int | None = None,
    tensorboard: bool = True,
) -> GroupRequest:
    """What the study asks for, unless something else is given: board, steps, threads, a folder."""
    own_threads = study.threads if given.board in (None, study.board) else None
    return GroupRequest(
        TrainingRequest(
            study.experiments[0],
            given.board or study.board,
            steps=study.steps if given.steps is None else given.steps,
            settings=study.shared_settings,
            out=given.out,
            threads=own_threads if given.threads is None else given.threads,
        ),
        study.all_seeds if seeds is None else parse_seeds(seeds),
        study.trained_variants,
        jobs,
        tensorboard,
        {
            "kind": STUDY,
            "study": study.name,
            "title": study.title,
            "x_axis": study.x_axis,
            "y_axis": study.y_axis,
        },
    )


def list_studies(json_output: bool) -> None:
    """Which studies there are; with one that is broken its sentence, in place of the list."""
    studies = [load_study(name) for name in study_names()]
    if json_output:
        fields = [
            {
                "study": study.name,
                "title": study.title,
                "experiment": study.experiments[0],
                "experiments": study.experiments,
                "variants": [variant.name for variant in study.variants],
                "seeds": list(study.all_seeds),
            }
            for study in studies
        ]
        print(json.dumps({"studies": fields}))
        return
    rows = [
        (
            study.name,
            ", ".join(study.experiments),
            f"{len(study.variants)} variants, seeds {spoken(study.all_seeds)}",
            study.title,
        )
        for study in studies
    ]
    print("\n".join(folded([HEADS, *rows], columns(sys.stdout))))
    print(f"\ntrain one with `{command_line('study', studies[0].name)}`")


HEADS = ("study", "experiment", "runs", "what it compares")
EXAMPLE = "study pendulum-ppo-ablation --seeds 0-4"
LIST = mode("without a study's NAME", "json_output")
TRAIN = mode(
    "with a study's NAME",
    *("name", "board", "seeds", "steps", "jobs", "threads", "out", "tensorboard", "json_output"),
)
MODES = (LIST, TRAIN)


def command(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A study. Without it, the command lists them."),
    ] = None,
    board: Annotated[
        str | None, typer.Option(metavar="BOARD", help="Where to train. [default: the study's]")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="SEEDS", help="Seeds of each variant: 0-9, or 0,3,5-7.")
    ] = None,
    steps: RunSteps = None,
    jobs: Jobs = None,
    threads: RunThreads = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the study. [default: a new one in runs/]"),
    ] = None,
    tensorboard: TensorBoard = True,
    json_output: Json = False,
) -> None:
    """A study is a file of experiments/studies: variants of an experiment's settings, each trained
    with several seeds. It ends with a table, a page with the learning curves (mean and deviation)
    and these as CSV. Ctrl-C pauses all and says how to go on.
    """
    require(context, MODES, LIST if name is None else TRAIN)
    if name is None:
        list_studies(json_output)
        return
    study = load_study(name)
    given = TrainingRequest(board=board, steps=steps, out=out, threads=threads)
    run_group(request_of(study, given, seeds, jobs, tensorboard), json_output)
