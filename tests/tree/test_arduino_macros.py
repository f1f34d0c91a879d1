"""The library, the experiments and an exported policy compile behind Arduino's macros."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from include_rules import header_names, portable_headers
from policy_samples import sample_images
from rltools_host.build import tools
from rltools_host.policies import export
from rltools_host.policies.image import parse_policy
from rltools_host.tree import TREE

FLAGS = json.loads(TREE.build_file.read_text())["flags"]
ROOTS = ("lib/rltools/include", "experiments")
MACROS = TREE.root / "tests" / "lib" / "core" / "arduino_macros.h"
COMPILERS = {
    "host": ("g++", "-march=native"),
    "cortex-m7": (
        *("arm-none-eabi-g++", "-mcpu=cortex-m7", "-mthumb"),
        *("-mfloat-abi=hard", "-mfpu=fpv5-d16"),
    ),
    "cortex-m3": ("arm-none-eabi-g++", "-mcpu=cortex-m3", "-mthumb"),
}
EACH = [
    name if name == "cortex-m7" else pytest.param(name, marks=pytest.mark.all) for name in COMPILERS
]
# That no such macro may precede.
SYSTEM_HEADERS = ("immintrin.h", "pthread.h", "sched.h", "unistd.h", "atomic")


def headers(compiler: str) -> list[str]:
    """Every header, as it is included."""
    if compiler == "host":
        names = header_names(TREE.root, ROOTS)
        return [name for name in names if "mujoco" not in name]
    return portable_headers(TREE.root, ROOTS)


def compile_source(compiler: str, source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    if compiler != "host" and tools.missing_tools(("arm-none-eabi-g++",)):
        pytest.skip("arm-none-eabi-g++ is not installed")
    includes = [f"-I{TREE.root / root}" for root in ROOTS]
    file = folder / "source.cpp"
    file.write_text(source)
    command = [*COMPILERS[compiler], *FLAGS, *includes, "-fsyntax-only", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("compiler", EACH)
def test_every_header_compiles_behind_arduinos_macros(compiler: str, tmp_path: Path) -> None:
    names = headers(compiler)
    assert {"rltools/core/math.h", "rltools/policy/runtime.h", "pendulum_td3.h"} <= set(names)
    system = [f"#if __has_include(<{name}>)\n#include <{name}>\n#endif" for name in SYSTEM_HEADERS]
    lines = [
        *(system if compiler == "host" else []),
        f'#include "{MACROS}"',
        *(f'#include "{name}"' for name in names),
    ]
    result = compile_source(compiler, "\n".join(lines) + "\n", tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("compiler", EACH)
def test_an_exported_policy_compiles_behind_arduinos_macros(compiler: str, tmp_path: Path) -> None:
    source = f'#include "{MACROS}"\n'
    for name in ("pendulum", "gelu"):
        header = tmp_path / f"{name}.h"
        header.write_text(export.c_header(parse_policy(sample_images()[name])))
        source += f'#include "{header}"\n'
    result = compile_source(compiler, source, tmp_path)
    assert result.returncode == 0, result.stderr
    in_c = [COMPILERS[compiler][0].replace("g++", "gcc"), *COMPILERS[compiler][1:], "-std=c99"]
    in_c += ["-fsyntax-only", "-xc", str(tmp_path / "source.cpp")]
    result = subprocess.run(in_c, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
