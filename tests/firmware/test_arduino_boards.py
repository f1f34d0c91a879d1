"""The firmware of boards on a vendor's Arduino core, against declarations of the core's interface:
compiled with Debian's compilers for such processors, and, what is theirs, run on this machine."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from programs import needed_symbols, output_of
from rltools_host.build import cmake
from rltools_host.build.boards import Board, load_board
from rltools_host.build.toolchains import Toolchain, load_toolchain
from rltools_host.build.tools import missing_tools
from rltools_host.tree import PROJECT, TREE

HERE = Path(__file__).parent
ESP32_INTERFACE = HERE / "esp32/interface"
BUILD = json.loads(TREE.build_file.read_text())
# What compilers call: arithmetic that the processor lacks, and memory.
LIBRARY = ("__", "memcpy", "memset", "memcmp", "memmove", "strlen")
ALLOCATION = ("malloc", "free", "_Zn", "_Zd", "__cxa_throw")
METHODS = ("_ZN5HWCDC", "_ZN14HardwareSerial")
# Of PJRC's linker script and EEPROM, which no header declares.
OF_THE_CORE = {"_ebss", "_estack", "eepromemu_flash_write", "eepromemu_flash_erase_sector"}


@dataclass(frozen=True)
class Kind:
    """A board: the compiler of Debian's for a processor like its, the flags that its vendor's has,
    and the most bytes that the program infer takes without the vendor's part."""

    toolchain: str
    interface: Path
    flags: tuple[str, ...]
    most_text: int  # code and constants
    most_data: int


KINDS = {
    "esp32": Kind(
        "xtensa-lx106-elf",
        ESP32_INTERFACE,
        # Debian has no C library for Xtensa.
        ("-isystem", str(ESP32_INTERFACE / "c_library"), "-DMAVLINK_NO_CONVERSION_HELPERS"),
        96 * 1024,
        22 * 1024,
    ),
    "esp32c3": Kind(
        "riscv64-unknown-elf",
        ESP32_INTERFACE,
        ("-march=rv32imc", "-mabi=ilp32", "-DARDUINO_USB_CDC_ON_BOOT=1"),
        96 * 1024,
        22 * 1024,
    ),
    "teensy41": Kind(
        "arm-none-eabi",
        HERE / "teensy41/interface",
        ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
        64 * 1024,
        22 * 1024,
    ),
}
ESP32 = [name for name, kind in KINDS.items() if kind.interface == ESP32_INTERFACE]
PROGRAM = BUILD["programs"]["infer"]  # train is the same but for its application


def definitions(board: Board, revision: Path) -> list[str]:
    """As firmware/platformio_flags.py has them."""
    entries = (
        f'RLT_PROGRAM_HEADER="{PROGRAM["header"]}"',
        *board.definitions,
        'RLT_CONTRACT_HEADER="rltools/policy/contracts/pendulum.h"',
        "RLT_CONTRACT=Pendulum",
    )
    (revision / "rlt_revision.h").write_text('#pragma once\n#define RLT_REVISION "test"\n')
    return [f"-D{entry}" for entry in entries] + [f"-I{revision}"]


def sources(board: Board) -> list[Path]:
    patterns = [*PROGRAM["sources"], *board.sources]
    return [path for pattern in patterns for path in sorted(TREE.root.glob(pattern))]


def compile_all(name: str, folder: Path) -> tuple[Toolchain, list[Path]]:
    board, kind = load_board(name), KINDS[name]
    toolchain = load_toolchain(kind.toolchain)
    if missing := missing_tools(tuple(tool.name for tool in toolchain.tools)):
        pytest.skip(f"{missing[0].name} is not installed (rlt doctor)")
    cmake.generate_protocol()
    includes = [f"-I{TREE.root / path}" for path in BUILD["include_directories"]]
    flags = [
        *(*BUILD["flags"], *toolchain.flags, *board.flags, *kind.flags),
        *(*includes, *toolchain.include_flags, "-isystem", str(kind.interface)),
        *("-isystem", str(PROJECT.protocol / "c")),
        *definitions(board, folder),
    ]
    objects = []
    for source in sources(board):
        target = folder / f"{source.parent.name}_{source.stem}.o"
        output_of(toolchain.compiler, *flags, "-c", source, "-o", target)
        objects.append(target)
    return toolchain, objects


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.all
def test_it_compiles_with_the_projects_flags_and_fits(name: str, tmp_path: Path) -> None:
    """It needs the interface and what compilers call: nothing allocates or throws."""
    toolchain, objects = compile_all(name, tmp_path)
    sizes = [
        line.split() for line in output_of(f"{toolchain.prefix}size", *objects).splitlines()[1:]
    ]
    most_text, most_data = KINDS[name].most_text, KINDS[name].most_data
    assert most_text // 3 < sum(int(size[0]) for size in sizes) <= most_text
    assert most_data // 3 < sum(int(size[1]) + int(size[2]) for size in sizes) <= most_data
    needed = needed_symbols(f"{toolchain.prefix}nm", *objects)
    assert [symbol for symbol in needed if symbol.startswith(ALLOCATION)] == []
    texts = [path.read_text() for path in sorted(KINDS[name].interface.rglob("*.h"))]
    declared = set(re.findall(r"\w+", "".join(texts))) | OF_THE_CORE
    unknown = {symbol for symbol in needed - declared if not symbol.startswith(LIBRARY)}
    assert {symbol for symbol in unknown if not symbol.startswith(METHODS)} == set()


def run_on_this_machine(folder: Path, *arguments: str | Path) -> None:
    program = folder / "program"
    flags = ["-std=gnu++17", "-O0", "-Wall", "-Wextra", "-Werror"]
    includes = [f"-I{TREE.root / path}" for path in BUILD["include_directories"]]
    includes += [f"-I{HERE}", f"-I{TREE.root / 'tests/lib/policy'}"]
    output_of("g++", *flags, *includes, *arguments, "-o", program)
    output_of(program)


@pytest.mark.parametrize("name", ESP32)
@pytest.mark.all
def test_the_esp32s_firmware_works_on_this_machine(
    name: str, doctest_main: Path, tmp_path: Path
) -> None:
    board = load_board(name)
    own = [path for path in sources(board) if path.parent.name == "esp32"]
    own = [path for path in own if path.stem != "main"]
    defines = [f"-D{define}" for define in board.defines if "RLT_BAUD" in define]
    specific = [flag for flag in KINDS[name].flags if flag.startswith("-DARDUINO")]
    flags = ["-fsanitize=address,undefined", *specific, *defines, f"-I{ESP32_INTERFACE}"]
    run_on_this_machine(tmp_path, *flags, HERE / "esp32/esp32_program.cpp", *own, doctest_main)


def test_policies_lie_in_the_teensys_program_flash(doctest_main: Path, tmp_path: Path) -> None:
    """Above what PlatformIO lets a program take."""
    source = TREE.root / "firmware/teensy41/flash_storage.cpp"
    run_on_this_machine(tmp_path, HERE / "teensy41/teensy41_program.cpp", source, doctest_main)
    document = json.loads((TREE.boards / "teensy41.json").read_text())
    assert document["upload"]["maximum_size"] == 7936 * 1024 - 128 * 1024


def test_the_rate_of_the_uart_is_that_of_its_description() -> None:
    board = load_board("esp32")
    assert f"RLT_BAUD={board.link.baud}" in board.defines


def partitions() -> list[tuple[str, int, int]]:
    lines = (TREE.boards / "esp32_partitions.csv").read_text().splitlines()
    rows = csv.reader(line for line in lines if not line.startswith("#"))
    return [(row[0].strip(), int(row[3], 16), int(row[4], 16)) for row in rows]


def test_partitions_follow_each_other_and_fit_the_flash() -> None:
    rows = partitions()
    end = 0x9000  # of the boot loader and this table
    for _, offset, size in rows:
        assert offset == end
        end = offset + size
    assert end <= 4 * 1024 * 1024
    table = {name: (offset, size) for name, offset, size in rows}
    assert table["app0"][0] % 0x10000 == 0
    header = (TREE.root / "firmware/processors/sector_flash.h").read_text()
    assert "kBytes = 128 * 1024" in header
    assert table["policies"][1] == 128 * 1024
    for name in ESP32:
        document = json.loads((TREE.boards / f"{name}.json").read_text())
        assert document["build"]["arduino"]["partitions"] == "boards/esp32_partitions.csv"
        memory = {region["name"]: region["bytes"] for region in document["rltools"]["memory"]}
        assert memory["FLASH"] == table["app0"][1]
