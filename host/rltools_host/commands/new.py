"""`rlt new`: what an environment of one's own begins as, and a project."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.build.firmware import link_for_platformio
from rltools_host.commands.options import Json, mode, require
from rltools_host.environments import templates
from rltools_host.errors import RltError, UsageError
from rltools_host.lines import plural
from rltools_host.tree import TREE, command_line, near_path

EXAMPLE = "new balance"
IN_CPP = mode("without --gymnasium", "name", "start", "contract", "project", "json_output")
IN_PYTHON = mode("with --gymnasium", "name", "start", "gymnasium", "project", "json_output")
MODES = (IN_CPP, IN_PYTHON)


def run(
    name: str | None,
    start: str = templates.DEFAULT_START,
    *,
    gymnasium: bool = False,
    contract: bool = False,
    project: Path | None = None,
    json_output: bool = False,
) -> None:
    """Writes the files, and says which and what to type next."""
    folder = None if project is None else project.resolve()
    if name is not None:
        name = templates.checked_name(name)
    elif folder is not None:
        name = templates.name_for(folder)
    else:
        raise UsageError(f"name what to begin, such as `{command_line(*EXAMPLE.split())}`")
    files = (
        templates.in_python(name, start) if gymnasium else templates.in_cpp(name, start, contract)
    )
    if folder is not None:
        written = templates.write_project(folder, name, files)
        with contextlib.suppress(OSError, RltError):  # `rlt boards` will do it
            link_for_platformio(folder)
    else:
        written = templates.write_experiment(name, files)
    for path in written:
        count = len(path.read_text().splitlines())
        print(f"wrote {near_path(path)}, {plural(count, 'line')}")
    file = near_path(written[-1]) if folder is None else written[-1].relative_to(folder)
    task = f"gym:{file}:{templates.struct_of(name)}" if gymnasium else name
    options = ["--board", "host"]
    if gymnasium:
        options = ["--steps", templates.steps_of(*files.values())]
    say_next(task, options, folder)
    if json_output:
        print(json.dumps({"name": name, "task": task, "files": [str(path) for path in written]}))


def say_next(task: str, options: Sequence[str], project: Path | None) -> None:
    lines, change = [], "change what is marked EDIT"
    guide = TREE.root / "docs" / "your_environment.md"
    with contextlib.ExitStack() as there:
        if project is not None:
            lines.append(shlex.join(["cd", str(near_path(project))]))
            there.enter_context(contextlib.chdir(project))
        lines.append(command_line("train", task, *options))
        if project is not None:
            lines.append(command_line("test"))
        if guide.is_file():  # the wheel has no documents
            change += f": {near_path(guide)}"
    print(f"  next  {lines[0]}")
    for line in (*lines[1:], change):
        print(f"        {line}")


def command(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Its name: lower-case letters and hyphens."),
    ] = None,
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
    project: Annotated[
        Path | None,
        typer.Option(
            "--project", metavar="DIR", help="In a new project there, with README, test and CI."
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """It compiles and learns as it is written, in experiments/ of the project."""
    require(context, MODES, IN_PYTHON if gymnasium else IN_CPP)
    options = {"gymnasium": gymnasium, "contract": contract, "json_output": json_output}
    run(name, start, project=project, **options)
