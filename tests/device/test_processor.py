"""The emulated processor under the application: its counter, its faults, and the memory it has."""

from __future__ import annotations

import random
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from boards_under_test import (
    EMULATED,
    EMULATED_BOARDS,
    PROCESSOR_BOARDS,
    TRAINING_BOARDS,
    compile_for,
    compile_support,
    computes_on_integers,
    each,
)
from rltools_host.boards.board_link import EmulatedLink, Emulator
from rltools_host.boards.framing import FrameDecoder
from rltools_host.boards.session import BoardSession
from rltools_host.build.boards import load_board
from rltools_host.tree import TREE

PROGRAMS = Path("tests/device/programs")
each_processor = pytest.mark.parametrize("name", each(PROCESSOR_BOARDS))


class Builder:
    """Builds programs of tests/device/programs; what all programs of a board link is compiled
    once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.support: dict[str, list[Path]] = {}

    def __call__(self, name: str, program: str, defines: Iterable[str] = ()) -> Path:
        board = load_board(name)
        if name not in self.support:
            (self.folder / name).mkdir(exist_ok=True)
            self.support[name] = compile_support(board, self.folder / name)
        output = self.folder / name / f"{program}.elf"
        source = str(PROGRAMS / f"{program}.cpp")
        return compile_for(board, [source], output, defines, self.support[name])


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("programs"))


@contextmanager
def running(name: str, program: Path, limit_s: float = 120.0) -> Iterator[EmulatedLink]:
    """The board with this program, which has begun."""
    link = EmulatedLink(Emulator(load_board(name), program, limit_s), name)
    try:
        yield link
    finally:
        link.close()


def start(link: EmulatedLink) -> None:
    """The programs ask for a byte before they begin."""
    received = b""
    while b"?" not in received:
        part = link.read(30.0)
        assert part, "the program does not ask"
        received += part
    link.write(b"!")


def output_of(name: str, program: Path, end: bytes, limit_s: float = 30.0) -> bytes:
    """What the program sends on this board, up to `end` or the time limit."""
    received = b""
    deadline = time.monotonic() + limit_s
    with running(name, program, limit_s + 35) as link:
        start(link)
        while end not in received and time.monotonic() < deadline:
            received += link.read(0.5)
    return received.lstrip(b"?")


def messages_of_fault(name: str, program: Path, dialect: ModuleType) -> list[Any]:
    """What the program sends: a message at least, however slow the emulator is, and what comes soon
    after it."""
    decoder = FrameDecoder(dialect)
    messages: list[Any] = []
    deadline = time.monotonic() + 90.0
    with running(name, program) as link:
        start(link)
        while not messages and time.monotonic() < deadline:
            messages += decoder.feed(link.read(0.5))
        while part := link.read(0.3):
            messages += decoder.feed(part)
    return messages


def lines_of(name: str, program: Path, limit_s: float = 30.0) -> list[str]:
    return output_of(name, program, b".", limit_s).decode().split(".")[0].splitlines()


@each_processor
def test_counter_counts_instructions(name: str, build: Builder) -> None:
    lines = lines_of(name, build(name, "instruction_counter"))
    rows = [tuple(map(int, line.split())) for line in lines]
    assert [expected for expected, _ in rows] == [2, 20, 2000, 200000, 60000000]
    overheads = [counted - expected for expected, counted in rows]
    # Reading the counter takes instructions too; a tick may be more than one of them.
    assert all(0 < overhead < 60 for overhead in overheads), rows
    assert max(overheads) - min(overheads) <= 2, rows


@pytest.mark.all
def test_math_and_random_numbers_have_the_hosts_bits(build: Builder) -> None:
    """About a million arguments of each function; test_math.cpp compares the same on the host."""
    lines = lines_of(EMULATED, build(EMULATED, "math_sample"), limit_s=120.0)
    names = re.findall(
        r'^    \{"(\w+)", ',
        (TREE.root / "tests" / "lib" / "core" / "math_sample.h").read_text(),
        re.MULTILINE,
    )
    assert len(names) > 10
    assert lines == [f"{name} same" for name in names]


@pytest.mark.all  # of every day: test_training_on_board.py
@pytest.mark.parametrize(
    "name", each(name for name in TRAINING_BOARDS if not computes_on_integers(load_board(name)))
)
def test_kernels_have_the_references_bits(name: str, build: Builder) -> None:
    """Dense layers, ReLU and Adam, also where they are written in the processor's instructions."""
    lines = lines_of(name, build(name, "kernels"), limit_s=120.0)
    assert len(lines) == 8 * 4 * 3 + 3  # shapes, shares of zeros, products; ReLU, Adam
    assert [line for line in lines if not line.endswith(" same")] == []


@dataclass(frozen=True)
class Faults:
    """What a family of processors says of a fault, and the status of each."""

    text: str
    undefined: int
    access: int
    is_mask: bool = False  # whether other bits of the status may be set

    def matches(self, told: int, expected: int) -> bool:
        return (told & expected if self.is_mask else told) == expected


NUMBER = "([0-9a-f]{8})"
FAULTS = {
    "arm": Faults(
        text=f"fault at {NUMBER}, CFSR {NUMBER}, address {NUMBER}",
        undefined=0x10000,
        access=0x82,  # data access violation, address valid
        is_mask=True,
    ),
    "riscv": Faults(
        text=f"fault at {NUMBER}, mcause {NUMBER}, mtval {NUMBER}",
        undefined=2,
        access=7,  # store access fault
    ),
}
# Of each linker script: where its code is, and the memory that begins with the stack.
MEMORIES = {
    "boards/qemu-mps2.ld": (range(0x80000), range(0x20000000, 0x20080000)),
    "boards/qemu-stm32f405.ld": (
        range(0x08000000, 0x08100000),
        range(0x20000000, 0x20020000),
    ),
    "boards/qemu-virt.ld": (range(0x20000000, 0x20400000), range(0x80000000, 0x80100000)),
}


@pytest.mark.parametrize(
    "fault", ["UNMAPPED_STORE", "STORE_TO_CODE", "UNDEFINED_INSTRUCTION", "STACK_OVERFLOW"]
)
@each_processor
def test_faults_are_reported(name: str, fault: str, build: Builder, dialect: ModuleType) -> None:
    board = load_board(name)
    family = FAULTS[board.toolchain.processor]
    code, memory = MEMORIES[str(board.linker_script)]
    stores = {"UNMAPPED_STORE": memory.stop, "STORE_TO_CODE": code.start + 0x1000}
    definition = f"{fault}={stores[fault]:#x}" if fault in stores else fault
    program = build(name, "fault", [definition])
    messages = messages_of_fault(name, program, dialect)
    assert [message.get_type() for message in messages] == ["STATUSTEXT"]
    assert messages[0].severity == dialect.MAV_SEVERITY_EMERGENCY
    match = re.fullmatch(family.text, messages[0].text)
    assert match is not None, messages[0].text
    at, status, address = (int(text, 16) for text in match.groups())
    # A Cortex-M pushes where it was on that very stack: 0 is unknown.
    assert at in code or (fault, at) == ("STACK_OVERFLOW", 0)
    expected = family.undefined if fault == "UNDEFINED_INSTRUCTION" else family.access
    assert family.matches(status, expected), messages[0].text
    if fault == "STACK_OVERFLOW":
        assert memory.start - 0x10000 < address < memory.start
    elif fault in stores:
        assert address == stores[fault]


@pytest.mark.parametrize("name", each([*PROCESSOR_BOARDS, "unicorn-cortex-m7"]))
def test_bytes_that_arrive_while_nobody_reads_are_kept(name: str, build: Builder) -> None:
    """More than the queue between the port's interrupt and the program holds."""
    with running(name, build(name, "flood")) as link:
        start(link)
        received = b""
        while not received.endswith(b"ready\n"):
            received += link.read(5.0)
        data = random.Random(5).randbytes(4000)
        link.write(data)
        received = b""
        while not received.endswith(b"."):
            part = link.read(30.0)
            assert part, received
            received += part
    assert received.decode() == f"4000 {zlib.crc32(data)}."


@pytest.mark.parametrize("name", each(EMULATED_BOARDS))
def test_a_node_says_who_it_is(name: str, build: Builder, dialect: ModuleType) -> None:
    """Identity, heartbeats and stack use, also on boards that training does not fit on."""
    with running(name, build(name, "node")) as link:
        session, identity = BoardSession.connect(link, dialect)
        assert (identity.board, identity.device) == (name, load_board(name).device)
        assert identity.counts_instructions
        with session.connection.open_queue("HEARTBEAT") as heartbeats:
            assert heartbeats.wait(60.0) is not None
        use = session.node.stack_use()
    assert 512 < use["stack_peak"] <= use["stack"] * 3 // 4, use
