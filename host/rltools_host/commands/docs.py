"""`rlt docs`: this documentation as pages, by Sphinx; docs/conf.py configures it."""

from __future__ import annotations

import json
import subprocess
import sys

from rltools_host.build import tools
from rltools_host.commands.options import Json
from rltools_host.errors import BuildError, UsageError
from rltools_host.tree import PROJECT, TREE, near_path

GROUPS = ("docs", "test", "tune")  # of Python packages; tutorials use the last two
EXAMPLE = "docs"


def build(json_output: bool = False) -> None:
    if TREE.is_installed:
        raise UsageError("the documentation is in the checkout: build it there")
    for group in GROUPS:
        tools.ensure_group(group)
    folder = PROJECT.build / "docs"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--no-color", "-c", "docs"]
    command += ["-d", str(folder / "doctrees"), ".", str(folder / "html")]
    if subprocess.run(command, cwd=TREE.root, stdout=sys.stderr).returncode != 0:
        raise BuildError("the documentation has faults: see above")
    page = folder / "html" / "index.html"
    print(f"wrote {near_path(page)}")
    if json_output:
        print(json.dumps({"path": str(page)}))


def command(json_output: Json = False) -> None:
    """Execute changed tutorials and write the pages with Sphinx.

    The command fails where a cell fails or a link leads nowhere. A browser shows the pages from the
    disk; any host of static files can have their folder.
    """
    build(json_output)
