"""What runs a policy in somebody's own firmware: two standard headers, and others' warnings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from other_firmware import FLAGS, two_standard_headers
from rltools_host.build import cmake, tools
from rltools_host.build.boards import list_boards
from rltools_host.build.toolchains import load_toolchain
from rltools_host.build.tools import missing_tools
from rltools_host.tree import TREE

# Everything that a deployment has is instantiated.
PROGRAM = """#include "rltools/policy/deployment.h"
#include "{header}"
using namespace rlt;
static RamStorage<4096> storage_of_policies;
static const Channel one[] = {{{{"x", "1", -1.0f, 1.0f}}}};
static PolicyDeployment<{device}, RamStorage<4096>, 1, 64> deployment(
    {device}{{}}, storage_of_policies, PolicyContract{{1000, 1, 1, one, one}});
int run(std::uint32_t now, const std::uint8_t* image, std::uint32_t bytes, float* action);
int run(std::uint32_t now, const std::uint8_t* image, std::uint32_t bytes, float* action) {{
  deployment.begin();
  deployment.stage();
  deployment.write(0, image, bytes);
  if (!deployment.finish().accepted()) return 1;
  deployment.start_trial(now, 1000000);
  const float x = 0.5f;
  const ExecutorStatus status = deployment.step(now, {{&x, now}}, action);
  deployment.confirm(now);
  deployment.roll_back();
  return static_cast<int>(status);
}}
"""
# One board for each device that CMake builds for, but for those with the machine's own vectors, and
# a GPU's, which does not deploy.
DEVICES = {board.device: board for board in list_boards() if board.toolchain.builder == "cmake"}
FREE_OF_VENDORS = sorted(set(DEVICES) - {"Host", "HostThreads", "Block"})
# Those that no board of CMake has: the header, and a toolchain of such processors.
OTHER_DEVICES = {
    "XtensaLx106": ("rltools/devices/xtensa_lx106.h", "xtensa-lx106-elf"),
    "XtensaLx6": ("rltools/devices/xtensa_lx6.h", "xtensa-lx106-elf"),
}


def compile_alone(tmp_path: Path, text: str, compiler: str, *flags: str) -> str:
    """What the compiler says, with the two standard headers and the library's only."""
    source = tmp_path / "deployment.cpp"
    source.write_text(text)
    command = [
        *(compiler, *FLAGS, *flags, "-fsyntax-only", *two_standard_headers(tmp_path)),
        *(f"-I{TREE.include}", str(source)),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode == 0) == (result.stderr == "")
    return result.stderr


@pytest.mark.parametrize(
    "device",
    [
        device if device == "CortexM7" else pytest.param(device, marks=pytest.mark.all)
        for device in (*FREE_OF_VENDORS, *OTHER_DEVICES, "Generic")
    ],
)
def test_a_deployment_needs_two_standard_headers(device: str, tmp_path: Path) -> None:
    if device == "Generic":
        compiler, flags, header = "g++", [], "rltools/devices/generic.h"
    elif device in OTHER_DEVICES:
        header, name = OTHER_DEVICES[device]
        toolchain = load_toolchain(name)
        if missing_tools(tuple(tool.name for tool in toolchain.tools)):
            pytest.skip(f"the compiler of {name} is not installed")
        compiler, flags = toolchain.compiler, list(toolchain.flags)
    else:
        board = DEVICES[device]
        if missing_tools(cmake.required_tools(board)):
            pytest.skip(f"the tools of {board.name} are not installed")
        tools.require(*cmake.required_tools(board))
        compiler, flags = board.toolchain.compiler, list(board.flags)
        header = board.device_header
    text = PROGRAM.format(header=header, device=device)
    assert compile_alone(tmp_path, text, compiler, *flags) == ""
