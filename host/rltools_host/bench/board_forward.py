"""`rlt bench inference --board all-emulated`: one forward pass of 13-64-64-4 on emulated boards.

Instructions are counted, not time: a real processor issues up to two in a cycle, and stalls.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from rltools_host.bench import harness
from rltools_host.bench.harness import MeasurementError, Row
from rltools_host.boards.description import ALL_EMULATED, Board, emulated_boards, load_board
from rltools_host.build import cmake
from rltools_host.errors import RltError, UsageError
from rltools_host.lines import aligned
from rltools_host.link.board_link import open_board_link
from rltools_host.link.transport import Link
from rltools_host.tree import PROJECT

TARGET = "bench-forward"
NETWORK = "13-64-64-4"
LIMIT_S = 120.0
LARGEST_DIFFERENCE = 1e-5  # of another order of additions
REQUIREMENTS = harness.PROGRAMS_DIRECTORY / "cmsis_dsp.txt"
# Where the multiply-adds of a pass are, by a part of the function's symbol.
HOT_LOOPS = {"optimised": "accumulate_terms", "cmsis-dsp": "arm_mat_vec_mult_f32"}
OURS = ("generic", "optimised", "policy image")


class Estimate(TypedDict):
    """A hot loop, and llvm-mca's cycles of a multiply-add."""

    loop: str
    multiply_adds: int
    cortex_m7_cycles: float | None
    cortex_m4_cycles: float | None


class OfBoard(TypedDict):
    board: str
    rows: list[Row]
    left_out: str | None
    estimates: list[Estimate]


class BoardForward(TypedDict):
    """What `--json` prints."""

    network: str
    unit: str
    results: list[OfBoard]


def run(board_name: str, dsp: bool = True) -> BoardForward:
    """Measures on one board or all emulated ones, and prints tables."""
    results: list[OfBoard] = []
    for board in chosen_boards(board_name):
        reason = None
        sources: Path | None = None
        cortex_m = board.toolchain.cortex_m
        if dsp and cortex_m:
            try:
                sources = dsp_sources()
            except RltError as error:
                reason = str(error)
        rows = measure(board, sources)
        found = estimates(board) if cortex_m else []
        results.append({"board": board.name, "rows": rows, "left_out": reason, "estimates": found})
    document: BoardForward = {"network": NETWORK, "unit": "guest instructions", "results": results}
    print("\n".join(lines(document)))
    return document


def chosen_boards(name: str) -> list[Board]:
    emulated = emulated_boards()
    if name == ALL_EMULATED:
        return [b for b in emulated if not cmake.missing_optional_tools(b, to_run=True)]
    board = load_board(name)
    if board.emulator is None:
        raise UsageError(
            f"{board.name} is not emulated, and instructions are counted by an emulator: "
            f"choose {ALL_EMULATED} or one of {', '.join(known.name for known in emulated)}"
        )
    return [board]


def dsp_sources(directory: Path | None = None) -> Path:
    """The folder of CMSIS-DSP's sources, fetched where they are not there."""
    directory = directory or PROJECT.benchmarks / "cmsis-dsp"
    stamp = directory / "rlt-requirements.txt"
    if stamp.is_file() and stamp.read_bytes() == REQUIREMENTS.read_bytes():
        return directory
    print("Fetching CMSIS-DSP for comparison", file=sys.stderr)
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as temporary:
        pip = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps"]
        options = ["--disable-pip-version-check", "--no-binary", "cmsisdsp", "--require-hashes"]
        # pip asks a source distribution's build for its name and version, which needs no isolation
        # from what that build installs; a failure leaves the archive, whose hash was checked.
        command = [*pip, *options, "--dest", temporary, "-r", str(REQUIREMENTS)]
        harness.install("CMSIS-DSP", command)
        archives = list(Path(temporary).glob("*.tar.gz"))
        if len(archives) != 1:
            raise harness.MeasurementError("CMSIS-DSP came without its sources")
        with tarfile.open(archives[0]) as archive:
            # Python 3.11 has no filters before 3.11.4.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(Path(temporary) / "sources")
        (unpacked,) = (Path(temporary) / "sources").iterdir()
        shutil.move(unpacked, directory)
    stamp.write_bytes(REQUIREMENTS.read_bytes())
    return directory


def program_of(board: Board) -> Path:
    tree = PROJECT.board_build(board.name)
    return tree / "bench" / f"forward{board.program_suffix}"


def estimates(board: Board) -> list[Estimate]:
    """Of the loops in the program that was measured."""
    objdump = f"{board.toolchain.prefix}objdump"
    return loops_of(objdump, program_of(board), HOT_LOOPS)


def measure(board: Board, sources: Path | None) -> list[Row]:
    options = {"RLT_CMSIS_DSP": str(sources) if sources is not None else ""}
    cmake.build_targets(board, [TARGET], options=options)
    link = open_board_link(board, None, program_of(board), "")
    try:
        return checked(board, [json.loads(line) for line in output_of(link).splitlines()])
    finally:
        link.close()


def output_of(link: Link) -> str:
    """What the program prints, without the question that it begins with and the empty object."""
    received = b""
    deadline = time.monotonic() + LIMIT_S
    while b"?" not in received and time.monotonic() < deadline:
        received += link.read(0.5)
    link.write(b"!")
    while b"{}\n" not in received:
        if time.monotonic() > deadline:
            raise harness.MeasurementError(f"no end of the measurement within {LIMIT_S:.0f} s")
        received += link.read(0.5)
    return received.decode().lstrip("?").removesuffix("{}\n")


def checked(board: Board, rows: list[Row]) -> list[Row]:
    """Ours have the reference's bits, others come close; who does not is not compared."""
    reference = {
        (row["hidden"], row["input"]): row["output_crc32"]
        for row in rows
        if row["implementation"] == "generic"
    }
    for row in rows:
        row["difference"] = row.pop("difference_1e9") / 1e9
        ours = row["implementation"] in OURS
        same_bits = row["output_crc32"] == reference[(row["hidden"], row["input"])]
        if (ours and not same_bits) or row["difference"] > LARGEST_DIFFERENCE:
            raise harness.MeasurementError(
                f"{row['implementation']} computes something else on {board.name}: "
                f"off by {row['difference']:.2g}"
            )
    return rows


def lines(document: BoardForward) -> list[str]:
    """What a person reads: a table for each board."""
    text = [f"One forward pass of {NETWORK} with a tanh output, in guest instructions (not time)"]
    for result in document["results"]:
        cases = list(dict.fromkeys((row["hidden"], row["input"]) for row in result["rows"]))
        table = [(result["board"], *(f"{hidden}, {given}" for hidden, given in cases))]
        by_implementation: dict[str, dict[tuple[str, str], int]] = {}
        for row in result["rows"]:
            counts = by_implementation.setdefault(row["implementation"], {})
            counts[(row["hidden"], row["input"])] = row["counts"]
        for implementation, counts in by_implementation.items():
            table.append((implementation, *(f"{counts[case]:,}" for case in cases)))
        text += ["", *aligned(table)]
        if result["left_out"]:
            text.append(f"without CMSIS-DSP: {result['left_out']}")
        if result["estimates"]:
            text += ["", *estimate_lines(result["estimates"])]
    return text


def estimate_lines(rows: list[Estimate]) -> list[str]:
    def cell(value: float | None) -> str:
        return "llvm-mca is not installed" if value is None else f"{value:.2f}"

    table = [("estimated cycles a multiply-add in the hot loop", "Cortex-M7", "Cortex-M4")]
    for row in rows:
        table.append((row["loop"], cell(row["cortex_m7_cycles"]), cell(row["cortex_m4_cycles"])))
    return aligned(table)


INSTRUCTION = re.compile(r"\s*([0-9a-f]+):\s+([a-z][\w.]*)\s*(.*)")
SYMBOL = re.compile(r"[0-9a-f]+ <(.*)>:")
BRANCH = re.compile(r"b(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?(\.[nw])?$")
FUSED = ("vfma.f32", "vmla.f32")
TAKEN_BRANCH_CYCLES = 4  # 1 + P, and P is 1 to 3
MCA = "llvm-mca"
MCA_OPTIONS = (
    "-mtriple=thumbv7em-none-eabihf",
    "-mcpu=cortex-m7",
    "-mattr=+vfp4,+fp-armv8d16",
    "-iterations=100",
)


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str
    operands: str

    @property
    def is_branch(self) -> bool:
        return BRANCH.match(self.name) is not None

    @property
    def target(self) -> int:
        return int(self.operands.split()[0], 16)


@dataclass(frozen=True)
class Loop:
    """The innermost loop of a function with the most multiply-adds, its branch included."""

    instructions: tuple[Instruction, ...]

    @property
    def multiply_adds(self) -> int:
        return sum(instruction.name in FUSED for instruction in self.instructions)


def functions(disassembly: str) -> dict[str, list[Instruction]]:
    """The instructions of each symbol, from `objdump -d --no-show-raw-insn`."""
    found: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in disassembly.splitlines():
        if match := SYMBOL.match(line):
            current = found.setdefault(match[1], [])
        elif match := INSTRUCTION.match(line):
            operands = re.sub(r"\s*[@;].*", "", match[3]).strip()
            current.append(Instruction(int(match[1], 16), match[2], operands))
    return found


def disassemble(objdump: str, program: Path) -> dict[str, list[Instruction]]:
    command = [objdump, "-d", "--no-show-raw-insn", str(program)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise MeasurementError(f"{program} cannot be disassembled: {result.stderr.strip()}")
    return functions(result.stdout)


def hot_loop(instructions: Sequence[Instruction]) -> Loop:
    loops = []
    for end, instruction in enumerate(instructions):
        if not instruction.is_branch or instruction.target >= instruction.address:
            continue
        body = [other for other in instructions[: end + 1] if other.address >= instruction.target]
        if not any(other.is_branch for other in body[:-1]):
            loops.append(Loop(tuple(body)))
    if not loops:
        raise MeasurementError("the disassembly has no loop to estimate")
    return max(loops, key=lambda loop: loop.multiply_adds)


def words_of(registers: str) -> int:
    """How many words a list such as "{r4, r5-r7}" or "{d0-d3}" has."""
    words = 0
    for part in registers.strip("{}").split(","):
        first, _, last = part.strip().partition("-")
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        words += count * (2 if first.startswith("d") else 1)
    return words


def cortex_m4_cycles(loop: Loop) -> int:
    return sum(cycles_of(instruction) for instruction in loop.instructions)


def cycles_of(instruction: Instruction) -> int:
    name = instruction.name.split(".")[0]
    if instruction.name in FUSED:
        return 3
    if re.match(r"v?(ldm|stm)", name):
        return 1 + words_of(instruction.operands[instruction.operands.index("{") :])
    if re.match(r"v?(ldr|str)", name):
        return 2
    return TAKEN_BRANCH_CYCLES if instruction.is_branch else 1


def cortex_m7_cycles(loop: Loop) -> float | None:
    """Cycles of one turn in LLVM's model; None where llvm-mca is not installed."""
    program = shutil.which(MCA)
    if program is None:
        return None
    text = [".syntax unified", ".thumb"]
    text += [f"{entry.name} {entry.operands}" for entry in loop.instructions if not entry.is_branch]
    with tempfile.NamedTemporaryFile("w", suffix=".s") as file:
        file.write("\n".join(text) + "\n")
        file.flush()
        command = [program, *MCA_OPTIONS, file.name]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    match = re.search(r"^Total Cycles:\s+(\d+)", result.stdout, re.MULTILINE)
    if result.returncode != 0 or match is None:
        raise MeasurementError(f"{MCA} does not know the loop: {result.stderr.strip()[:200]}")
    return int(match[1]) / 100


def loops_of(objdump: str, program: Path, symbols: dict[str, str]) -> list[Estimate]:
    """For each title the hot loop of the function whose symbol contains a text, where there is one.

    Cycles are of one multiply-add.
    """
    by_symbol = disassemble(objdump, program)
    rows: list[Estimate] = []
    for title, text in symbols.items():
        matches = [name for name in by_symbol if text in name]
        if not matches:
            continue
        loop = max((hot_loop(by_symbol[name]) for name in matches), key=lambda x: x.multiply_adds)
        m7 = cortex_m7_cycles(loop)
        rows.append(
            {
                "loop": title,
                "multiply_adds": loop.multiply_adds,
                "cortex_m4_cycles": cortex_m4_cycles(loop) / loop.multiply_adds,
                "cortex_m7_cycles": None if m7 is None else m7 / loop.multiply_adds,
            }
        )
    return rows
