"""Cycles that the hot loop of a program takes on a Cortex-M, estimated from its disassembly.

Estimates, not measurements: for a Cortex-M7 by LLVM's model of its pipeline (`llvm-mca`), for a
Cortex-M4, which issues one instruction at a time, by Arm's table of instruction timings (Cortex-M4
Technical Reference Manual, ARM DDI 0439, sections 3.3 and 7.2.3). Memory without wait states.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rltools_host.bench.harness import MeasurementError

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


def estimates(objdump: str, program: Path, symbols: dict[str, str]) -> list[dict[str, object]]:
    """For each title the hot loop of the function whose symbol contains a text, where there is one.

    Cycles are of one multiply-add.
    """
    by_symbol = disassemble(objdump, program)
    rows: list[dict[str, object]] = []
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
