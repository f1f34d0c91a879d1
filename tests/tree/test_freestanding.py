"""The standard headers of lib/freestanding do what this machine's own do."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.tree import TREE

SOURCE = Path(__file__).with_name("freestanding.cpp")
FREESTANDING = TREE.root / "lib/freestanding"
HEADERS = {
    "freestanding": ["-nostdinc++", "-isystem", str(FREESTANDING)],
    "this machine's": [],
}


@pytest.mark.parametrize("headers", HEADERS)
def test_program_finds_them_alike(headers: str, tmp_path: Path) -> None:
    tools.require("g++")
    flags = json.loads(TREE.build_file.read_text())["flags"]
    program = tmp_path / "program"
    command = ["g++", *flags, "-O1", *HEADERS[headers], str(SOURCE), "-o", str(program)]
    subprocess.run(command, check=True, timeout=100)
    assert subprocess.run([program], timeout=10).returncode == 0


def test_each_header_is_tried() -> None:
    text = SOURCE.read_text()
    assert [
        path.name
        for path in FREESTANDING.iterdir()
        if path.is_file() and f"<{path.name}>" not in text
    ] == []
