"""Programs that go through more cases than an ordinary test: every float through every function of
core/math.h (at most 2 ulp from double precision), and 10^9 through the core's own fma (no bit from
the processor's)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.tree import TREE

SOURCES = Path(__file__).parent


@pytest.mark.exhaustive
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("name", ["exhaustive_math", "exhaustive_fma"])
def test_every_case(name: str, tmp_path: Path) -> None:
    tools.require("g++")
    # The command that the program's own comment gives.
    command = " ".join(
        re.findall(r"^// {3,}(.+)$", (SOURCES / f"{name}.cpp").read_text(), re.MULTILINE)
    )
    arguments = command.split(" -o ")[0].split()
    assert arguments[0] == "g++", command
    program = tmp_path / name
    subprocess.run([*arguments, "-o", str(program)], cwd=TREE.root, check=True)
    result = subprocess.run([program], capture_output=True, text=True)
    print(result.stdout)
    assert result.returncode == 0, result.stdout
