"""The tree: what is installed, and only read. The project: the folder where the user's files lie
and where everything is written; a file `rlt.toml`, which may be empty, makes a folder one, and a
checkout has one. And command lines that the user is told to type, with the tree's launcher as this
user called it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rltools_host.errors import UsageError

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


MARKER = "rlt.toml"
VARIABLE = "RLT_PROJECT"  # names the project, wherever the command is called
HIDE_OPTIONAL = "RLT_HIDE_OPTIONAL"  # =1: as where none of the optional tools is installed


class Project:
    """Where its parts lie; every path is absolute and free of symbolic links."""

    @cached_property
    def root(self) -> Path:
        """The same for the whole process, from the first use on."""
        return find_project()

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def protocol(self) -> Path:
        """What is generated from the description of the wire format."""
        return self.build / "protocol"

    @property
    def generated(self) -> Path:
        """Headers that are written here: of Gymnasium's tasks, and of experiments' other sizes."""
        return self.build / "gymnasium_tasks"

    @property
    def named_tasks(self) -> Path:
        """Notes of what may be imported."""
        return self.build / "named_tasks"

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is another folder than the tree."""
        return self.root != TREE.root

    def owns(self, path: Path) -> bool:
        """Whether a file is the user's, and not one that was installed."""
        return self.is_elsewhere and path.is_relative_to(self.root)

    def origin(self, path: Path, installed: Path) -> str:
        """What a listing says of a file that is the project's; nothing of one that is installed."""
        if not self.owns(path):
            return ""
        return (
            " (this project's)"
            if not (installed / path.name).is_file()
            else (" (this project's, in place of the installed one)")
        )

    def files(self, folder: str, pattern: str, installed: Path) -> list[Path]:
        """The project's, and those of the tree's folder of whose names it has none, by name."""
        found = {}
        for place in (installed, self.root / folder):
            found.update({path.name: path for path in place.glob(pattern)})
        return sorted(found.values(), key=lambda path: path.stem)

    @property
    def include_directories(self) -> list[Path]:
        """For "environments/<name>.h"; cmake/board.cmake has the same."""
        folders = (self.root / "environments", self.root / "contracts")
        return [self.root] if any(folder.is_dir() for folder in folders) else []

    def place_of(self, name: str) -> Path:
        """Of a file or folder that a description names: in the project where it is there."""
        own = self.root / name
        return own if own.exists() else TREE.root / name

    def board_build(self, board: str) -> Path:
        """Where CMake builds for this board: build/<board>."""
        return self.build / board


PROJECT = Project()


def is_project(folder: Path) -> bool:
    return (folder / MARKER).is_file()


def find_project() -> Path:
    """RLT_PROJECT, else the nearest project around the present folder, else the checkout."""
    if named := os.environ.get(VARIABLE):
        root = Path(named).resolve()
        if not is_project(root):
            raise UsageError(
                f"{VARIABLE}={named} is not a project: a file {MARKER} in a folder, which may be "
                "empty, makes one of it"
            )
        return root
    try:
        present = Path.cwd()
    except OSError:  # it was removed
        present = TREE.root
    for folder in (present, *present.parents):
        if is_project(folder):
            return folder.resolve()
    if is_project(TREE.root):
        return TREE.root
    raise UsageError(
        f"{present} is in no project: rlt new --project DIR writes one, a file {MARKER} in a "
        f"folder, which may be empty, makes one of it, and {VARIABLE} names one elsewhere"
    )
