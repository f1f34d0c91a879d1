"""The vectors of other hosts than this one: NEON of an Arm of 64 bits, emulated, and AVX2 of an x86
without AVX-512. Training ends in this machine's bits, and each kernel has the reference's."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from programs import output_of
from rltools_host.build import tools
from rltools_host.tree import TREE

pytestmark = pytest.mark.all  # other processors

FLAGS = json.loads(TREE.build_file.read_text())["flags"]
FOLDERS = ("lib/rltools/include", "firmware", "experiments", "benchmarks/programs")
HOST = ('-DRLT_DEVICE_HEADER="rltools/devices/host.h"', "-DRLT_DEVICE=Host", "-DRLT_WHOLE_BATCH")
STEPS = {"td3": 300, "sac": 300, "xqc": 560}  # of which 200, 200 and 60 train


@dataclass(frozen=True)
class Machine:
    lanes: int
    compiler: str
    flags: tuple[str, ...]
    run: tuple[str, ...] = ()  # what comes before the program's name
    tools: tuple[str, ...] = ()


HERE = Machine(0, "g++", ("-march=native",))
MACHINES = {
    "avx2": Machine(8, "g++", ("-march=native", "-mno-avx512f")),
    "neon": Machine(
        4,
        "aarch64-linux-gnu-g++",
        ("-static",),
        ("qemu-aarch64",),
        ("aarch64-linux-gnu-g++", "qemu-aarch64"),
    ),
}


def require(name: str) -> Machine:
    machine = MACHINES[name]
    if missing := tools.missing_names(machine.tools):
        pytest.skip(f"not installed (rlt doctor): {', '.join(missing)}")
    if name == "avx2" and platform.machine() != "x86_64":
        pytest.skip("this machine is no x86")
    return machine


def trained(machine: Machine, algorithm: str, folder: Path) -> dict[str, Any]:
    """What programs/training_loop.cpp prints there."""
    program = folder / f"loop-{machine.compiler}{''.join(machine.flags)}"
    if not program.exists():
        includes = [f"-I{TREE.root / name}" for name in FOLDERS]
        source = TREE.root / "benchmarks/programs/training_loop.cpp"
        command = [machine.compiler, *FLAGS, *machine.flags, *HOST, *includes]
        output_of(*command, source, "-o", program)
    document: dict[str, Any] = json.loads(
        output_of(*machine.run, program, algorithm, STEPS[algorithm])
    )
    return document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hosts")


@pytest.mark.parametrize("algorithm", STEPS)
@pytest.mark.parametrize("name", MACHINES)
def test_training_ends_in_this_machines_bits(name: str, algorithm: str, folder: Path) -> None:
    machine = require(name)
    here, there = trained(HERE, algorithm, folder), trained(machine, algorithm, folder)
    if name == "avx2" and here["lanes"] < machine.lanes:
        pytest.skip("this machine has no AVX2")
    assert there["lanes"] == machine.lanes
    assert there["state_sha256"] == here["state_sha256"]


def test_the_kernels_of_neon_give_the_references_bits(tmp_path: Path) -> None:
    """The C++ test of this machine's kernels, for that one."""
    machine = require("neon")
    if tools.missing_names(("doctest",)):
        pytest.skip("not installed (rlt doctor): doctest")
    headers = tmp_path / "doctest-only"  # the system's other headers are of this machine
    headers.mkdir()
    found = tools.system_tools()["doctest"].path()
    assert found is not None
    (headers / "doctest").symlink_to(Path(found).parent)
    kernels = TREE.root / "tests/lib/kernels"
    flags = (*FLAGS, "-O1", "-fexceptions", "-frtti", "-w", f"-I{TREE.include}")
    folders = (kernels, kernels / "agreement", kernels / "simd", kernels.parent)
    objects = []
    for source in (kernels / "simd/test_kernels_host.cpp", *kernels.glob("agreement/*.cpp")):
        main = () if objects else ("-DDOCTEST_CONFIG_IMPLEMENT_WITH_MAIN",)
        objects.append(tmp_path / f"{source.stem}.o")
        includes = (*(f"-I{each}" for each in folders), f"-isystem{headers}")
        output_of(machine.compiler, *flags, *includes, *main, "-c", source, "-o", objects[-1])
    program = tmp_path / "kernels"
    output_of(machine.compiler, *machine.flags, *objects, "-o", program)
    said = output_of(*machine.run, program)
    assert " 0 failed" in said
    assert "Status: SUCCESS!" in said
