"""The emulated processor under the application: its counter, its faults, and the memory it has."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from boards_under_test import EMULATED, EMULATED_BOARDS, compile_for, support_of
from rltools_host import paths
from rltools_host.boards.description import load_board
from rltools_host.boards.emulator import Emulator
from rltools_host.link.emulated import EmulatedLink
from rltools_host.link.framing import FrameDecoder

pytestmark = pytest.mark.device

PROGRAMS = Path("tests/device/programs")
each_board = pytest.mark.parametrize("name", EMULATED_BOARDS)


def build(name: str, program: str, folder: Path, defines: Iterable[str] = ()) -> Path:
    """A program of tests/device/programs for this board."""
    board = load_board(name)
    sources = [str(PROGRAMS / f"{program}.cpp"), *support_of(board)]
    return compile_for(board, sources, folder / f"{program}.elf", defines=defines)


def output_of(name: str, program: Path, end: bytes, limit_s: float = 30.0) -> bytes:
    """What the program sends on this board, up to `end` or the time limit."""
    with_link = EmulatedLink(Emulator(load_board(name), program, limit_s + 5), name)
    received = bytearray()
    with_link.write(b"!")  # the program waits for it
    deadline = time.monotonic() + limit_s
    try:
        while end not in received and time.monotonic() < deadline:
            received += with_link.read(0.5)
    finally:
        with_link.close()
    return bytes(received)


def output_of_fault(name: str, program: Path) -> bytes:
    """All that the program sends: the line falls silent after it."""
    with_link = EmulatedLink(Emulator(load_board(name), program, 35.0), name)
    received = bytearray()
    with_link.write(b"!")
    try:
        while part := with_link.read(1.0 if received else 30.0):
            received += part
    finally:
        with_link.close()
    return bytes(received)


def lines_of(name: str, program: Path, limit_s: float = 30.0) -> list[str]:
    return output_of(name, program, b".", limit_s).decode().split(".")[0].splitlines()


@each_board
def test_counter_counts_instructions(name: str, tmp_path: Path) -> None:
    lines = lines_of(name, build(name, "instruction_counter", tmp_path))
    rows = [tuple(map(int, line.split())) for line in lines]
    assert [expected for expected, _ in rows] == [2, 20, 2000, 200000, 60000000]
    overheads = [counted - expected for expected, counted in rows]
    # Reading the counter takes instructions too; a tick may be more than one of them.
    assert all(0 < overhead < 60 for overhead in overheads), rows
    assert max(overheads) - min(overheads) <= 2, rows


def test_math_and_random_numbers_have_the_hosts_bits(tmp_path: Path) -> None:
    """About a million arguments of each function; test_math.cpp compares the same on the host."""
    lines = lines_of(EMULATED, build(EMULATED, "math_sample", tmp_path), limit_s=120.0)
    names = re.findall(
        r'^    \{"(\w+)", ',
        (paths.REPOSITORY / "tests" / "lib" / "core" / "math_sample.h").read_text(),
        re.MULTILINE,
    )
    assert len(names) > 10
    assert lines == [f"{name} same" for name in names]


@each_board
def test_kernels_have_the_references_bits(name: str, tmp_path: Path) -> None:
    """Dense layers, ReLU and Adam, also where they are written in the processor's instructions."""
    lines = lines_of(name, build(name, "kernels", tmp_path), limit_s=120.0)
    assert len(lines) == 8 * 4 * 3 + 3  # shapes, shares of zeros, products; ReLU, Adam
    assert [line for line in lines if not line.endswith(" same")] == []


@pytest.mark.parametrize(
    ("fault", "status", "address"),
    [
        ("UNMAPPED_STORE=0x20080000", 0x82, 0x20080000),  # data access violation, address valid
        ("STORE_TO_CODE=0x1000", 0x82, 0x00001000),
        ("UNDEFINED_INSTRUCTION", 0x10000, None),
        ("STACK_OVERFLOW", 0x82, "below the stack"),
    ],
)
@each_board
def test_faults_are_reported(
    name: str,
    fault: str,
    status: int,
    address: int | str | None,
    tmp_path: Path,
    dialect: ModuleType,
) -> None:
    program = build(name, "fault", tmp_path, defines=[fault])
    messages = FrameDecoder(dialect).feed(output_of_fault(name, program))
    assert [message.get_type() for message in messages] == ["STATUSTEXT"]
    assert messages[0].severity == dialect.MAV_SEVERITY_EMERGENCY
    pattern = r"fault at ([0-9a-f]{8}), CFSR ([0-9a-f]{8}), address ([0-9a-f]{8})"
    match = re.fullmatch(pattern, messages[0].text)
    assert match is not None, messages[0].text
    at, told_status, told_address = (int(text, 16) for text in match.groups())
    assert at < 512 * 1024  # in ITCM
    assert told_status & status == status
    if address == "below the stack":
        assert 0x1FFF0000 < told_address < 0x20000000
    elif address is not None:
        assert told_address == address


def test_memory_regions_are_those_of_a_teensy() -> None:
    script = (paths.REPOSITORY / "boards" / "qemu-mps2.ld").read_text()
    regions = dict(
        re.findall(r"^  (\w+) +\(\w+\) *: ORIGIN = (\w+), LENGTH = ", script, re.MULTILINE)
    )
    assert regions["ITCM"] == "0x00000000"
    assert regions["DTCM"] == "0x20000000"
    assert regions["RAM2"] == "0x20200000"
    assert set(regions) == {"ITCM", "DTCM", "RAM2", "LOAD", "RAM1"}
    for name in ("ITCM", "DTCM", "RAM1", "RAM2"):
        assert re.search(rf"  {name} +\(\w+\) *: .*LENGTH = 512K", script)
