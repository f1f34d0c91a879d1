"""`rlt doctor`: what is installed, what is missing, and how to get it; every board, and what can be
done with it here."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.boards.board_link import ConnectedPort, connected_ports
from rltools_host.boards.gpu import connected_gpu
from rltools_host.build import cmake, firmware, tools
from rltools_host.build.boards import GPU, Board, list_boards
from rltools_host.build.toolchains import (
    ALL_GROUPS,
    BUILDERS,
    Tool,
    list_toolchains,
    system_tools,
)
from rltools_host.build.tools import missing_names
from rltools_host.commands.options import Json, leave
from rltools_host.commands.self_test import run as run_self_test
from rltools_host.errors import MissingToolError, RltError
from rltools_host.lines import columns, folded
from rltools_host.tree import PROJECT, TREE, in_project

BUNDLED = ("cmake", "ninja")  # Python packages


@dataclass(frozen=True)
class Finding:
    """One row of the table: a tool or a group of Python packages."""

    name: str
    found: bool
    version: str
    needed_for: str
    how_to_get: str
    optional: bool = False  # not needed


def program_version(path: str) -> str:
    """Return the first number with a dot in the output of `PROGRAM --version`."""
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
    elif path and tool.is_stood_in:
        version = f"no, but {tool.stand_in} instead"
    elif path:
        version = program_version(path)
    return Finding(
        name=tool.name,
        found=path is not None,
        version=version,
        needed_for=f"{tool.needed_for} (optional)" if tool.optional else tool.needed_for,
        how_to_get=tools.package_line(tool.package),
        optional=tool.optional,
    )


def bundled_finding(name: str) -> Finding:
    """Return the finding for CMake or Ninja, which are Python packages."""
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
    python = Finding("python", True, platform.python_version(), "everything", "")
    return [
        python,
        *(bundled_finding(name) for name in BUNDLED),
        *(tool_finding(tool) for tool in system_tools().values() if not tool.is_of_group),
        *(group_finding(name, group.needed_for) for name, group in ALL_GROUPS.items()),
    ]


def run(json_output: bool = False) -> int:
    """Print the tools and the boards; return the exit code of a missing tool where nothing can be
    built for this machine, which every command needs."""
    if not in_project():
        PROJECT.root = TREE.root  # what is installed is listed anywhere
    rows = findings()
    missing = [row for row in rows if not row.found and not row.optional]
    of_this_machine = {
        tool.name for each in list_toolchains() if each.native for tool in each.tools
    }
    is_ready = not {row.name for row in missing} & {*of_this_machine, *BUNDLED}
    table = [("tool", "found", "needed for")]
    table += [
        (row.name, row.version if row.found else missing_text(row), row.needed_for) for row in rows
    ]
    width = columns(sys.stdout)
    print("\n".join(folded(table, width)), end="\n\n")
    boards = summaries()
    print("\n".join(folded([HEADS, *map(summary_row, boards)], width)))
    if missing:
        known = system_tools()
        found = [known[row.name].package for row in missing if row.name in known]
        packages = list(filter(None, found))
        if packages and shutil.which("apt-get"):
            print(f"\nAll that is missing: {tools.apt_line(packages)}", file=sys.stderr)
    if json_output:
        document = {"tools": list(map(asdict, rows)), "boards": list(map(asdict, boards))}
        print(json.dumps({"ok": is_ready, **document}))
    return 0 if is_ready else MissingToolError.exit_code


def missing_text(row: Finding) -> str:
    """Return the text for a missing tool, with its command in backticks, so it does not break."""
    is_command = row.how_to_get.startswith(("sudo ", "apt-get "))
    return f"no: `{row.how_to_get}`" if is_command else f"no: {row.how_to_get}"


EXAMPLE = "doctor --json"


def command(
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Check bits, threads, the link and the storage of this machine, and print a table "
            "for an issue.",
        ),
    ] = False,
    json_output: Json = False,
) -> None:
    """List tools and boards. The exit code is 3 only if nothing can be built for this machine;
    other tools may be missing."""
    leave(run_self_test(json_output) if self_test else run(json_output))


# -- boards ----------------------------------------------------------------------------------------

HEADS = (
    *("board", "what it is", "memory", "link", "build", "programs", "emulate", "flash"),
    "connected",
)


@dataclass(frozen=True)
class Summary:
    """A board, and what can be done with it here."""

    name: str
    title: str
    file: str
    device: str
    memory: list[dict[str, str | int]]
    link: str
    built_with: str
    programs: list[str]
    build_needs: list[str]
    emulated: bool
    emulation_needs: list[str]
    flashed_with: str | None
    ports: list[ConnectedPort]
    gpu: str | None  # its name, driver and free memory


def summaries() -> list[Summary]:
    """Return a summary of each board.

    In a project elsewhere, also write the file of boards that its `platformio.ini` includes.
    """
    if (PROJECT.root / "platformio.ini").is_file() and PROJECT.is_elsewhere:
        with contextlib.suppress(OSError, RltError):  # PlatformIO reports it
            firmware.link_for_platformio(PROJECT.root)
    return list(map(summary, list_boards()))


def summary(board: Board) -> Summary:
    emulation = [board.emulator.program] if board.emulator else []
    return Summary(
        name=board.name,
        title=board.title + PROJECT.origin(board.file, TREE.boards),
        file=str(board.file),
        device=board.device,
        memory=[
            {"name": region.name, "bytes": region.bytes, "use": region.use}
            for region in board.memory
        ],
        link=board.link.kind,
        built_with=BUILDERS[board.toolchain.builder],
        programs=cmake.programs_of(board),
        build_needs=missing_names(cmake.required_tools(board)),
        emulated=board.emulator is not None,
        emulation_needs=missing_names(emulation),
        flashed_with=board.flasher,
        ports=connected_ports(board),
        gpu=connected_gpu() if board.is_gpu else None,
    )


def summary_row(board: Summary) -> tuple[str, ...]:
    def ready(needs: Sequence[str]) -> str:
        more = f" and {len(needs) - 1} more" if needs[1:] else ""  # the tools above name all
        return f"needs {needs[0]}{more}" if needs else "yes"

    memory = ", ".join(f"{each['name']} {int(each['bytes']) // 1024} KB" for each in board.memory)
    return (
        board.name,
        board.title,
        memory or "-",
        board.link,
        f"{ready(board.build_needs)} ({board.built_with})",
        ", ".join(board.programs) or "-",
        ready(board.emulation_needs) if board.emulated else "-",
        "yes" if board.flashed_with else "-",
        ", ".join(port.device for port in board.ports)
        or board.gpu
        or ("none" if board.link in ("serial", GPU) else "-"),
    )
