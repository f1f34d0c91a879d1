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


def leave(code: int) -> None:
    """Ends the command with this exit code."""
    if code:
        raise typer.Exit(code)
