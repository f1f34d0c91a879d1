"""What parameters of every command take: whole numbers as people type them, names that a shell
completes; `rlt completion`, which tells the shell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import copy
from typing import Annotated, Any

import typer

from rltools_host.errors import unknown_name

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
    from rltools_host.boards.description import list_boards

    return beginning(incomplete, (board.name for board in list_boards()))


def experiments(incomplete: str) -> list[str]:
    from rltools_host.build.experiments import list_experiments

    return beginning(incomplete, list_experiments())


def runs(incomplete: str) -> list[str]:
    """Those of runs/, the newest first; a path is completed as a file."""
    from rltools_host.project import PROJECT
    from rltools_host.runs.names import LATEST, run_names

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
