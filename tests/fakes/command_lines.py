"""What the command line has against words that somebody is told to type."""

from __future__ import annotations

import shlex
from importlib import import_module
from typing import Any

import typer

from rltools_host.commands import cli
from rltools_host.commands.bench import BENCHMARKS
from rltools_host.errors import UsageError


def is_line(words: list[str]) -> bool:
    """More than a command's name: `bench train --quick`, not `train`."""
    return len(words) > 1 + (words[0] == "bench")


def problem(words: list[str]) -> str | None:
    """Return what is wrong with these words, which are parsed and not run, or None."""
    group: Any = typer.main.get_command(cli.app)
    context = typer.Context(group, info_name="rlt")
    try:
        name, command, rest = group.resolve_command(context, list(words))
        command.make_context(name, list(rest))
        if name == "bench" and rest and rest[0] in BENCHMARKS:
            function = rest[0].replace("-", "_")
            benchmark = getattr(import_module(f"benchmarks.{function}"), function)
            cli.one_command(benchmark, rest[0], "", "").make_context(rest[0], rest[1:])
        elif name == "bench" and rest and rest[0] != "NAME" and not rest[0].startswith("-"):
            return f"{shlex.join(words)}: there is no benchmark {rest[0]}"
    except (cli.CommandLineError, UsageError) as error:
        return f"{shlex.join(words)}: {error}"
    except typer.Exit:  # of --help
        return None
    return None
