"""`rlt new`: what an environment of one's own begins as."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rltools_host.commands.options import Json, mode, require
from rltools_host.environments import templates
from rltools_host.hints import command_line, near_path

EXAMPLE = "new balance"
IN_CPP = mode("without --gymnasium", "name", "start", "contract", "json_output")
IN_PYTHON = mode("with --gymnasium", "name", "gymnasium", "json_output")
MODES = (IN_CPP, IN_PYTHON)


def run(
    name: str,
    start: str = templates.DEFAULT_START,
    *,
    gymnasium: bool = False,
    contract: bool = False,
    json_output: bool = False,
) -> None:
    """Writes the files, and says which and what to type next."""
    name = templates.checked_name(name)
    files = templates.in_python(name) if gymnasium else templates.in_cpp(name, start, contract)
    written = [near_path(path) for path in templates.write_experiment(name, files)]
    for path, text in zip(written, files.values(), strict=True):
        print(f"wrote {path}, {len(text.splitlines())} lines")
    task = f"gym:{written[0]}:{templates.struct_of(name)}" if gymnasium else name
    words = ["train", task, *(["--steps", "5000"] if gymnasium else ["--board", "host"])]
    print(f"  next  {command_line(*words)}")
    print("        change what is marked EDIT: docs/your_environment.md")
    if json_output:
        print(json.dumps({"name": name, "task": task, "files": [str(path) for path in written]}))


def command(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What it is called: small letters and hyphens.")
    ],
    start: Annotated[
        str,
        typer.Option(
            "--like",
            metavar="START",
            help=f"What it is until you change it: {' or '.join(templates.starts())}.",
            autocompletion=lambda: templates.starts(),
        ),
    ] = templates.DEFAULT_START,
    gymnasium: Annotated[
        bool, typer.Option("--gymnasium", help="In Python, with Gymnasium's interface.")
    ] = False,
    contract: Annotated[
        bool,
        typer.Option(
            "--contract", help="With a header of its own for what a board gets and gives."
        ),
    ] = False,
    json_output: Json = False,
) -> None:
    """It compiles and learns as it is written, in experiments/ of the project."""
    require(context, MODES, IN_PYTHON if gymnasium else IN_CPP)
    run(name, start, gymnasium=gymnasium, contract=contract, json_output=json_output)
