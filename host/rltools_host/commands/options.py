"""Options and arguments that several commands have: whole numbers as people type them, names that a
shell completes (`rlt completion` tells the shell), and the ways in which a command is called.

A command with several ways has a table MODES and calls `require`, which refuses every other option
that was given. tests/host/commands/test_modes.py sees that what is taken has an effect.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rltools_host.errors import UsageError, unknown_name
from rltools_host.lines import say
from rltools_host.runs.names import WHICH

# Whole numbers with an exponent: 1e5, 2.5e6.
WITH_EXPONENT = re.compile(r"\d(\.\d{1,2})?e\+?([2-9]|1\d)", re.IGNORECASE)
VARIABLE = "_RLT_COMPLETE"  # that the shell asks by
SHELLS = ("bash", "zsh", "fish")


def take_whole_numbers(parameter: Any) -> None:
    """Makes a command's option of whole numbers take 1e5, as it takes 1_000_000."""
    kind = parameter.type
    if not str(getattr(kind, "name", "")).startswith("int"):  # or integer, as typer has it
        return

    class WholeNumber(type(kind)):  # type: ignore[misc]
        def convert(self, value: Any, param: Any, ctx: Any) -> Any:
            if isinstance(value, str) and WITH_EXPONENT.fullmatch(value.strip()):
                value = f"{float(value):.0f}"
            return super().convert(value, param, ctx)

    parameter.type = copy(kind)
    parameter.type.__class__ = WholeNumber


def boards(incomplete: str) -> list[str]:
    from rltools_host.build.boards import list_boards

    return beginning(incomplete, (board.name for board in list_boards()))


def experiments(incomplete: str) -> list[str]:
    from rltools_host.build.experiments import list_experiments

    return beginning(incomplete, list_experiments())


def runs(incomplete: str) -> list[str]:
    """Those of runs/, the newest first; a path is completed as a file."""
    from rltools_host.runs.names import LATEST, run_names
    from rltools_host.tree import PROJECT

    return beginning(incomplete, [LATEST, *reversed(run_names(PROJECT.runs))])


def beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


COMPLETION_EXAMPLE = "completion bash"


def completion_command(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """The shell is to read what `rlt completion bash` prints, for bash: with source, in bash and
    zsh by a process substitution, in fish by a pipe.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise unknown_name("shell", shell, SHELLS)
    print(get_completion_script(prog_name="rlt", complete_var=VARIABLE, shell=shell))


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="File or folder.")
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's folder, its name under runs/, or: latest.",
        autocompletion=runs,
    ),
]
SafeActionOption = Annotated[
    str | None,
    typer.Option(
        "--safe-action",
        metavar="VALUES",
        help="What is done where something is wrong: a value for each action, or NAME=VALUE,…; "
        "of choices a name or a number. [default: as the task or the contract states]",
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
        help="A name that `rlt boards` lists.",
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
EpisodeSteps = Annotated[
    int | None,
    typer.Option(
        "--episode-steps",
        metavar="N",
        help="For gym:…: longest episode. [default: the task's, or 1000]",
    ),
]
Channels = Annotated[
    Path | None,
    typer.Option("--channels", metavar="FILE", help="For gym:…: names, units and ranges, in JSON."),
]
RunThreads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", help="Threads of a run, if the board takes them."),
]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard/--no-tensorboard", help="Write TensorBoard logs.")
]
Port = Annotated[
    str | None,
    typer.Option("--port", metavar="PORT", help="Serial device, pty or socket://HOST:PORT."),
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
    """Ends the command with this exit code."""
    if code:
        raise typer.Exit(code)


class ProgressLine:
    """Shows how far something is, on a terminal only."""

    def __init__(self, what: str = "") -> None:
        self._begin = f"\r\x1b[K{what}: " if what else "\r\x1b[K"
        self._is_shown = False

    def show(self, what: str, done: int, whole: int) -> None:
        self._write(f"{done:,} of {whole:,} {what}")

    def sent(self, done: int, whole: int) -> None:
        self._write(f"sent {done:,} of {whole:,} bytes")

    def _write(self, text: str) -> None:
        if sys.stderr.isatty():
            self._is_shown = True
            print(f"{self._begin}{text}", end="", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        self.clear()
        say(sys.stdout, line)

    def clear(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False


# -- ways of calling a command --------------------------------------------------------------------

GIVEN = "COMMANDLINE"  # of typer's ParameterSource


class Mode(NamedTuple):
    when: str  # of a sentence: "with --px4"
    takes: frozenset[str]  # parameters of the function `command`


def mode(when: str, *takes: str) -> Mode:
    return Mode(when, frozenset(takes))


def require(context: typer.Context, modes: Sequence[Mode], chosen: Mode) -> None:
    """UsageError for an option that is given, and has no effect in this mode."""
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in chosen.takes or source is None or source.name != GIVEN:
            continue
        where = " or ".join(other.when for other in modes if name in other.takes)
        raise UsageError(
            f"{name_of(parameter)} has no effect {chosen.when}: leave it out, it goes {where}"
        )


def name_of(parameter: object) -> str:
    """As it is typed: the longest name of an option, an argument's word in the help."""
    names: Sequence[str] = getattr(parameter, "opts", ())
    option = max(names, key=len, default="")
    return option if option.startswith("-") else str(getattr(parameter, "metavar", "")).strip("[]")
