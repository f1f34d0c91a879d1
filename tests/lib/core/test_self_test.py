"""Flags that change numbers are noticed by the core's self-test (core/self_test.h)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from rltools_host.tree import TREE

FLAGS = json.loads(TREE.build_file.read_text())["flags"]
PROGRAM = """
#include <cstdio>
#include "rltools/core/self_test.h"
int main() { std::puts(rlt::arithmetic_fault_text(rlt::find_arithmetic_fault())); }
"""


def compile_with(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    include = f"-I{TREE.include}"
    command = ["g++", *FLAGS, "-march=native", *flags, include, "-x", "c++", "-"]
    program = ["-o", str(folder / "program")]
    return subprocess.run(
        [*command, *program], input=PROGRAM, capture_output=True, text=True, timeout=100
    )


def has_fused_multiply_add() -> bool:
    if shutil.which("g++") is None:
        return False
    command = ["g++", "-march=native", "-dM", "-E", "-x", "c++", "-"]
    result = subprocess.run(command, input="", capture_output=True, text=True, timeout=100)
    return "__FP_FAST_FMAF " in result.stdout


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("-O3", "arithmetic is exact"),
        ("-O0", "arithmetic is exact"),
        pytest.param(
            "-ffp-contract=fast",
            "products and sums are contracted: needs -ffp-contract=off",
            marks=pytest.mark.skipif(not has_fused_multiply_add(), reason="nothing to contract to"),
        ),
    ],
)
def test_contraction_is_noticed(tmp_path: Path, flag: str, text: str) -> None:
    assert compile_with(tmp_path, flag).returncode == 0
    result = subprocess.run([tmp_path / "program"], capture_output=True, text=True, timeout=10)
    assert result.stdout == f"{text}\n"


def test_fast_math_does_not_compile(tmp_path: Path) -> None:
    assert "IEEE-754 arithmetic" in compile_with(tmp_path, "-ffast-math").stderr
