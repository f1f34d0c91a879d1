"""The ways in which a command is called, and the options that each of them takes.

A command with several has a table MODES and calls `require`, which refuses every other option that
was given. tests/host/commands/test_modes.py sees that what is taken has an effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import typer

from rltools_host.errors import UsageError

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
