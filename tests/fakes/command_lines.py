"""What the command line has against words that somebody is told to type."""

from __future__ import annotations

import shlex
from typing import Any

import typer

from rltools_host import cli


def is_line(words: list[str]) -> bool:
    """More than a command's name: `bench train --quick`, not `train`."""
    return len(words) > 1 + (words[0] == "bench")


def problem(words: list[str]) -> str | None:
    """None where there is none; they are parsed, and nothing is run."""
    group: Any = typer.main.get_command(cli.app)
    context = typer.Context(group, info_name="rlt")
    try:
        name, command, rest = group.resolve_command(context, list(words))
        if isinstance(command, cli.LazyGroup):
            name, command, rest = command.resolve_command(context, rest)
        command.make_context(name, rest)
    except cli.CommandLineError as error:
        return f"{shlex.join(words)}: {error}"
    except typer.Exit:  # of --help
        return None
    return None
