"""Options and arguments that several commands have, and the names that a shell completes.

A command that can be called in several ways calls `refuse` for the options that do not apply;
tests/host/commands/test_modes.py checks that every other option has an effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.errors import UsageError
from rltools_host.files import load_json
from rltools_host.runs.names import WHICH

VARIABLE = "_RLT_COMPLETE"  # set by a shell that asks for completions
GIVEN = "COMMANDLINE"  # of typer's ParameterSource


def boards(incomplete: str) -> list[str]:
    from rltools_host.build.boards import list_boards

    return beginning(incomplete, (board.name for board in list_boards()))


def experiments(incomplete: str) -> list[str]:
    from rltools_host.build.experiments import list_experiments

    return beginning(incomplete, list_experiments())


def runs(incomplete: str) -> list[str]:
    """Return the runs of runs/, the newest first; a path is completed as a file."""
    from rltools_host.runs.names import LATEST, run_names
    from rltools_host.tree import PROJECT

    return beginning(incomplete, [LATEST, *reversed(run_names(PROJECT.runs))])


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def run_named(name: str | None) -> str | None:
    """Return the run's folder of a file that the page or an export saved; else the name itself."""
    if name is None or not Path(name).is_file():
        return name
    from rltools_host.training.file_runs import run_of_file

    return run_of_file(name)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="File or folder.")
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's folder, its name under runs/, or: latest. Or a policy (.rltp) or checkpoint "
        "(.safetensors) file of ours.",
        autocompletion=runs,
        callback=run_named,
    ),
]
SafeActionOption = Annotated[
    str | None,
    typer.Option(
        "--safe-action",
        metavar="VALUES",
        help="The safe action, for when a fault is found: a value for each action, or "
        "NAME=VALUE,…; for discrete actions a name or a number. [default: as the task or the "
        "contract states]",
    ),
]
StepIntervalOption = Annotated[
    int | None,
    typer.Option(
        "--step-interval-us",
        metavar="US",
        help="The time of a step, where neither the task nor the contract states it.",
    ),
]
Which = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="The last policy, or best: that of the best evaluation in training.",
        autocompletion=lambda: list(WHICH),
    ),
]
BoardOption = Annotated[
    str,
    typer.Option(
        "--board",
        metavar="BOARD",
        help="A name that `rlt doctor` lists.",
        autocompletion=boards,
    ),
]
RunSteps = Annotated[
    int | None, typer.Option("--steps", metavar="N", help="Environment steps of each run.")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", help="Runs at once. [default: one for each processor]"),
]
Ray = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Train on this Ray cluster: HOST:PORT, auto, ray://HOST:PORT."
    ),
]
Channels = Annotated[
    Path | None,
    typer.Option("--channels", metavar="FILE", help="For gym:…: names, units and ranges, in JSON."),
]


def channel_table(file: Path | None) -> Mapping[str, object]:
    """Return the table of --channels, empty without a file."""
    if file is None:
        return {}
    try:
        table = load_json(file)
    except OSError as error:
        raise UsageError(f"cannot read --channels {file}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"--channels {file} is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise UsageError(f"--channels {file} is not a table of observations and actions")
    return table


RunThreads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", help="Threads of a run, if the board takes them."),
]
Port = Annotated[
    str | None,
    typer.Option("--port", metavar="PORT", help="Serial device, or socket://HOST:PORT."),
]
ContractOption = Annotated[
    str | None,
    typer.Option(
        "--contract",
        metavar="NAME",
        help="Contract of the firmware to start. [default: pendulum, or that of a gym:… run]",
    ),
]
Program = Annotated[
    str, typer.Option("--program", metavar="NAME", help="train, or infer for pushed policies.")
]


def leave(code: int) -> None:
    """End the command with this exit code, unless it is 0."""
    if code:
        raise typer.Exit(code)


# -- options that do not apply --------------------------------------------------------------------


def refuse(context: typer.Context, when: str, *names: str) -> None:
    """Raise UsageError where one of these parameters was given: it has no effect `when`.

    `when` ends the sentence, as in "with --gate"; `names` are those of the command's function.
    """
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in names and source is not None and source.name == GIVEN:
            raise UsageError(f"{max(parameter.opts, key=len)} has no effect {when}: leave it out")
