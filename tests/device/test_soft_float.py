"""Processors without fused multiply-add, emulated, and WebAssembly, which has none either: the bits
of this machine's, training included."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from programs import output_of
from rltools_host.build import tools
from rltools_host.tree import TREE

pytestmark = pytest.mark.all  # other processors

HERE = Path(__file__).parent / "soft_float"
FLAGS = json.loads(TREE.build_file.read_text())["flags"]
INCLUDES = [f"-I{TREE.root / folder}" for folder in ("lib/rltools/include", "experiments")]
QEMU = ("-display", "none", "-monitor", "none", "-serial", "stdio")
CORTEX_M = ("-mthumb", "-nostartfiles", "--specs=nano.specs", f"-T{HERE / 'cortex_m3.ld'}")


@dataclass(frozen=True)
class Machine:
    source: str
    device_header: str
    device: str
    command: tuple[str, ...]  # the compiler and its flags
    run: tuple[str, ...] = ()  # what comes before the program's name
    tools: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ("-lm",)


HOST = Machine("host.cpp", "generic.h", "Generic", ("g++", "-march=native"))
MACHINES = {
    "rv32imc": Machine(
        "rv32imc.cpp",
        "rv32imc.h",
        "Rv32imc",
        (
            *("riscv64-unknown-elf-gcc", "-march=rv32imc", "-mabi=ilp32", "-nostartfiles"),
            # Debian has no C++ standard headers for RISC-V.
            *("--specs=picolibc.specs", "-isystem", str(TREE.root / "lib/freestanding")),
            f"-T{HERE / 'rv32imc.ld'}",
        ),
        (
            *("qemu-system-riscv32", "-M", "virt", "-bios", "none", "-icount", "shift=0"),
            *(*QEMU, "-kernel"),
        ),
        ("riscv64-unknown-elf-g++", "picolibc", "qemu-system-riscv32"),
    ),
    **{
        # A Cortex-M3 executes an M0+'s instructions too.
        processor: Machine(
            "cortex_m3.cpp",
            "cortex_m3.h",
            "CortexM3",
            ("arm-none-eabi-g++", f"-mcpu={processor}", "-fno-threadsafe-statics", *CORTEX_M),
            (
                *("qemu-system-arm", "-M", "mps2-an385", *QEMU),
                *("-semihosting-config", "enable=on,target=native", "-kernel"),
            ),
            ("arm-none-eabi-g++", "arm-none-eabi-libstdc++", "qemu-system-arm"),
        )
        for processor in ("cortex-m0plus", "cortex-m3")
    },
    "wasm32": Machine(
        "wasm32.cpp",
        "generic.h",
        "Generic",
        (
            *("clang++", "--target=wasm32", "-nostdlib", "-fno-builtin"),
            *("-isystem", str(TREE.root / "lib/freestanding")),
            *("-Wl,--no-entry", "-Wl,--export=main"),
        ),
        ("node", str(HERE / "run_wasm.mjs")),
        ("clang++", "wasm-ld", "node"),
        libraries=(),
    ),
}


def lines_printed(machine: Machine, folder: Path) -> list[str]:
    """The lines that the program prints there."""
    program = folder / "program"
    command = [
        *(*machine.command, *FLAGS, *INCLUDES),
        f'-DRLT_DEVICE_HEADER="rltools/devices/{machine.device_header}"',
        f"-DRLT_DEVICE={machine.device}",
        *(str(HERE / "program.cpp"), str(HERE / machine.source)),
        *(*machine.libraries, "-o", str(program)),
    ]
    output_of(*command)
    return output_of(*machine.run, program).splitlines()


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What each machine printed; one whose tools are not installed is left out."""
    machines = {"host": HOST, **MACHINES}
    return {
        name: lines_printed(machine, tmp_path_factory.mktemp(name))
        for name, machine in machines.items()
        if not tools.missing_tools(machine.tools)
    }


def lines_of(outputs: dict[str, list[str]], name: str) -> list[str]:
    if name not in outputs:
        missing = ", ".join(tool.name for tool in tools.missing_tools(MACHINES[name].tools))
        pytest.skip(f"not installed (rlt doctor): {missing}")
    return outputs[name]


def checksums(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(("fault ", "instructions "))]


@pytest.mark.parametrize("name", MACHINES)
def test_bits_are_those_of_this_machine(outputs: dict[str, list[str]], name: str) -> None:
    """The library's operations, the core's functions, a product, a policy, 12 updates of TD3."""
    lines = lines_of(outputs, name)
    expected = checksums(outputs["host"])
    assert len(expected) == 29
    assert expected[-2] == "updates 00000019"  # 12, all finite
    assert expected[-1].startswith("state_sha256 ")
    assert checksums(lines) == expected


@pytest.mark.parametrize("name", MACHINES)
def test_the_librarys_own_fmaf_would_be_refused(outputs: dict[str, list[str]], name: str) -> None:
    faults = [line for line in lines_of(outputs, name) if line.startswith("fault ")]
    assert faults == [
        "fault core arithmetic is exact",
        "fault library fused multiply-add is not exact",
    ]
