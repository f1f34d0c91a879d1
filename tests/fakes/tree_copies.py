"""Copies of the sources, for tests that change them, and CMake in them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from rltools_host.build import tools
from rltools_host.tree import TREE


def copy_of_tree(tree: Path, *names: str) -> Path:
    """These files and folders of the checkout, in a folder that may be there."""
    for name in names:
        source = TREE.root / name
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            shutil.copy(source, tree / name)
    return tree


def configured(
    tree: Path, build: Path, board: str, *definitions: str
) -> subprocess.CompletedProcess[str]:
    """CMake, as somebody calls it without the command line."""
    command = [tools.program("cmake"), "-S", str(tree), "-B", str(build), "-G", "Ninja"]
    command += [f"-DRLT_BOARD={board}", f"-DCMAKE_MAKE_PROGRAM={tools.program('ninja')}"]
    return subprocess.run([*command, *definitions], capture_output=True, text=True)


def ninja(build: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [tools.program("ninja"), "-C", str(build), *arguments]
    return subprocess.run(command, capture_output=True, text=True)
