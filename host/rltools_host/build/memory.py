"""What firmware occupies in a board's memories, from its ELF and link map."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.boards.description import Board
from rltools_host.errors import BuildError, UnknownNameError


@dataclass(frozen=True)
class LinkerRegion:
    name: str
    origin: int
    length: int


def linker_regions(link_map: str) -> list[LinkerRegion]:
    """The regions of a link map's section "Memory Configuration"."""
    table = link_map.partition("Memory Configuration")[2].partition("Linker script and memory map")[
        0
    ]
    rows = re.findall(r"^(\S+)\s+(0x[0-9a-f]+)\s+(0x[0-9a-f]+)", table, re.MULTILINE)
    return [
        LinkerRegion(name, int(origin, 16), int(length, 16))
        for name, origin, length in rows
        if name != "*default*"
    ]


def allocated_ranges(elf: bytes) -> list[tuple[int, int]]:
    """Address ranges [begin, end) that a 32-bit ELF occupies: sections, and their load images."""
    if elf[:6] != b"\x7fELF\x01\x01":
        raise BuildError(
            "the firmware is not a 32-bit little-endian ELF: delete build/ and build again"
        )
    program_offset, section_offset = struct.unpack_from("<II", elf, 28)
    entry_sizes = struct.unpack_from("<HHHH", elf, 42)
    program_size, program_count, section_size, section_count = entry_sizes
    ranges = []
    for index in range(section_count):
        _, _, flags, address, _, size = struct.unpack_from(
            "<IIIIII", elf, section_offset + index * section_size
        )
        if flags & 2 and size:  # SHF_ALLOC
            ranges.append((address, address + size))
    for index in range(program_count):
        kind, _, virtual_address, physical_address, file_bytes = struct.unpack_from(
            "<IIIII", elf, program_offset + index * program_size
        )
        if kind == 1 and file_bytes and physical_address != virtual_address:  # PT_LOAD
            ranges.append((physical_address, physical_address + file_bytes))
    return ranges


def memory_usage(board: Board, program: Path) -> list[dict[str, Any]]:
    """Bytes in each memory of the board: name, use, used_bytes, bytes; empty without a link map."""
    if not board.toolchain.link_map or not board.memory:
        return []
    ranges = allocated_ranges(program.read_bytes())
    regions = {
        region.name: region for region in linker_regions(program.with_suffix(".map").read_text())
    }
    usage = []
    for memory in board.memory:
        used_bytes = 0
        for name in memory.regions:
            if name not in regions:
                raise UnknownNameError(
                    f"boards/{board.name}.json: {board.linker_script} has no region {name}"
                )
            region = regions[name]
            ends = [end for begin, end in ranges if 0 <= begin - region.origin < region.length]
            used_bytes += max(ends, default=region.origin) - region.origin
        usage.append(
            {
                "name": memory.name,
                "use": memory.use,
                "used_bytes": used_bytes,
                "bytes": memory.bytes,
            }
        )
        if used_bytes > memory.bytes:
            raise BuildError(
                f"{program.name} needs {used_bytes:,} bytes in {memory.name}, but {board.name} has "
                f"{memory.bytes:,}: make the network, the batch or the replay buffer smaller"
            )
    return usage


def memory_lines(usage: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"  {entry['name']}  {entry['used_bytes']:>9,} of {entry['bytes']:,} bytes "
        f"({100 * entry['used_bytes'] / entry['bytes']:.1f} %)  {entry['use']}"
        for entry in usage
    ]
