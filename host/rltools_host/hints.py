"""Command lines that the user is told to type: with the launcher as this user called it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from rltools_host.tree import TREE

LAUNCHER = TREE.root / "rlt"


def command_line(*words: str | Path) -> str:
    """`rlt` and these words as they must be typed in the present folder, quoted where necessary."""
    return shlex.join([launcher(), *map(str, words)])


def launcher() -> str:
    """What starts this tree's launcher: as it was called, or its name where the PATH finds it, or
    its place."""
    called = os.environ.get("RLT_COMMAND", "")
    if called and is_launcher(called):
        name = Path(called).name
        return name if shutil.which(name) == called else called
    if TREE.is_installed:  # its script, where the PATH finds it
        script = Path(sys.argv[0])
        elsewhere = script.name == "rlt" and shutil.which("rlt") != str(script.absolute())
        return str(near_path(script.absolute())) if elsewhere else "rlt"
    if is_launcher("rlt") or not LAUNCHER.is_file():
        return "rlt"
    path = near_path(LAUNCHER)
    return str(path) if path.is_absolute() else f"./{path}"


def is_launcher(command: str) -> bool:
    """Whether a shell that is given this word starts this tree's launcher."""
    found = shutil.which(command)
    return found is not None and Path(found).resolve() == LAUNCHER


def near_path(path: Path) -> Path:
    """Relative to the present folder where it lies below that, as a person would type it."""
    try:
        present = Path.cwd()
    except FileNotFoundError:  # it was removed meanwhile
        return path
    return path.relative_to(present) if path.is_relative_to(present) else path
