"""The command `rlt train`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from rltools_host.build import tools
from rltools_host.build.catalog import listed
from rltools_host.build.experiments import evaluation_options
from rltools_host.commands import options
from rltools_host.commands.options import Channels, Jobs, Json, Ray, channel_table
from rltools_host.environments.task import TaskRequest, is_task
from rltools_host.errors import DiskError, RltError, UsageError
from rltools_host.lines import UNLIMITED, Output, columns, in_columns, next_steps, plural
from rltools_host.runs.contents import RunDocument
from rltools_host.screen.group_screen import make_group_screen, result_lines, times
from rltools_host.screen.training_screen import make_screen
from rltools_host.training.group_plan import GroupRequest, is_for_group, parse_seeds
from rltools_host.training.hyperparameters import load_set_file
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.run import train
from rltools_host.tree import command_line, near_path

if TYPE_CHECKING:
    from rltools_host.training.group import GroupDocument


# Of the time in training: a share of evaluations that is said.
LARGE_SHARE = 0.25


def run(request: TrainingRequest, json_output: bool = False) -> RunDocument | GroupDocument:
    """Train a run, or a group if the request is for one; return what `--json` prints."""
    if is_for_group(request):
        return run_group(GroupRequest(request), json_output)
    return run_one(request, json_output)


def run_one(request: TrainingRequest, json_output: bool = False) -> RunDocument:
    """Train one run, print its progress and return what `--json` prints."""
    output, stream = streams(json_output)
    document = train(request, lambda view: make_screen(view, stream))
    lines = closing_lines(document, columns(stream))
    print("\n".join(lines), file=stream, flush=True)
    close(output, document if json_output else None, document["run"])
    return document


def streams(json_output: bool) -> tuple[Output, IO[str]]:
    """Return the streams of the JSON and of everything else; writing to them raises no error."""
    output = Output(sys.stdout)
    return output, cast(IO[str], Output(sys.stderr) if json_output else output)


def close(output: Output, document: Mapping[str, Any] | None, folder: str) -> None:
    """Print the JSON; raise an error if something could not be printed, after all is saved."""
    if document is not None:
        print(json.dumps(document), file=output, flush=True)
    if (error := output.error) is not None:
        raise DiskError(
            f"the output could not be written ({error.strerror or error}), but run "
            f"{near_path(Path(folder))} is complete"
        )


def closing_lines(document: Mapping[str, Any], width: int = UNLIMITED) -> list[str]:
    """Return the lines after a finished run; paths and commands are not folded."""
    run_path = near_path(Path(document["run"]))
    learning_s = document["train_s"] - document["evaluation_s"]
    lines = [
        f"finished {document['step']:,} steps in {learning_s:.2f} s "
        f"({document['steps_per_s']:,.0f} steps/s) "
        f"and {document['evaluation_s']:.2f} s of evaluations"
    ]
    if document["evaluation_s"] > LARGE_SHARE * document["train_s"]:
        lines[0] += f" ({100 * document['evaluation_s'] / document['train_s']:.0f} % of the time)"
    if document["return_mean"] is not None:
        lines[0] += f", return {document['return_mean']:.1f} ± {document['return_std']:.1f}"
    best = document["best"]
    if best is not None and best["step"] != document["step"]:
        lines.append(
            f"  best  step {best['step']:,}, return {best['return_mean']:.1f} ± "
            f"{best['return_std']:.1f} (--which best)"
        )
    if document["guest_instructions"]:
        lines.append(f"  {document['guest_instructions']:,} guest instructions")
    lines += fault_lines(document)
    if document.get("updates") == 0:
        lines.append(
            "  nothing was learned: the run made no update, and its policy is the first one"
        )
    lines.append(f"  state {document['state_sha256']} verified")
    return [
        *in_columns(lines, width),
        f"  run   {run_path}",
        *next_steps(evaluation_line(document, run_path), command_line("report", run_path)),
    ]


def fault_lines(document: Mapping[str, Any]) -> list[str]:
    """Return lines on the faults of the user's environment."""
    lines = []
    if count := document.get("environment_faults"):
        lines.append(
            f"  the environment failed {times(count)} and was restarted; "
            f"first: {document['environment_fault']}"
        )
    if count := document.get("observations_outside"):
        lines.append(
            f"  {plural(count, 'observation')} lay outside their range, where a "
            "board takes the safe action: give wider ranges with channels, or in the environment's "
            f"space; first: {document['observation_outside']}"
        )
    return lines


def evaluation_line(document: Mapping[str, Any], run_path: Path) -> str:
    """Return the command that evaluates a run or a group; for a Python function, the call."""
    task = document.get("task")
    if task is None:
        options = evaluation_options(document["experiment"], document["environment"])
        return command_line("evaluate", run_path, *options)
    if is_task(task):
        return command_line("evaluate", run_path)
    return f"rlt.evaluate({str(run_path)!r}, make_env)"


# -- groups of runs --------------------------------------------------------------------------------


def run_group(request: GroupRequest, json_output: bool = False) -> GroupDocument:
    """Train a group, print its progress and return what `--json` prints."""
    from rltools_host.report.group_page import write_group_report
    from rltools_host.runs.group import STUDY, GroupFolder
    from rltools_host.training.group import train_group

    output, stream = streams(json_output)
    try:
        document = train_group(request, lambda view: make_group_screen(view, stream))
    except RltError as error:
        if "runs" in error.details:
            lines = result_lines(error.details, columns(stream))
            print("\n".join(lines), file=stream, flush=True)
        raise
    group = GroupFolder.open(document["group"])
    if group.content.kind == STUDY:  # it ends with its page, and the curves as numbers
        report, curves = write_group_report(group)
        document["report"], document["curves"] = str(report), str(curves)
    lines = [*result_lines(document, columns(stream)), *next_lines(document)]
    print("\n".join(lines), file=stream, flush=True)
    close(output, document if json_output else None, document["group"])
    return document


def next_lines(document: Mapping[str, Any]) -> list[str]:
    """Return lines with the group's folder and the next commands."""
    group = near_path(Path(document["group"]))
    lines = ["", f"  runs  {group}"]
    commands = [command_line("report", group)]
    if "report" in document:
        lines.append(f"  page  {near_path(Path(document['report']))}")
        lines.append(f"        {near_path(Path(document['curves']))}")
        commands = []
    task = document.get("task")
    if task is not None and not is_task(task):  # rlt.evaluate takes one run
        group = near_path(Path(document["runs"][0]["run"]))
    return [*lines, *next_steps(*commands, evaluation_line(document, group))]


# -- the command -----------------------------------------------------------------------------------


def task_request(name: str, algorithm: str | None, channels: Path | None) -> TaskRequest:
    """Return the request of `rlt train gym:ID` and its options."""
    return TaskRequest(name, algorithm=algorithm, channels=channel_table(channels))


NEW_RUNS_ONLY = (
    "--algorithm and --channels go with a new run of a Gymnasium task, gym:ID: an "
    "experiment's file fixes these"
)
EXAMPLE = "train pendulum-td3 --seed 1 --set learning_rate=5e-4"


def command(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT]",
            help="An experiment, such as pendulum-td3, or a Gymnasium task: gym:Hopper-v5, "
            "gym:MODULE:ID, gym:FILE.py:CLASS.",
            autocompletion=options.experiments,
        ),
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(
            metavar="BOARD",
            help="Where to train: a name of `rlt doctor`. [default: this machine: host, "
            "or host-threads for what no microcontroller has room for]",
            autocompletion=options.boards,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="The same seed gives the same bits everywhere.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Environment steps in all, also with --resume.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Set a hyperparameter, or a size: hidden=64,64, environments=8, "
            "episode_steps=500, batch_size=64; may be repeated.",
        ),
    ] = None,
    set_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Hyperparameters in JSON; --set wins over it."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run's folder. [default: a new one under runs/]"),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Resume a paused run or group, or a checkpoint file (.safetensors) of ours.",
            autocompletion=options.runs,
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(metavar="PORT", help="Port of the board: /dev/ttyACM0, socket://HOST:PORT."),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Computing threads, with --board host-threads. [default: 2]"
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="SEEDS", help="Train a run for each seed, several at once: 0-9, or 0,3,5-7."
        ),
    ] = None,
    jobs: Jobs = None,
    ray: Ray = None,
    verify: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --board cuda: runs that are trained here as well, to compare. [default: 2]",
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"For gym:…: {listed()}. [default: sac; ppo for discrete actions]"
        ),
    ] = None,
    channels: Channels = None,
    tensorboard: Annotated[
        bool | None,
        typer.Option(
            "--tensorboard/--no-tensorboard",
            help="Write a TensorBoard log. [default: yes; a resumed group's own choice]",
        ),
    ] = None,
    wandb: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT",
            help="Log to this project of Weights & Biases, too; WANDB_MODE=offline needs no "
            "account.",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Train on a board, and keep checkpoint, policy, metrics and a TensorBoard log in the run's
    folder. Ctrl-C pauses the board, saves a checkpoint and prints the command that resumes."""
    task = None
    is_new_task = is_task(experiment) and resume is None
    if not is_new_task and (algorithm is not None or channels is not None):
        raise UsageError(NEW_RUNS_ONLY)
    if is_task(experiment):
        task, experiment = task_request(str(experiment), algorithm, channels), None
    request = TrainingRequest(
        experiment,
        board,
        seed,
        steps,
        tuple(settings or ()),
        None if set_file is None else load_set_file(set_file),
        out,
        resume,
        port,
        threads,
        task,
        wandb=wandb,
        tensorboard=tensorboard,
        seeds=() if seeds is None else parse_seeds(seeds),
        jobs=jobs,
        ray=ray,
        verify=verify,
    )
    if wandb is not None:
        if not wandb:
            raise UsageError("--wandb is empty: name a project")
        tools.ensure_group("wandb")
    run(request, json_output)
