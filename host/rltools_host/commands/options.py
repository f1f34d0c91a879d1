"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="File or folder.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's folder, its name under runs/, or: latest.")
]
BoardOption = Annotated[
    str, typer.Option("--board", metavar="BOARD", help="A name that `rlt boards` lists.")
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
