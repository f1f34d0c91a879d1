"""The commands `rlt study` and `rlt tune`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rltools_host.commands import options
from rltools_host.commands.options import (
    Jobs,
    Json,
    Ray,
    RunSteps,
    RunThreads,
    refuse,
)
from rltools_host.commands.train import close, run_group, streams, task_request
from rltools_host.environments.task import is_task
from rltools_host.errors import RltError, UsageError
from rltools_host.lines import columns, folded, next_steps, plural, wrapped
from rltools_host.runs.group import STUDY, seed_ranges
from rltools_host.runs.names import is_group
from rltools_host.screen.group_screen import make_group_screen
from rltools_host.training.group_plan import GroupRequest, parse_seeds
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.study import (
    DEFAULT_TRIALS,
    Study,
    TuneRequest,
    load_study,
    named,
    study_names,
)
from rltools_host.training.trials import COMPLETE
from rltools_host.training.tune import TuneDocument, tune
from rltools_host.tree import command_line, near_path


def request_of(study: Study, given: TrainingRequest) -> GroupRequest:
    """Return the study's request; what is `given` replaces its board, steps, threads and seeds."""
    own_threads = study.threads if given.board in (None, study.board) else None
    training = replace(
        given,
        experiment=study.experiments[0],
        board=given.board or study.board,
        steps=study.steps if given.steps is None else given.steps,
        settings=study.shared_settings,
        threads=own_threads if given.threads is None else given.threads,
        seeds=given.seeds or study.all_seeds,
    )
    return GroupRequest(
        training,
        study.trained_variants,
        study.path,
        STUDY,
        study.title,
        study.name,
        study.x_axis,
        study.y_axis,
    )


def list_studies(json_output: bool) -> None:
    """Print the studies; raise DamagedFileError if the file of one is wrong."""
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
            f"{len(study.variants)} variants, seeds {seed_ranges(study.all_seeds)}",
            study.title,
        )
        for study in studies
    ]
    print("\n".join(folded([HEADS, *rows], columns(sys.stdout))))
    print(f"\ntrain one with `{command_line('study', studies[0].name)}`")


HEADS = ("study", "experiment", "runs", "what it compares")
EXAMPLE = "study pendulum-ppo-ablation --seeds 0-4"


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
    ray: Ray = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the study. [default: a new one in runs/]"),
    ] = None,
    json_output: Json = False,
) -> None:
    """Train the variants of a study, a file of experiments/studies, each with several seeds. The
    end is a table, a page with the learning curves (mean and deviation) and these as CSV. Ctrl-C
    pauses all and prints the command that resumes."""
    if name is None:
        training = ("board", "seeds", "steps", "jobs", "threads", "ray", "out")
        refuse(context, "without a study's NAME", *training)
        list_studies(json_output)
        return
    study = load_study(name)
    given = TrainingRequest(
        board=board,
        steps=steps,
        out=out,
        threads=threads,
        seeds=() if seeds is None else parse_seeds(seeds),
        jobs=jobs,
        ray=ray,
    )
    run_group(request_of(study, given), json_output)


MAX_SHOWN = 10  # trials


def run_tune(request: TuneRequest, json_output: bool = False) -> TuneDocument:
    """Tune, print the progress and return what `--json` prints."""
    output, stream = streams(json_output)
    try:
        document = tune(request, lambda view: make_group_screen(view, stream))
    except RltError as error:
        if "trials" in error.details:
            print("\n".join(tune_lines(error.details, columns(stream))), file=stream, flush=True)
        raise
    print("\n".join(tune_lines(document, columns(stream))), file=stream, flush=True)
    close(output, document if json_output else None, document["group"])
    return document


def tune_lines(document: Mapping[str, Any], width: int) -> list[str]:
    """Return lines with the best trials, and the command that trains with the best settings."""
    trials: Sequence[Mapping[str, Any]] = document["trials"]
    valued = [each for each in trials if each["value"] is not None]
    valued = sorted(valued, key=lambda each: float(each["value"]), reverse=True)
    rows: list[tuple[str, ...]] = [("trial", "return", "", "settings")]
    rows += [
        (
            f"trial {each['trial']}",
            f"{each['value']:.1f}",
            "" if each["state"] == COMPLETE else each["state"],
            ", ".join(each["settings"]),
        )
        for each in valued[:MAX_SHOWN]
    ]
    states = [each["state"] for each in trials]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    group = near_path(Path(document["group"]))
    head = f"{len(trials)} of {document['of']} trials: {', '.join(counts)}"
    notes = time_lines(document, width)
    resume = [document["resume"]] if document["resume"] else []
    if not valued:
        first = head if trials else "no trial has finished yet"
        return [first, *notes, "", f"  runs  {group}", *(next_steps(*resume) if resume else ())]
    best = document["best"]
    shown = [head, *notes, *(f"  {line}" for line in folded(rows, width - 2)), ""]
    if best is not None:
        shown += [f"  best  trial {best['trial']}, return {best['value']:.1f}"]
        shown += [f"        {document['command']}"]
    commands = [*resume, command_line("report", group), command_line("runs", "compare", group)]
    return [*shown, f"  runs  {group}", *next_steps(*commands)]


LEAST_S = 5.0  # that is told


def time_lines(document: Mapping[str, Any], width: int) -> list[str]:
    """Return lines on what took the time besides training, and on other commands' trials."""
    lines = []
    before, compiling = document["prepared_s"], document["compiling_s"]
    if before + compiling >= LEAST_S:
        lines.append(
            f"{before:.0f} s went into compiling before the first run, and {compiling:.0f} s of "
            "the runs into programs of their sizes, which are kept"
        )
    if count := document["elsewhere"]:
        lines.append(
            f"{plural(count, 'trial')} of other commands have not ended: where such a command "
            "was killed, start it again, or give more --trials"
        )
    return [part for line in lines for part in wrapped(line, width, "  ", "    ")]


TUNE_EXAMPLE = "tune pendulum-td3 --trials 20"


def tune_command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]",
            help="An experiment, or a Gymnasium task: gym:Hopper-v5, gym:FILE.py:CLASS.",
            autocompletion=options.experiments,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The tuning's name in runs/; an existing one continues. [default: a new one]",
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Continue this tuning.", autocompletion=options.runs),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            metavar="N", help=f"Trials in all. [default: {DEFAULT_TRIALS}, or as it began]"
        ),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW..HIGH|A,B",
            help="Search only this: a range or values; NAME alone: default values; repeatable.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a hyperparameter of all trials."),
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(
            metavar="BOARD",
            help="Where to train, as for `rlt train`.",
            autocompletion=options.boards,
        ),
    ] = None,
    steps: RunSteps = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="SEEDS", help="Each trial's runs; its value is their mean. [default: 0]"
        ),
    ] = None,
    jobs: Jobs = None,
    timeout_s: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="Pause after this time."),
    ] = None,
    prunes: Annotated[
        bool | None,
        typer.Option(
            "--prune/--no-prune",
            help="End trials early that are worse than the median. [default: yes]",
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Database of the trials. [default: SQLite in the tuning's folder]"
        ),
    ] = None,
    ray: Ray = None,
    threads: RunThreads = None,
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", help="For gym:…, as for `rlt train`.")
    ] = None,
    json_output: Json = False,
) -> None:
    """Search hyperparameters and sizes with Optuna, which chooses a trial's settings from earlier
    results and ends hopeless ones early. Ctrl-C pauses all and prints the command that resumes; a
    killed command resumes in the same way. The end is the command that trains with the best
    settings."""
    task = None
    if is_task(what):
        task = task_request(str(what), algorithm, None)
    elif algorithm is not None:
        raise UsageError("--algorithm goes with a Gymnasium task: an experiment has its own")
    out = None
    if name is not None:
        if resume is not None:
            raise UsageError("--name does not go with --resume: that names the tuning already")
        out = named(name)
        if is_group(out):
            out, resume = None, str(out)
    training = TrainingRequest(
        None if task is not None else what,
        board,
        steps=steps,
        settings=tuple(settings or ()),
        out=out,
        resume=resume,
        threads=threads,
        task=task,
        seeds=() if seeds is None else parse_seeds(seeds),
        jobs=jobs,
        ray=ray,
    )
    request = TuneRequest(training, tuple(search or ()), trials, timeout_s, prunes, storage)
    run_tune(request, json_output)
