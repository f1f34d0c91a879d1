"""Boards as data: the `rltools` section of boards/<board>.json."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from rltools_host.build.toolchains import Toolchain, load_toolchain
from rltools_host.errors import BuildError, UsageError, unknown_name
from rltools_host.files import parse_json
from rltools_host.tree import PROJECT, TREE

GPU = "gpu"  # a link: none, as the program is a GPU's
LINK_KINDS = ("process", "serial", "tcp", GPU)
POLICY_SLOT_BYTES = 32768  # in firmware/app/infer/program.h, for a board without storage
IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
ALL_EMULATED = "all-emulated"  # instead of a board's name


@dataclass(frozen=True)
class MemoryRegion:
    """A memory of the processor, with the regions of the linker script that lie in it.

    Code takes whole multiples of `code_step_bytes`.
    """

    name: str
    use: str
    bytes: int
    regions: tuple[str, ...]
    code_step_bytes: int = 1


@dataclass(frozen=True)
class Link:
    """The link to the board: a local process, an emulator's TCP connection or a serial port."""

    kind: str
    baud: int
    usb_ids: tuple[str, ...]


class Address(NamedTuple):
    """The MAVLink system and component of the board."""

    system: int
    component: int


@dataclass(frozen=True)
class EmulatedStorage:
    """A file as a memory of an emulated board: its size, and the emulator's arguments."""

    bytes: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class EmulatorDescription:
    program: str
    arguments: tuple[str, ...]
    storage: EmulatedStorage | None = None  # None: its policies end with the process
    counts_instructions: bool = True


@dataclass(frozen=True)
class Board:
    name: str
    firmware: str  # the board whose programs it runs: itself, or the one that it emulates otherwise
    file: Path  # the description
    title: str
    address: Address
    provides: tuple[str, ...]  # to experiments: by the toolchain and by itself
    takes_threads: bool  # whether the number of threads can be chosen
    device: str
    device_header: str
    toolchain: Toolchain
    flags: tuple[str, ...]  # the toolchain's and its own
    link_flags: tuple[str, ...]
    linker_script: str | None
    sources: tuple[str, ...]
    defines: tuple[str, ...]
    memory: tuple[MemoryRegion, ...]
    link: Link
    emulator: EmulatorDescription | None
    flasher: str | None
    bootloader_usb_ids: tuple[str, ...]
    report_every: int
    programs: tuple[str, ...] | None  # from firmware/build.json; None: all
    policy_slot_bytes: int  # of each of its two policy slots

    @property
    def is_flashed(self) -> bool:
        """Return whether firmware is written to the board; others are started with theirs."""
        return self.flasher is not None

    @property
    def has_storage(self) -> bool:
        """Return whether the board, where it is started here, can have a file as its storage."""
        if self.emulator is not None:
            return self.emulator.storage is not None
        return self.is_process

    @property
    def is_gpu(self) -> bool:
        """Return whether its program is a GPU's (build/gpu.py)."""
        return self.link.kind == GPU

    @property
    def is_process(self) -> bool:
        """Return whether its program is a process on this machine."""
        return self.link.kind == "process"

    @property
    def has_own_firmware(self) -> bool:
        return self.firmware == self.name

    @property
    def has_counter(self) -> bool:
        """Return whether the counter of its firmware counts what the firmware says."""
        return self.emulator is None or self.emulator.counts_instructions

    @property
    def definitions(self) -> tuple[str, ...]:
        """Return the preprocessor's definitions of every source for it (cmake/board.cmake)."""
        return (
            *self.defines,
            f'RLT_DEVICE_HEADER="{self.device_header}"',
            f"RLT_DEVICE={self.device}",
            f'RLT_BOARD_NAME="{self.name}"',
            f"RLT_SYSTEM={self.address.system}",
            f"RLT_COMPONENT={self.address.component}",
        )

    @property
    def program_suffix(self) -> str:
        return self.toolchain.program_suffix


def text(section: Mapping[str, Any], key: str) -> str:
    if not isinstance(section[key], str):
        raise ValueError(f"{key} is {json.dumps(section[key])}, not a text")
    return str(section[key])


def texts(section: Mapping[str, Any], key: str) -> tuple[str, ...]:
    listed = section[key]
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"{key} is not a list of names")
    return tuple(listed)


def names(section: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of names that may be left out."""
    return texts(section, key) if key in section else ()


def parse_emulator(section: Mapping[str, Any]) -> EmulatorDescription:
    storage = section.get("storage")
    return EmulatorDescription(
        program=text(section, "program"),
        arguments=texts(section, "arguments"),
        storage=EmulatedStorage(int(storage["bytes"]), texts(storage, "arguments"))
        if storage
        else None,
        counts_instructions=bool(section.get("counts_instructions", True)),
    )


def parse_board(name: str, section: Mapping[str, Any], file: Path) -> Board:
    """Read the `rltools` section; raise KeyError, TypeError or ValueError where it is wrong."""
    link = section["link"]
    emulator = section.get("emulator")
    toolchain = load_toolchain(text(section, "toolchain"))
    board = Board(
        name=name,
        firmware=text(section, "firmware_of") if "firmware_of" in section else name,
        file=file,
        title=text(section, "title"),
        address=Address(int(section["address"]["system"]), int(section["address"]["component"])),
        # The programs of a GPU are not the toolchain's.
        provides=(
            *(() if text(link, "kind") == GPU else toolchain.provides),
            *names(section, "provides"),
        ),
        takes_threads=bool(section.get("takes_threads", False)),
        device=text(section, "device"),
        device_header=text(section, "device_header"),
        toolchain=toolchain,
        flags=(*toolchain.flags, *texts(section, "flags")),
        link_flags=(*toolchain.link_flags, *names(section, "link_flags")),
        linker_script=text(section, "linker_script") if "linker_script" in section else None,
        sources=texts(section, "sources"),
        defines=names(section, "defines"),
        memory=tuple(
            MemoryRegion(
                name=text(region, "name"),
                use=text(region, "use"),
                bytes=int(region["bytes"]),
                regions=names(region, "regions") or (text(region, "name"),),
                code_step_bytes=int(region.get("code_step_bytes", 1)),
            )
            for region in section.get("memory", ())
        ),
        link=Link(
            kind=text(link, "kind"),
            baud=int(link.get("baud", 0)),
            usb_ids=tuple(usb_id.upper() for usb_id in names(link, "usb_ids")),
        ),
        emulator=parse_emulator(emulator) if emulator else None,
        flasher=text(section, "flasher") if "flasher" in section else None,
        bootloader_usb_ids=tuple(usb_id.upper() for usb_id in names(section, "bootloader_usb_ids")),
        report_every=int(section["report_every"]),
        programs=names(section, "programs") if "programs" in section else None,
        policy_slot_bytes=int(section.get("policy_slot_bytes", POLICY_SLOT_BYTES)),
    )
    for name in (*board.sources, board.linker_script or "", board.device_header):
        if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
            raise ValueError(f'"{name}" is not a path within the project')
    if not IDENTIFIER.fullmatch(board.device):
        raise ValueError(f'device "{board.device}" is not the name of a struct in C++')
    if not all(1 <= number <= 255 for number in board.address):
        raise ValueError("address: system and component are numbers from 1 to 255")
    if board.link.kind not in LINK_KINDS:
        raise ValueError(f'link kind "{board.link.kind}" is none of {", ".join(LINK_KINDS)}')
    if board.takes_threads and board.link.kind != "process":
        raise ValueError("takes_threads is for a board that is a process")
    return board


def board_files() -> dict[str, Path]:
    """Return the descriptions by the boards' names; the project's replace installed ones."""
    return {path.stem: path for path in PROJECT.files("boards", "*.json", TREE.boards)}


def board_names() -> list[str]:
    return list(board_files())


def load_board(name: str) -> Board:
    files = board_files()
    if name not in files:
        raise unknown_name("board", name, list(files))
    path = files[name]
    try:
        section = parse_json(path.read_bytes())["rltools"]
        if "firmware_of" in section:  # what it does not state is that board's
            whose = files[text(section, "firmware_of")]
            section = {**parse_json(whose.read_bytes())["rltools"], **section}
        return parse_board(name, section, path)
    except (KeyError, TypeError, ValueError, AttributeError, UsageError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BuildError(
            f"{path}: not a board description: {reason}; see docs/porting.md"
        ) from None


def list_boards() -> list[Board]:
    return [load_board(name) for name in board_names()]


def emulated_boards() -> list[Board]:
    """Return the emulated boards, which `all-emulated` stands for."""
    return [board for board in list_boards() if board.emulator is not None]
