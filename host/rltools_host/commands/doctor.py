"""`rlt doctor`: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from rltools_host.commands.options import Json, leave
from rltools_host.errors import MissingToolError
from rltools_host.lines import columns, folded
from rltools_host.toolchain import tools
from rltools_host.toolchain.description import MOUNT_PTS, Tool, system_tools
from rltools_host.tree import TREE


@dataclass(frozen=True)
class Finding:
    """One row of the table: a tool or a group of Python packages."""

    name: str
    found: bool
    version: str
    needed_for: str
    how_to_get: str
    optional: bool = False  # missing is no failure


def program_version(path: str) -> str:
    """The first number with a dot in what `PROGRAM --version` prints."""
    try:
        output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.search(r"\d+(\.\d+)+", re.sub(r"\(.*?\)", "", output.stdout))
    return match.group() if match else ""


def tool_finding(tool: Tool) -> Finding:
    path = tool.path()
    version = path or ""
    if path and not tool.is_program:
        version = str(Path(path).resolve())
    elif path and path == tool.stand_in_path():
        version = f"no, but {tool.stand_in} in its place"
    elif path and tool.package:
        version = program_version(path)
    return Finding(
        name=tool.name,
        found=path is not None,
        version=version,
        needed_for=f"{tool.needed_for} (optional)" if tool.optional else tool.needed_for,
        how_to_get=tools.apt_line([tool.package]) if tool.package else MOUNT_PTS,
        optional=tool.optional,
    )


def bundled_finding(name: str) -> Finding:
    """CMake and Ninja, which come as Python packages."""
    try:
        version = program_version(tools.program(name))
    except MissingToolError:
        version = ""
    return Finding(name, bool(version), version, "building", "delete .venv and run ./rlt")


def group_finding(group: str, purpose: str) -> Finding:
    installed = tools.group_is_installed(group)
    return Finding(
        name=f"Python: {group}",
        found=installed,
        version="as locked" if installed else "",
        needed_for=purpose,
        how_to_get=tools.pip_line(group) if TREE.is_installed else "installed when it is needed",
        optional=True,
    )


def findings() -> list[Finding]:
    groups = tools.GROUPS | tools.STAND_INS
    python = Finding("python", True, platform.python_version(), "everything", "")
    return [
        python,
        *(bundled_finding(name) for name in ("cmake", "ninja")),
        *(tool_finding(tool) for tool in system_tools().values()),
        *(group_finding(group, purpose) for group, purpose in groups.items()),
    ]


def run(json_output: bool = False) -> int:
    """Prints the table; the exit code is that of a missing tool when a system tool is missing."""
    rows = findings()
    missing = [row for row in rows if not row.found and not row.optional]
    table = [("tool", "found", "needed for")]
    table += [
        (row.name, row.version if row.found else missing_text(row), row.needed_for) for row in rows
    ]
    print("\n".join(folded(table, columns(sys.stdout))))
    if missing:
        known = system_tools()
        found = [known[row.name].package for row in missing if row.name in known]
        if packages := list(filter(None, found)):
            print(f"\nAll that is missing: {tools.apt_line(packages)}", file=sys.stderr)
    if json_output:
        print(json.dumps({"ok": not missing, "tools": [asdict(row) for row in rows]}))
    return MissingToolError.exit_code if missing else 0


def missing_text(row: Finding) -> str:
    """A command in backticks, so that no line breaks in it."""
    is_command = row.how_to_get.startswith(("sudo ", "apt-get "))
    return f"no: `{row.how_to_get}`" if is_command else f"no: {row.how_to_get}"


EXAMPLE = "doctor --json"


def command(
    json_output: Json = False,
) -> None:
    leave(run(json_output))
