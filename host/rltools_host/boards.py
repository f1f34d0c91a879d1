"""Boards as data: the `rltools` section of boards/<board>.json, and which are connected."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.errors import BuildError, unknown_name
from rltools_host.paths import BOARDS_DIRECTORY

TOOLCHAINS = ("host", "arm-none-eabi", "platformio")
LINK_KINDS = ("process", "pty", "serial")


@dataclass(frozen=True)
class MemoryRegion:
    """A memory of the processor; `regions` names the linker script's regions that lie in it."""

    name: str
    use: str
    bytes: int
    regions: tuple[str, ...]


@dataclass(frozen=True)
class Link:
    """How to reach the board: a local process, an emulator's pseudo-terminal or a serial port."""

    kind: str
    baud: int
    usb_ids: tuple[str, ...]


@dataclass(frozen=True)
class Emulator:
    program: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Board:
    name: str
    title: str
    bit_identical: bool  # whether a run ends in the bits that it has on the other boards
    device: str
    device_header: str
    toolchain: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    libraries: tuple[str, ...]  # of the system, linked by CMake; names in toolchain.TOOLS
    linker_script: str | None
    sources: tuple[str, ...]
    defines: tuple[str, ...]
    memory: tuple[MemoryRegion, ...]
    link: Link
    emulator: Emulator | None
    flasher: str | None
    bootloader_usb_ids: tuple[str, ...]
    report_every: int

    @property
    def built_by_cmake(self) -> bool:
        """Whether CMake builds this board; the others are built by their flasher's own tool."""
        return self.toolchain != "platformio"

    @property
    def program_suffix(self) -> str:
        return "" if self.toolchain == "host" else ".elf"


@dataclass(frozen=True)
class ConnectedPort:
    device: str
    usb_id: str
    serial_number: str | None


def parse_board(name: str, section: Mapping[str, Any]) -> Board:
    """Reads the `rltools` section; KeyError, TypeError or ValueError where it is wrong."""
    link = section["link"]
    emulator = section.get("emulator")
    board = Board(
        name=name,
        title=section["title"],
        bit_identical=bool(section.get("bit_identical", True)),
        device=section["device"],
        device_header=section["device_header"],
        toolchain=section["toolchain"],
        flags=tuple(section["flags"]),
        link_flags=tuple(section["link_flags"]),
        libraries=tuple(section.get("libraries", [])),
        linker_script=section.get("linker_script"),
        sources=tuple(section["sources"]),
        defines=tuple(section["defines"]),
        memory=tuple(
            MemoryRegion(
                name=region["name"],
                use=region["use"],
                bytes=int(region["bytes"]),
                regions=tuple(region.get("regions", [region["name"]])),
            )
            for region in section["memory"]
        ),
        link=Link(
            kind=link["kind"],
            baud=int(link.get("baud", 0)),
            usb_ids=tuple(usb_id.upper() for usb_id in link.get("usb_ids", [])),
        ),
        emulator=Emulator(emulator["program"], tuple(emulator["arguments"])) if emulator else None,
        flasher=section.get("flasher"),
        bootloader_usb_ids=tuple(
            usb_id.upper() for usb_id in section.get("bootloader_usb_ids", [])
        ),
        report_every=int(section["report_every"]),
    )
    if board.toolchain not in TOOLCHAINS:
        raise ValueError(f'toolchain "{board.toolchain}" is none of {", ".join(TOOLCHAINS)}')
    if board.link.kind not in LINK_KINDS:
        raise ValueError(f'link kind "{board.link.kind}" is none of {", ".join(LINK_KINDS)}')
    return board


def board_names(directory: Path = BOARDS_DIRECTORY) -> list[str]:
    return sorted(path.stem for path in directory.glob("*.json"))


def load_board(name: str, directory: Path = BOARDS_DIRECTORY) -> Board:
    if name not in board_names(directory):
        raise unknown_name("board", name, board_names(directory))
    path = directory / f"{name}.json"
    try:
        return parse_board(name, json.loads(path.read_text(encoding="utf-8"))["rltools"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BuildError(
            f"{path}: not a board description: {reason}; see docs/porting.md"
        ) from None


def list_boards(directory: Path = BOARDS_DIRECTORY) -> list[Board]:
    return [load_board(name, directory) for name in board_names(directory)]


def connected_ports(board: Board) -> list[ConnectedPort]:
    """Serial ports whose USB id is one of the board's."""
    if not board.link.usb_ids:
        return []
    from serial.tools import list_ports

    ports = []
    for port in list_ports.comports():
        if port.vid is None or port.pid is None:
            continue
        usb_id = f"{port.vid:04X}:{port.pid:04X}"
        if usb_id in board.link.usb_ids:
            ports.append(ConnectedPort(port.device, usb_id, port.serial_number))
    return sorted(ports, key=lambda port: port.device)


def find_connected(board: Board) -> list[str]:
    """Names of the serial ports on which this board is connected, such as /dev/ttyACM0."""
    return [port.device for port in connected_ports(board)]


def missing_tools(names: Sequence[str]) -> list[str]:
    from rltools_host import toolchain

    return [name for name in names if toolchain.TOOLS[name].path() is None]


def summary(board: Board) -> dict[str, Any]:
    """What `rlt boards --json` says about a board."""
    from rltools_host import build

    build_tools = build.required_tools(board) if board.built_by_cmake else ()
    return {
        "name": board.name,
        "title": board.title,
        "device": board.device,
        "bit_identical": board.bit_identical,
        "memory": [
            {"name": region.name, "bytes": region.bytes, "use": region.use}
            for region in board.memory
        ],
        "link": board.link.kind,
        "built_with": "CMake" if board.built_by_cmake else "PlatformIO",
        "build_needs": missing_tools(build_tools),
        "emulated": board.emulator is not None,
        "emulation_needs": missing_tools([board.emulator.program] if board.emulator else []),
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
        ready(entry["emulation_needs"]) if entry["emulated"] else "-",
        "yes" if entry["flashed_with"] else "-",
        ports or ("none" if entry["link"] == "serial" else "-"),
    )


def run(json_output: bool = False) -> int:
    """`rlt boards`: every board, its memory and link, and what can be done with it here."""
    from rltools_host.doctor import aligned

    entries = [summary(board) for board in list_boards()]
    header = ("board", "what it is", "memory", "link", "build", "emulate", "flash", "connected")
    print("\n".join(aligned([header, *(summary_row(entry) for entry in entries)])))
    if json_output:
        print(json.dumps({"boards": entries}))
    return 0
