"""`rlt docs`: the documentation as a folder of pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands.options import Json, mode, require
from rltools_host.commands.web import DEFAULT_PORT, serve_folder
from rltools_host.documentation.site import default_folder, write_site
from rltools_host.hints import near_path

EXAMPLE = "docs --serve"
TO_WRITE = mode("without --serve", "out", "web", "json_output")
TO_SERVE = mode("with --serve", "out", "web", "json_output", "serve", "port")
MODES = (TO_WRITE, TO_SERVE)


def run(
    out: Path | None, web: bool = False, port: int | None = None, json_output: bool = False
) -> None:
    """Writes the folder, says where, and serves it where there is a port."""
    folder = write_site((out or default_folder()).resolve(), web)
    print(f"wrote {near_path(folder)}", flush=True)
    if json_output:
        print(json.dumps({"path": str(folder)}), flush=True)
    if port is not None:
        serve_folder(folder, port)


def command(
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where to write. [default: build/docs]"),
    ] = None,
    web: Annotated[
        bool, typer.Option("--web", help="With the page of `rlt web` in it, for all experiments.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve it for this machine, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="Of --serve; 0 takes a free one.")
    ] = DEFAULT_PORT,
    json_output: Json = False,
) -> None:
    """Executes the tutorials, where they or the sources have changed, and fails where a cell fails
    or a link leads nowhere. The folder can be put on any host of static files."""
    require(context, MODES, TO_SERVE if serve else TO_WRITE)
    run(out, web, port if serve else None, json_output)
