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

PT_LOAD = 1
SHF_WRITE, SHF_ALLOC = 1, 2


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


def sections(elf: bytes) -> list[tuple[int, int, int]]:
    """Flags, address and size of each section of a 32-bit ELF."""
    table, entry, count = table_of(elf, 32, 46)
    found = []
    for index in range(count):
        _, _, flags, address, _, size = struct.unpack_from("<IIIIII", elf, table + index * entry)
        found.append((flags, address, size))
    return found


def segments(elf: bytes) -> list[tuple[int, ...]]:
    """Kind, offset, virtual and physical address, and bytes in the file of each segment."""
    table, entry, count = table_of(elf, 28, 42)
    return [struct.unpack_from("<IIIII", elf, table + index * entry) for index in range(count)]


def table_of(elf: bytes, offset: int, sizes: int) -> tuple[int, int, int]:
    """Place of a table of the ELF, bytes of an entry, entries."""
    if elf[:6] != b"\x7fELF\x01\x01":
        raise BuildError(
            "the firmware is not a 32-bit little-endian ELF: delete build/ and build again"
        )
    return *struct.unpack_from("<I", elf, offset), *struct.unpack_from("<HH", elf, sizes)


def allocated_ranges(elf: bytes) -> list[tuple[int, int]]:
    """Address ranges [begin, end) that a 32-bit ELF occupies: sections, and their load images."""
    ranges = [
        (address, address + size)
        for flags, address, size in sections(elf)
        if flags & SHF_ALLOC and size
    ]
    for kind, _, virtual_address, physical_address, file_bytes in segments(elf):
        if kind == PT_LOAD and file_bytes and physical_address != virtual_address:
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


@dataclass(frozen=True)
class Footprint:
    """Bytes of a program as a board has it."""

    flash_bytes: int  # what is stored: code, constants, initial values
    ram_bytes: int  # of the memories that it writes to; with its code where that runs there


def footprint(board: Board, program: Path) -> Footprint | None:
    """Of firmware; None without a link map."""
    usage = {entry["name"]: int(entry["used_bytes"]) for entry in memory_usage(board, program)}
    if not usage:
        return None
    elf = program.read_bytes()
    loaded = [file_bytes for kind, _, _, _, file_bytes in segments(elf) if kind == PT_LOAD]
    written = [address for flags, address, size in sections(elf) if size and is_written(flags)]
    regions = linker_regions(program.with_suffix(".map").read_text())
    written_regions = {
        region.name
        for region in regions
        if any(0 <= address - region.origin < region.length for address in written)
    }
    memories = [memory.name for memory in board.memory if written_regions & {*memory.regions}]
    return Footprint(sum(loaded), sum(usage[name] for name in memories))


def is_written(flags: int) -> bool:
    return flags & (SHF_WRITE | SHF_ALLOC) == SHF_WRITE | SHF_ALLOC


def memory_lines(usage: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"  {entry['name']}  {entry['used_bytes']:>9,} of {entry['bytes']:,} bytes "
        f"({100 * entry['used_bytes'] / entry['bytes']:.1f} %)  {entry['use']}"
        for entry in usage
    ]
