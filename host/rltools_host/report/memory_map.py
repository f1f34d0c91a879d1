"""What lies in a board's memories, part by part: from run.json, refined by the firmware's ELF."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.boards.description import load_board
from rltools_host.build import firmware, memory
from rltools_host.clock import microseconds_of
from rltools_host.errors import RltError

STACK_SECTIONS = (".stack", ".handler_stack")
DATA_SECTION = ".bss"  # learner, scratch and the little that the application keeps


@dataclass(frozen=True)
class MemoryPart:
    """Bytes of one purpose; `kind` is free, code, learner and so on."""

    kind: str
    name: str
    bytes: int


@dataclass(frozen=True)
class MemoryRegion:
    """A memory of the board; its parts fill it."""

    name: str
    bytes: int
    parts: tuple[MemoryPart, ...]


def memory_map(metadata: Mapping[str, Any], policy_bytes: int = 0) -> list[MemoryRegion]:
    """The memories of the board that a run was trained on, by its run.json; none for the host."""
    table = metadata.get("memory") or []
    if not table:
        return []
    identity = metadata.get("identity") or {}
    sections = sections_of_run(metadata)
    regions = []
    for number, entry in enumerate(table):
        used = int(entry["used_bytes"])
        holds_bulk = len(table) > 1 and number == len(table) - 1
        if holds_bulk:
            parts = bulk_parts(identity, policy_bytes)
        else:
            parts = fast_parts(identity, sections, used)
        regions.append(fill(str(entry["name"]), int(entry["bytes"]), used, parts))
    return regions


def fast_parts(
    identity: Mapping[str, Any], sections: Mapping[str, int], used: int
) -> list[MemoryPart]:
    """Code, learner, scratch and stack; in finer parts where the ELF's sections are known."""
    state = [
        MemoryPart(kind, kind, int(identity.get(f"{kind}_bytes") or 0))
        for kind in ("learner", "scratch")
    ]
    if not sections:
        return with_content(state)
    code, constants = sections.get(".text", 0), sections.get(".data", 0)
    stack = sum(sections.get(name, 0) for name in STACK_SECTIONS)
    data = sections.get(DATA_SECTION, 0)
    return with_content(
        [
            MemoryPart("code", "code", code),
            MemoryPart("padding", "rest of its banks", used - code - constants - stack - data),
            MemoryPart("constants", "constants", constants),
            *state,
            MemoryPart("other", "other data", data - sum(part.bytes for part in state)),
            MemoryPart("stack", "stack", stack),
        ]
    )


def bulk_parts(identity: Mapping[str, Any], policy_bytes: int) -> list[MemoryPart]:
    return with_content(
        [
            MemoryPart("replay", "replay buffer", int(identity.get("replay_bytes") or 0)),
            MemoryPart("policy", "policy image", policy_bytes),
        ]
    )


def with_content(parts: list[MemoryPart]) -> list[MemoryPart]:
    return [part for part in parts if part.bytes != 0]


def fill(name: str, size: int, used: int, parts: list[MemoryPart]) -> MemoryRegion:
    """Adds what is used otherwise, and what is free."""
    rest = used - sum(part.bytes for part in parts)
    if rest < 0 or any(part.bytes < 0 for part in parts):  # not the sizes of this firmware
        parts, rest = [], used
    if rest > 0:
        parts = [*parts, MemoryPart("other", "everything else" if parts else "in use", rest)]
    return MemoryRegion(name, size, (*parts, MemoryPart("free", "free", size - used)))


def sections_of_run(metadata: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of the sections of the run's firmware, if it is still there as it was."""
    board_name, experiment = str(metadata.get("board")), str(metadata.get("experiment"))
    try:
        board = load_board(board_name)
        program = firmware.program_path(board, experiment)
        if not program.is_file() or program.stat().st_mtime > latest_start_s(metadata):
            return {}
        if memory.memory_usage(board, program) != metadata.get("memory"):
            return {}
        return section_sizes(program)
    except (RltError, OSError):
        return {}


def latest_start_s(metadata: Mapping[str, Any]) -> float:
    """When the run was last started or resumed, in seconds since 1970; firmware is older."""
    sessions = metadata.get("sessions") or [metadata]
    try:
        started_us = microseconds_of(str(sessions[-1].get("started")))
    except ValueError:
        return -math.inf
    return started_us / 1e6 + 1  # run.json has whole seconds


def section_sizes(program: Path) -> dict[str, int]:
    """Size of each section of a 32-bit little-endian ELF."""
    elf = program.read_bytes()
    (table_offset,) = struct.unpack_from("<I", elf, 32)
    entry_size, count, names_index = struct.unpack_from("<HHH", elf, 46)
    headers = [
        struct.unpack_from("<IIIIII", elf, table_offset + index * entry_size)
        for index in range(count)
    ]
    names_offset = headers[names_index][4]
    sizes = {}
    for name_offset, _, _, _, _, size in headers:
        start = names_offset + name_offset
        sizes[elf[start : elf.index(b"\0", start)].decode()] = size
    return sizes
