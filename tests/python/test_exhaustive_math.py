"""Every float through every function of core/math.h: at most 2 ulp from double precision."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rltools_host import paths
from rltools_host.toolchain import tools

SOURCE = paths.REPOSITORY / "tests" / "cpp" / "exhaustive_math.cpp"


@pytest.mark.exhaustive
@pytest.mark.timeout(5400)
def test_all_floats(tmp_path: Path) -> None:
    tools.require("g++")
    # The command that the program's own comment gives.
    command = " ".join(re.findall(r"^// {3,}(.+)$", SOURCE.read_text(), re.MULTILINE))
    arguments = command.split(" -o ")[0].split()
    assert arguments[0] == "g++", command
    program = tmp_path / "exhaustive_math"
    subprocess.run([*arguments, "-o", str(program)], cwd=paths.REPOSITORY, check=True)
    result = subprocess.run([program], capture_output=True, text=True)
    print(result.stdout)
    assert result.returncode == 0, result.stdout
