"""The example of a policy in somebody's own firmware: few lines, for any processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from other_firmware import FLAGS
from policy_samples import sample_images, write_pendulum_header
from programs import output_of
from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.build.toolchains import load_toolchain
from rltools_host.build.tools import missing_tools
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE

EXAMPLE = TREE.root / "examples/own_firmware"
ROBOT = TREE.root / "tests/examples/own_firmware_robot.cpp"
# The device that the compiler's macros must lead to, and a board with that processor.
PROCESSORS = {
    "Cortex-M7": ("CortexM7", "qemu-cortex-m7"),
    "Cortex-M4F": ("CortexM4", "qemu-cortex-m4"),
    "rv32imafc": ("Rv32imafc", "qemu-rv32imafc"),
    "rv32imc": ("Rv32imc", "qemu-rv32imc"),
}
# Those of no board: a device, a toolchain, and the processor's flags.
OTHER_PROCESSORS = {
    "Cortex-M0+": ("CortexM3", "arm-none-eabi", ["-mcpu=cortex-m0plus", "-mthumb"]),
    "Cortex-M3": ("CortexM3", "arm-none-eabi", ["-mcpu=cortex-m3", "-mthumb"]),
    "Xtensa LX106": ("XtensaLx106", "xtensa-lx106-elf", []),
}
IS_DEVICE = """#include "control_loop.cpp"
template <class A, class B> constexpr bool kSame = false;
template <class A> constexpr bool kSame<A, A> = true;
static_assert(kSame<ThisProcessor, {device}>, "ThisProcessor is another device");
"""
SAFE_TORQUE = 0.0


def command(folder: Path, compiler: str, *flags: str) -> list[str]:
    write_pendulum_header(folder)
    return [compiler, *FLAGS, *flags, f"-I{folder}", f"-I{EXAMPLE}", f"-I{TREE.include}"]


@pytest.mark.parametrize(
    "processor",
    [
        pytest.param(name, marks=[] if name == "Cortex-M7" else pytest.mark.all)
        for name in (*PROCESSORS, *OTHER_PROCESSORS)
    ],
)
def test_it_compiles_for_every_processor(processor: str, tmp_path: Path) -> None:
    if processor in OTHER_PROCESSORS:
        device, name, own = OTHER_PROCESSORS[processor]
        toolchain = load_toolchain(name)
        flags = [*toolchain.flags, *own]
        missing = missing_tools(tuple(tool.name for tool in toolchain.tools))
    else:
        device, board_name = PROCESSORS[processor]
        board = load_board(board_name)
        toolchain, flags = board.toolchain, [*board.flags]
        missing = missing_tools(cmake.required_tools(board))
    flags += toolchain.include_flags
    if missing:
        pytest.skip(f"no compiler for {processor} is installed")
    build = command(tmp_path, toolchain.compiler, *flags)
    source = tmp_path / "loop.cpp"
    source.write_text(IS_DEVICE.format(device=device))
    output_of(*build, "-c", source, "-o", tmp_path / "loop.o")


def turns(tmp_path: Path, *arguments: int) -> list[list[str]]:
    program = tmp_path / "robot"
    build = command(tmp_path, "g++", "-march=native")
    output_of(*build, EXAMPLE / "control_loop.cpp", ROBOT, "-o", program)
    return [line.split(" ", 4) for line in output_of(program, *arguments).splitlines()]


def test_it_computes_what_the_host_computes(tmp_path: Path) -> None:
    policy = parse_policy(sample_images()["pendulum"])
    rows = turns(tmp_path, 200)
    assert len(rows) == 200
    for *sensed, torque, report in rows:
        expected = policy.evaluate(np.asarray(sensed, dtype=np.float32))
        assert np.float32(torque) == expected[0]
        assert report == "-"
    assert len({torque for *_, torque, _ in rows}) > 100


def test_a_sensor_that_fails_gives_the_safe_action(tmp_path: Path) -> None:
    rows = turns(tmp_path, 20, 12)
    assert all(report == "-" for *_, report in rows[:12])
    for *_, torque, report in rows[12:]:
        assert (float(torque), report) == (SAFE_TORQUE, "the observation is not finite")
