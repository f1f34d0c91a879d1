"""`rlt web`: a folder with a page that trains in the browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands import parameters
from rltools_host.commands.options import Json, mode, require
from rltools_host.hints import near_path
from rltools_host.serving import address_of, server_of
from rltools_host.web.site import default_folder, write_site

EXAMPLE = "web pendulum-td3 --serve"
DEFAULT_PORT = 8000
TO_WRITE = mode("without --serve", "experiments", "out", "json_output")
TO_SERVE = mode("with --serve", "experiments", "out", "json_output", "serve", "port")
MODES = (TO_WRITE, TO_SERVE)


def run(
    names: Sequence[str], out: Path | None, port: int | None = None, json_output: bool = False
) -> None:
    """Writes the folder, says where, and serves it where there is a port."""
    folder = write_site(names, (out or default_folder()).resolve())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"wrote {near_path(folder)}, {size / 1000:,.0f} kB", flush=True)
    if json_output:
        print(json.dumps({"path": str(folder), "bytes": size}), flush=True)
    if port is not None:
        serve_folder(folder, port)


def serve_folder(folder: Path, port: int) -> None:
    """Until Ctrl-C."""
    with server_of(folder, port) as server:
        print(f"open {address_of(server)} (Ctrl-C ends this)", flush=True)
        server.serve_forever()


def command(
    context: typer.Context,
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT…]",
            help="Experiments on the page, first one on top. [default: all that run in a browser]",
            autocompletion=parameters.experiments,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where to write. [default: build/web]"),
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve it for this machine, until Ctrl-C.")
    ] = False,
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="Of --serve; 0 takes a free one.")
    ] = DEFAULT_PORT,
    json_output: Json = False,
) -> None:
    """The folder can be put on any host of static files. The page trains in WebAssembly with the
    bits of every board, shows the policy, and works without a network once loaded."""
    require(context, MODES, TO_SERVE if serve else TO_WRITE)
    run(experiments or [], out, port if serve else None, json_output)
