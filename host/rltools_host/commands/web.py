"""`rlt web`, `docs`: a folder with a page that trains in the browser, and one with this
documentation; any host of static files can have them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.commands import options
from rltools_host.commands.options import Json, mode, require
from rltools_host.tree import near_path

DEFAULT_PORT = 8000
Serve = Annotated[bool, typer.Option("--serve", help="Serve it for this machine, until Ctrl-C.")]
ServedPort = Annotated[
    int, typer.Option("--port", metavar="N", help="Of --serve; 0 takes a free one.")
]


def tell(folder: Path, about: str, document: object, port: int | None) -> None:
    """Says where the folder is, and serves it where there is a port, until Ctrl-C."""
    print(f"wrote {near_path(folder)}{about}", flush=True)
    if document is not None:
        print(json.dumps(document), flush=True)
    if port is not None:
        from rltools_host.web.site import address_of, server_of

        with server_of(folder, port) as server:
            print(f"open {address_of(server)} (Ctrl-C ends this)", flush=True)
            server.serve_forever()


# -- web -------------------------------------------------------------------------------------------


def web(
    names: Sequence[str], out: Path | None, port: int | None = None, json_output: bool = False
) -> None:
    from rltools_host.web.site import default_folder, write_site

    folder = write_site(names, (out or default_folder()).resolve())
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    document = {"path": str(folder), "bytes": size} if json_output else None
    tell(folder, f", {size / 1000:,.0f} kB", document, port)


WEB_EXAMPLE = "web pendulum-td3 --serve"
WEB_TO_WRITE = mode("without --serve", "experiments", "out", "json_output")
WEB_TO_SERVE = mode("with --serve", "experiments", "out", "json_output", "serve", "port")
WEB_MODES = (WEB_TO_WRITE, WEB_TO_SERVE)


def web_command(
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
    serve: Serve = False,
    port: ServedPort = DEFAULT_PORT,
    json_output: Json = False,
) -> None:
    """The folder can be put on any host of static files. The page trains in WebAssembly with the
    bits of every board, shows the policy, and works without a network once loaded."""
    require(context, WEB_MODES, WEB_TO_SERVE if serve else WEB_TO_WRITE)
    web(experiments or [], out, port if serve else None, json_output)


# -- docs ------------------------------------------------------------------------------------------


def docs(
    out: Path | None, with_page: bool = False, port: int | None = None, json_output: bool = False
) -> None:
    from rltools_host.documentation.site import default_folder, write_site

    folder = write_site((out or default_folder()).resolve(), with_page)
    tell(folder, "", {"path": str(folder)} if json_output else None, port)


DOCS_EXAMPLE = "docs --serve"
DOCS_TO_WRITE = mode("without --serve", "out", "page", "json_output")
DOCS_TO_SERVE = mode("with --serve", "out", "page", "json_output", "serve", "port")
DOCS_MODES = (DOCS_TO_WRITE, DOCS_TO_SERVE)


def docs_command(
    context: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where to write. [default: build/docs]"),
    ] = None,
    page: Annotated[
        bool, typer.Option("--web", help="With the page of `rlt web` in it, for all experiments.")
    ] = False,
    serve: Serve = False,
    port: ServedPort = DEFAULT_PORT,
    json_output: Json = False,
) -> None:
    """Executes the tutorials, where they or the sources have changed, and fails where a cell fails
    or a link leads nowhere. The folder can be put on any host of static files."""
    require(context, DOCS_MODES, DOCS_TO_SERVE if serve else DOCS_TO_WRITE)
    docs(out, page, port if serve else None, json_output)
