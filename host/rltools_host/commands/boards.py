"""`rlt boards`: every board, and what can be done with it here."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rltools_host.boards.description import Board, list_boards
from rltools_host.commands.options import Json, leave
from rltools_host.errors import RltError
from rltools_host.link.board_link import connected_ports
from rltools_host.project import PROJECT
from rltools_host.toolchain.description import BUILDERS, PTS
from rltools_host.toolchain.tools import missing_names
from rltools_host.tree import TREE


def summary(board: Board) -> dict[str, Any]:
    """What `rlt boards --json` says about a board."""
    from rltools_host.build import cmake

    emulation = [board.emulator.program, PTS.name] if board.emulator else []
    return {
        "name": board.name,
        "title": board.title + PROJECT.origin(board.file, TREE.boards),
        "file": str(board.file),
        "device": board.device,
        "bit_identical": board.bit_identical,
        "memory": [
            {"name": region.name, "bytes": region.bytes, "use": region.use}
            for region in board.memory
        ],
        "link": board.link.kind,
        "built_with": BUILDERS[board.toolchain.builder],
        "programs": cmake.programs_of(board),
        "build_needs": missing_names(cmake.required_tools(board)),
        "emulated": board.emulator is not None,
        "emulation_needs": missing_names(emulation),
        "flashed_with": board.flasher,
        "ports": [
            {"device": port.device, "usb_id": port.usb_id, "serial_number": port.serial_number}
            for port in connected_ports(board)
        ],
    }


def summary_row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    def ready(needs: Sequence[str]) -> str:
        return f"needs {', '.join(needs)}" if needs else "yes"

    memory = ", ".join(
        f"{region['name']} {region['bytes'] // 1024} KB" for region in entry["memory"]
    )
    ports = ", ".join(port["device"] for port in entry["ports"])
    return (
        entry["name"],
        entry["title"],
        memory or "-",
        entry["link"],
        f"{ready(entry['build_needs'])} ({entry['built_with']})",
        ", ".join(entry["programs"]) or "-",
        ready(entry["emulation_needs"]) if entry["emulated"] else "-",
        "yes" if entry["flashed_with"] else "-",
        ports or ("none" if entry["link"] == "serial" else "-"),
    )


def run(json_output: bool = False) -> int:
    """`rlt boards`: every board, its memory and link, and what can be done with it here."""
    from rltools_host.build.firmware import link_for_platformio
    from rltools_host.lines import columns, folded

    if (PROJECT.root / "platformio.ini").is_file() and PROJECT.is_elsewhere:
        with contextlib.suppress(OSError, RltError):  # PlatformIO will say that it is not there
            link_for_platformio(PROJECT.root)
    entries = [summary(board) for board in list_boards()]
    header = (
        "board",
        "what it is",
        "memory",
        "link",
        "build",
        "programs",
        "emulate",
        "flash",
        "connected",
    )
    rows = [header, *(summary_row(entry) for entry in entries)]
    print("\n".join(folded(rows, columns(sys.stdout))))
    if json_output:
        print(json.dumps({"boards": entries}))
    return 0


EXAMPLE = "boards"


def command(
    json_output: Json = False,
) -> None:
    leave(run(json_output))
