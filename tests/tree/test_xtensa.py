"""What Debian's compiler for Xtensa can tell: it compiles, and cannot link.

Its LX106 has no floating-point unit, and its libgcc lacks the functions that would add and multiply
instead, so nothing runs. An ESP32's LX6 has a unit; no compiler for it is in Debian.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from include_rules import portable_headers
from rltools_host.build.toolchains import load_toolchain
from rltools_host.build.tools import missing_tools
from rltools_host.tree import TREE

pytestmark = pytest.mark.all  # another processor

TOOLCHAIN = load_toolchain("xtensa-lx106-elf")
FLAGS = json.loads(TREE.build_file.read_text())["flags"]
LIBRARY = TREE.include
EXPERIMENTS = TREE.experiments
PX4 = TREE.root / "integrations/px4/src/modules/rlt_policy"
CRAZYFLIE = TREE.root / "integrations/crazyflie/src"
# The logic of the integrations, which knows no operating system.
INTEGRATIONS = {
    "px4": (PX4, ("entry_offset.h", "policy_files.h", "policy_mode.h")),
    "crazyflie": (CRAZYFLIE / "policy", ("controller_logic.h",)),
}


def compile_source(source: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    if missing := missing_tools(tuple(tool.name for tool in TOOLCHAIN.tools)):
        pytest.skip(f"{missing[0].name} is not installed (rlt doctor)")
    file = folder / "source.cpp"
    file.write_text(source)
    includes = [f"-I{LIBRARY}", f"-I{EXPERIMENTS}", *TOOLCHAIN.include_flags]
    command = [TOOLCHAIN.compiler, *FLAGS, *TOOLCHAIN.flags, *includes, *flags]
    command += ["-c", str(file), "-o", str(folder / "source.o")]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def undefined_symbols(folder: Path) -> set[str]:
    command = [f"{TOOLCHAIN.prefix}nm", "-u", str(folder / "source.o")]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return {line.split()[-1] for line in output.splitlines()}


def test_every_header_compiles(tmp_path: Path) -> None:
    names = portable_headers(TREE.root, ("lib/rltools/include", "experiments"))
    assert {"rltools/devices/xtensa_lx6.h", "rltools/core/self_test.h"} <= set(names)
    source = "\n".join(f'#include "{name}"' for name in names) + "\n"
    result = compile_source(source, tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_the_integrations_logic_compiles(name: str, tmp_path: Path) -> None:
    folder, headers = INTEGRATIONS[name]
    source = "\n".join(f'#include "{folder / header}"' for header in headers) + "\n"
    flags = ("-fno-exceptions", "-Wfloat-equal", "-Wcast-align", f"-I{CRAZYFLIE / 'policy'}")
    result = compile_source(source, tmp_path, *flags)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("fma", ["rlt::math::fma", "__builtin_fmaf"])
def test_fused_multiply_add_is_the_cores_own_without_a_unit(fma: str, tmp_path: Path) -> None:
    """The library's, which rounds twice, is called where one asks the compiler for it only."""
    source = (
        '#include "rltools/core/math.h"\n'
        "#ifdef __FP_FAST_FMAF\n#error the compiler says that it has an instruction\n#endif\n"
        f"float f(float a, float b, float c) {{ return {fma}(a, b, c); }}\n"
    )
    result = compile_source(source, tmp_path)
    assert result.returncode == 0, result.stderr
    assert ("fmaf" in undefined_symbols(tmp_path)) == (fma == "__builtin_fmaf")
