"""`rlt check`: finds what keeps an environment from being learned, and says what to do."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Annotated

import msgspec
import typer

from rltools_host.build.catalog import listed
from rltools_host.build.experiments import describe, is_of_task, requirements
from rltools_host.checks.findings import (
    ADVICE,
    FAULT,
    CompiledRequest,
    Examination,
    Figures,
    number,
)
from rltools_host.checks.memory import SLOT, BoardFit, fits, policy_fits
from rltools_host.checks.process import examine, examine_task
from rltools_host.commands import options
from rltools_host.commands.options import Channels, Json, leave, refuse
from rltools_host.commands.train import task_request
from rltools_host.environments.library import experiment_library
from rltools_host.environments.task import TaskRequest, is_task
from rltools_host.errors import EnvironmentFaultError, UsageError
from rltools_host.lines import INDENT, columns, folded, plural, without_commands, wrapped
from rltools_host.training.hyperparameters import SIZE_NAMES, given_values, with_sizes

LABEL = 10  # columns


def run_experiment(name: str, settings: Sequence[str] = (), json_output: bool = False) -> None:
    """Examine an experiment, and which boards have the memory to train it."""
    if is_of_task(name):
        raise UsageError(f"{name} was written for a Gymnasium task: check that, gym:ID")
    values = given_values(describe(name), None, None, settings) if settings else {}
    found = examine(name, CompiledRequest(name, experiment_library(name), values))
    sizes = found.figures.bytes
    finish(name, found, fits(name, sizes) if sizes else [], json_output)


def run_task(request: TaskRequest, json_output: bool = False) -> None:
    """Examine a Gymnasium task."""
    found = examine_task(request)
    sizes = found.figures.bytes
    finish(request.source, found, policy_fits(sizes) if sizes else [], json_output)


def finish(name: str, found: Examination, boards: Sequence[BoardFit], json_output: bool) -> None:
    """Print the examination; exit with an error code if there is a fault."""
    stream = sys.stderr if json_output else sys.stdout
    lines = report(name, found, boards, columns(stream))
    print(without_commands("\n".join(lines)), file=stream, flush=True)
    if json_output:
        document = {"checked": name, "ok": not found.faults, **msgspec.to_builtins(found)}
        print(json.dumps({**document, "boards": [board.document() for board in boards]}))
    leave(EnvironmentFaultError.exit_code if found.faults else 0)


def report(name: str, found: Examination, boards: Sequence[BoardFit], width: int) -> list[str]:
    lines = figure_lines(name, found.figures, width)
    if boards:
        widths = ",".join(map(str, found.figures.hidden))
        what = (
            f"for its policy, hidden layers {widths}; it is trained on this machine"
            if SLOT in boards[0].parts
            else f"to train {name}, with code and stack: at most, or as linked"
        )
        lines += entry("memory", what, width)
        lines += [f"{INDENT}{line}" for line in folded(board_rows(found, boards), width - 2)]
    elif found.figures.bytes is not None:
        needs = " ".join(requirements(name)) or "more than any board has"
        lines += entry("memory", f"it is for this machine alone (Requires: {needs})", width)
    if found.passed:
        lines += entry("in order", ", ".join(found.passed), width)
    for level in (FAULT, ADVICE):
        for finding in found.findings:
            if finding.level == level:
                lines += ["", *wrapped(f"{level}: {finding.what}", width)]
                lines += wrapped(finding.remedy, width, f"{INDENT}-> ", f"{INDENT}   ")
    advice = len(found.findings) - found.faults
    count = ", ".join(
        [
            "nothing is wrong" if not found.faults else plural(found.faults, "fault"),
            *([f"{advice} to think about"] if advice else []),
        ]
    )
    return [*lines, "", count]


def entry(label: str, text: str, width: int) -> list[str]:
    return wrapped(text, width, f"{INDENT}{label:<{LABEL}}", " " * (LABEL + len(INDENT)))


def figure_lines(name: str, figures: Figures, width: int) -> list[str]:
    """Return what was measured, whether it is good or not."""
    if figures.environment is None:
        return [name]
    observations = plural(figures.observations, "observation")
    text = f"{figures.environment}: {observations}, {plural(figures.actions, 'action')}"
    if steps := figures.episode_steps:
        text += f", episodes of {steps:,} steps ({number(steps * (figures.step_s or 0.0))} s)"
    if figures.algorithm:
        text += f", learned by {figures.algorithm}"
    lines = wrapped(text, width)
    lines += [line for each in figures.assumed for line in wrapped(each, width)]
    if figures.steps is not None:
        lines += play_lines(figures, width)
    if figures.wrappers:
        lines += entry("wrappers", ", ".join(figures.wrappers), width)
    return lines


def play_lines(figures: Figures, width: int) -> list[str]:
    played = f"{figures.steps:,} steps of random actions"
    if (mean := figures.episode_steps_mean) is not None:
        played += (
            f", {plural(figures.episodes, 'episode')} of {number(mean)} steps, "
            f"of which {figures.terminated:,} terminated"
        )
    lines = entry("played", played, width)
    if (
        figures.algorithm
        and not figures.terminated
        and mean
        and mean < (figures.episode_steps or 0)
    ):
        lines += entry(
            "cut off",
            f"by the environment itself; say so by --set episode_steps={math.ceil(mean)}, as "
            f"training plans its evaluations for {figures.episode_steps:,}",
            width,
        )
    reward = (
        f"{number(figures.reward_mean)} ± {number(figures.reward_std)} a step, from "
        f"{number(figures.reward_min)} to {number(figures.reward_max)}"
    )
    if figures.return_mean is not None and figures.return_std is not None:
        reward += f"; {number(figures.return_mean)} ± {number(figures.return_std)} an episode"
    lines += entry("reward", reward, width)
    if figures.steps_per_s is not None:
        lines += entry("speed", f"{number(figures.steps_per_s)} steps a second on one core", width)
    if figures.step_us is not None and figures.reset_us is not None:
        speed = f"{number(figures.step_us)} µs a step, {number(figures.reset_us)} µs a reset"
        lines += entry("speed", speed, width)
    return lines


def board_rows(found: Examination, boards: Sequence[BoardFit]) -> list[tuple[str, ...]]:
    layers = len(found.figures.hidden)
    rows: list[tuple[str, ...]] = [("board", "memory", "hidden layers up to")]
    for board in boards:
        parts = ", ".join(f"{name} {part:.0%}" for name, part in board.parts.items() if part)
        widest = f"{layers}x{board.widest}" if board.widest else "none"
        parts += "" if board.fits else ": too much"
        parts += ", linked" if board.is_linked else ""
        rows.append((board.board, parts, widest))
    return rows


EXAMPLE = "check gym:Pendulum-v1"


def command(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="An experiment, or a Gymnasium task: gym:ID, gym:MODULE:ID, gym:FILE.py:CLASS.",
            autocompletion=options.experiments,
        ),
    ],
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"For gym:…: the algorithm to try, {listed()}. [default: sac; ppo for discrete "
            "actions]",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change a hyperparameter or a setting of an experiment, or a size of a task, such "
            "as episode_steps; may be repeated.",
        ),
    ] = None,
    channels: Channels = None,
    json_output: Json = False,
) -> None:
    """Play random actions, and the same ones again: ranges, finite numbers, the same episodes from
    the same seed, reset and termination, the scale of rewards and observations; memory on each
    board, to train an experiment, or for a task's policy. Each finding comes with its remedy. The
    exit code is 3 if there is a fault.
    """
    if is_task(name):
        task, others = with_sizes(task_request(name, algorithm, channels), settings or ())
        if others:
            raise UsageError(f"--set {others[0]}: a task's settings are {', '.join(SIZE_NAMES)}")
        run_task(task, json_output)
    else:
        refuse(context, "with an experiment", "algorithm", "channels")
        run_experiment(name, settings or (), json_output)
