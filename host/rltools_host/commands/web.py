"""`rlt web`: write a folder with a page that trains in the browser; any host of static files can
have it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands import options
from rltools_host.commands.options import Json, refuse
from rltools_host.tree import PROJECT, near_path


def write(
    names: Sequence[str], out: Path | None, port: int | None = None, json_output: bool = False
) -> None:
    from rltools_host.web.site import address_of, server_of, write_site

    folder = write_site(names, (out or PROJECT.build / "web").resolve())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"wrote {near_path(folder)}, {size / 1000:,.0f} kB", flush=True)
    if json_output:
        print(json.dumps({"path": str(folder), "bytes": size}), flush=True)
    if port is not None:
        with server_of(folder, port) as server:
            print(f"open {address_of(server)} (Ctrl-C ends this)", flush=True)
            server.serve_forever()


EXAMPLE = "web pendulum-td3 --serve"


def command(
    context: typer.Context,
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT…]",
            help="Experiments on the page, first one on top. [default: all that run in a browser]",
            autocompletion=options.experiments,
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
    ] = 8000,
    json_output: Json = False,
) -> None:
    """Write the folder, which any host of static files can have. The page trains in WebAssembly
    with the bits of every board, shows the policy, and works without a network once loaded."""
    if not serve:
        refuse(context, "without --serve", "port")
    write(experiments or [], out, port if serve else None, json_output)
