"""Memories of a board: what its link map and a small ELF say, worked out by hand."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.build.firmware import (
    Footprint,
    footprint,
    memory_lines,
    memory_usage,
    section_sizes,
)
from rltools_host.errors import BuildError, UsageError

LINK_MAP = """
BEFORE           0x00000001         0x00000002         r
Memory Configuration

Name             Origin             Length             Attributes
FLASH            0x60000000         0x00001000         xr
RAM              0x20000000         0x00000200         xrw
ITCM             0x00000000         0x00000100
*default*        0x00000000         0xffffffff

Linker script and memory map
AFTER            0x00000001         0x00000002         r
"""
READ, WRITTEN, FOR_DEBUGGERS = 2, 3, 1  # flags: allocated, and written to as well
SECTIONS = [
    (".text", READ, 0x60000000, 0x80),
    (".data", WRITTEN, 0x20000000, 0x40),
    (".behind", WRITTEN, 0x20000200, 0x10),  # its region
    (".empty", WRITTEN, 0x60000010, 0),
    (".debug", FOR_DEBUGGERS, 0x60000020, 4),
    (".const", READ, 0x60000000, 0x7F),
]
SEGMENTS = [(1, 0, 0x60000000, 0x60000000, 0x80), (1, 0, 0x20000000, 0x60000080, 0x20), (4,) * 5]


def program_in(folder: Path) -> Path:
    header = 52
    segments = b"".join(struct.pack("<5I12x", *each) for each in SEGMENTS)
    names = b"\0".join(name.encode() for name, *_ in SECTIONS) + b"\0"
    sections = bytes(40)
    for name, flags, address, size in SECTIONS:
        place = names.index(name.encode())
        sections += struct.pack("<6I16x", place, 1, flags, address, 0, size)
    end = header + len(segments) + len(sections) + 40
    sections += struct.pack("<6I16x", len(names) - 1, 3, 0, 0, end, len(names))
    elf = bytearray(header) + segments + sections + names
    elf[:7] = b"\x7fELF\x01\x01\x01"
    struct.pack_into("<II", elf, 28, header, header + len(segments))
    struct.pack_into("<5H", elf, 42, 32, len(SEGMENTS), 40, len(SECTIONS) + 2, len(SECTIONS) + 1)
    program = folder / "it.elf"
    program.write_bytes(elf)
    program.with_suffix(".map").write_text(LINK_MAP)
    return program


def memory(name: str, size: int, *regions: str) -> Any:
    return SimpleNamespace(name=name, use=f"for {name}", bytes=size, regions=regions)


def board(*memories: Any, link_map: bool = True) -> Any:
    toolchain = SimpleNamespace(link_map=link_map)
    return SimpleNamespace(name="b", linker_script="b.ld", toolchain=toolchain, memory=memories)


def test_a_memory_is_used_up_to_its_last_byte(tmp_path: Path) -> None:
    program = program_in(tmp_path)
    flash, ram = memory("FLASH", 0xA0, "FLASH"), memory("RAM", 0x200, "RAM", "ITCM")
    assert memory_usage(board(flash, ram), program) == [
        # The initial values of what is written lie behind the code.
        {"name": "FLASH", "use": "for FLASH", "used_bytes": 0xA0, "bytes": 0xA0},
        {"name": "RAM", "use": "for RAM", "used_bytes": 0x40, "bytes": 0x200},
    ]
    assert memory_usage(board(flash, link_map=False), program) == []
    assert memory_usage(board(), program) == []
    with pytest.raises(UsageError, match=r"boards/b\.json: b\.ld has no region DTCM"):
        memory_usage(board(memory("RAM", 9, "DTCM")), program)
    small = memory("FLASH", 0x9F, "FLASH")
    with pytest.raises(BuildError, match=r"it\.elf needs 160 bytes in FLASH, but b has 159: make"):
        memory_usage(board(small), program)
    assert memory_lines(memory_usage(board(memory("FLASH", 0x140, "FLASH")), program)) == [
        "  FLASH        160 of 320 bytes (50.0 %)  for FLASH"
    ]
    assert section_sizes(program)[".data"] == 0x40


@pytest.mark.parametrize("content", [b"", b"not an ELF", b"cut off"])
def test_what_is_no_elf_is_named(tmp_path: Path, content: bytes) -> None:
    program = program_in(tmp_path)
    program.write_bytes(program.read_bytes()[:90] if content == b"cut off" else content)
    with pytest.raises(BuildError, match=r"it\.elf is not the firmware's ELF \(.+\): delete build"):
        memory_usage(board(memory("FLASH", 0xA0, "FLASH")), program)


def test_a_footprint_is_what_is_stored_and_what_is_written_to(tmp_path: Path) -> None:
    program = program_in(tmp_path)
    flash, ram = memory("FLASH", 0x1000, "FLASH"), memory("RAM", 0x200, "RAM")
    assert footprint(board(flash, ram), program) == Footprint(0x80 + 0x20, 0x40)
    both = memory("BOTH", 0x2000, "RAM", "FLASH")  # its code runs there, too
    assert footprint(board(both), program) == Footprint(0xA0, 0x40 + 0xA0)
    assert footprint(board(), program) is None
