"""The tree: what is installed, and only read (what is written goes to the project, project.py); and
command lines that the user is told to type, with its launcher as this user called it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
INSTALLED = PACKAGE / "tree"  # where a wheel puts it (pyproject.toml)


@dataclass
class Tree:
    """Where its parts lie; every path is absolute and free of symbolic links."""

    root: Path

    @property
    def is_installed(self) -> bool:
        """From a wheel, into an environment that is the user's; it is a checkout otherwise."""
        return self.root == INSTALLED

    def file(self, name: str) -> Path:
        """Of a name in a checkout, where the package itself lies in host/."""
        own = f"host/{PACKAGE.name}/"
        if self.is_installed and name.startswith(own):
            return PACKAGE / name.removeprefix(own)
        return self.root / name

    @property
    def include(self) -> Path:
        return self.root / "lib" / "rltools" / "include"

    @property
    def boards(self) -> Path:
        return self.root / "boards"

    @property
    def experiments(self) -> Path:
        return self.root / "experiments"

    @property
    def environments(self) -> Path:
        return self.include / "rltools" / "rl" / "environments"

    @property
    def toolchains(self) -> Path:
        return self.root / "toolchains"

    @property
    def build_file(self) -> Path:
        """Flags, programs and what they are for."""
        return self.root / "firmware" / "build.json"

    @property
    def protocol_generator(self) -> Path:
        return self.root / "lib" / "protocol" / "generate.py"

    @property
    def requirements(self) -> Path:
        return self.root / "host" / "requirements"

    @property
    def virtual_environment(self) -> Path:
        return self.root / ".venv"


TREE = Tree(INSTALLED if INSTALLED.is_dir() else PACKAGE.parents[1])


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
