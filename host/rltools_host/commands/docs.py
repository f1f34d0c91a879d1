"""`rlt docs`: this documentation as pages, by Sphinx; docs/conf.py configures it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.build import tools
from rltools_host.commands.options import Json
from rltools_host.errors import BuildError, UsageError
from rltools_host.lines import ProgressLine, aside
from rltools_host.tree import PROJECT, TREE, near_path

TUTORIALS = ("test", "tune")  # groups of Python packages that tutorials use
# A line of Sphinx's, which says how far it is.
PROGRESS = re.compile(r"(reading sources|copying images|writing output)\.\.\. +\[ *(\d+)%\]")
EXAMPLE = "docs"


def build(executes: bool = False, json_output: bool = False) -> None:
    """Write the pages; of a wheel, tell where they lie as files."""
    page = TREE.file("docs/index.md")
    if not TREE.is_installed:
        page = write_pages(executes)
        print(f"wrote {near_path(page)}")
    elif executes:
        raise UsageError("--execute: tutorials run in the checkout: leave it out")
    else:
        print(f"the pages, as files: {page}\na checkout writes them as a site")
    if json_output:
        print(json.dumps({"path": str(page)}))


def write_pages(executes: bool) -> Path:
    for group in ("docs", *(TUTORIALS if executes else ())):
        tools.ensure_group(group)
    folder = PROJECT.build / "docs"
    command = [sys.executable, "-m", "sphinx", "-W", "--no-color", "-c", "docs"]
    command += ["-D", f"nb_execution_mode={'cache' if executes else 'off'}"]
    command += ["-d", str(folder / "doctrees"), ".", str(folder / "html")]
    aside("Writing the pages: minutes the first time, and after each change of the sources")
    line, phase = ProgressLine(), ""
    with subprocess.Popen(
        command,
        cwd=TREE.root,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as sphinx:
        assert sphinx.stdout is not None
        for text in sphinx.stdout:  # warnings go to standard error
            if (found := PROGRESS.match(text)) is None:
                continue
            if found[1] != phase and not sys.stderr.isatty():
                aside(found[1])
            phase = found[1]
            line.write(f"{phase}: {found[2]} %")
    line.clear()
    if sphinx.returncode != 0:
        raise BuildError("the documentation has faults: see above")
    return folder / "html" / "index.html"


def command(
    executes: Annotated[
        bool,
        typer.Option("--execute", help="Run changed tutorials, and show what their cells print."),
    ] = False,
    json_output: Json = False,
) -> None:
    """Write the pages with Sphinx. Only --execute runs the tutorials' cells.

    The command fails if a link leads nowhere, or a cell fails. A browser shows the pages from the
    disk; any host of static files can serve their folder. A wheel has them as files.
    """
    build(executes, json_output)
