"""Paths of the tree and of the project, and the command lines that a user is told to type.

The tree is what is installed, and only read. The project is the folder of the user's files, where
everything is written; a file `rlt.toml`, which may be empty, marks it, and a checkout has one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rltools_host.errors import UsageError

PACKAGE = Path(__file__).resolve().parent
INSTALLED = PACKAGE / "tree"  # of a wheel (pyproject.toml)


@dataclass
class Tree:
    """The folders of the tree; every path is absolute and free of symbolic links."""

    root: Path

    @property
    def is_installed(self) -> bool:
        """Return whether a wheel installed it; it is a checkout otherwise."""
        return self.root == INSTALLED

    def file(self, name: str) -> Path:
        """Return the path of a file that is named as in a checkout."""
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
        """Return the file with the compiler's flags and the programs."""
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


def called_script() -> Path:
    """Return the path of the script that was called; before the current folder changes."""
    script = Path(sys.argv[0])
    return script if is_gone() else script.absolute()


def is_gone() -> bool:
    """Return whether the current folder was removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


SCRIPT = called_script()


def command_line(*words: str | Path) -> str:
    """Return `rlt` and these words as they must be typed in the current folder, with quotes."""
    return " ".join(map(quoted, [launcher(), *words]))


def quoted(word: str | Path) -> str:
    """Return a word as it must be typed in a shell, in one line and with the bytes that it has."""
    text = str(word)
    if os.name == "nt":  # for cmd.exe and PowerShell
        return text if re.fullmatch(r"[\w./\\:=,+@~-]+", text) else f'"{text}"'
    if text.isprintable():
        return shlex.quote(text)
    plain = "".join(c if c.isprintable() and c not in "\\'" else escaped(c) for c in text)
    return f"$'{plain}'"  # of bash, zsh and POSIX of 2024


def escaped(character: str) -> str:
    """Return a character's bytes as a shell reads them within $'...'."""
    data = character.encode(errors="surrogateescape")
    return "".join(f"\\{byte:03o}" for byte in data)


def launcher() -> str:
    """Return what starts this tree's launcher: as it was called, or its name or path."""
    called = os.environ.get("RLT_COMMAND", "")
    if os.name == "nt" and not TREE.is_installed:  # rlt.cmd, as cmd.exe and PowerShell call it
        return f".\\{path}" if not (path := near_path(LAUNCHER)).is_absolute() else str(path)
    if called and is_launcher(called):
        name = Path(called).name
        return name if shutil.which(name) == called else called
    if TREE.is_installed:  # its script, where the PATH finds it
        elsewhere = SCRIPT.name == "rlt" and shutil.which("rlt") != str(SCRIPT)
        return str(near_path(SCRIPT)) if elsewhere else "rlt"
    if is_launcher("rlt") or not LAUNCHER.is_file():
        return "rlt"
    path = near_path(LAUNCHER)
    return str(path) if path.is_absolute() else f"./{path}"


def is_launcher(command: str) -> bool:
    """Return whether this word starts this tree's launcher in a shell."""
    found = shutil.which(command)
    return found is not None and Path(found).resolve() == LAUNCHER


def near_path(path: Path) -> Path:
    """Return the path as a person types it: relative where it is below the current folder."""
    present = Path.cwd()
    return path.relative_to(present) if path.is_relative_to(present) else path


MARKER = "rlt.toml"
VARIABLE = "RLT_PROJECT"  # names the project, wherever the command is called
HIDE_OPTIONAL = "RLT_HIDE_OPTIONAL"  # =1: as if none of the optional tools were installed


class Project:
    """The folders of the project; every path is absolute and free of symbolic links."""

    @cached_property
    def root(self) -> Path:
        """Return the project's folder: the same for the whole process, from the first use on."""
        return find_project()

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def protocol(self) -> Path:
        """Return the folder of what is generated from the description of the wire format."""
        return self.build / "protocol"

    @property
    def generated(self) -> Path:
        """Return the folder of generated headers: Gymnasium's tasks, and experiments' sizes."""
        return self.build / "gymnasium_tasks"

    @property
    def named_tasks(self) -> Path:
        """Return the folder of the notes of which Python tasks may be imported."""
        return self.build / "named_tasks"

    @property
    def is_elsewhere(self) -> bool:
        """Return whether the project is another folder than the tree."""
        return self.root != TREE.root

    def owns(self, path: Path) -> bool:
        """Return whether a file is the user's, and not an installed one."""
        return self.is_elsewhere and path.is_relative_to(self.root)

    def origin(self, path: Path, installed: Path) -> str:
        """Return what a listing adds for a file of the project's; empty for an installed one."""
        if not self.owns(path):
            return ""
        return (
            " (this project's)"
            if not (installed / path.name).is_file()
            else (" (this project's, replaces the installed one)")
        )

    def files(self, folder: str, pattern: str, installed: Path) -> list[Path]:
        """Return the project's files and, of other names, the installed ones, sorted by name."""
        found = {}
        for directory in (installed, self.root / folder):
            found.update({path.name: path for path in directory.glob(pattern)})
        return sorted(found.values(), key=lambda path: path.stem)

    @property
    def include_directories(self) -> list[Path]:
        """Return the folders in which "environments/<name>.h" is found, as in cmake/board.cmake."""
        folders = (self.root / "environments", self.root / "contracts")
        return [self.root] if any(folder.is_dir() for folder in folders) else []

    def path_of(self, name: str) -> Path:
        """Return the path of a file that a description names: the project's, or else the tree's.
        PlatformIO's script calls it (firmware/platformio_flags.py)."""
        own = self.root / name
        return own if own.exists() else TREE.root / name

    def board_build(self, board: str) -> Path:
        """Return the folder in which CMake builds for this board: build/<board>."""
        return self.build / board


PROJECT = Project()


# What CMake, Ninja or ccache read as their own: lists, variables, quotes, patterns.
NOT_BUILDABLE = re.compile('["$;<>\\[\\]\\\\|\0-\x1f\x7f\ud800-\udfff]')


def require_buildable(folder: Path) -> None:
    """Raise UsageError where the toolchain cannot build in a folder of this path."""
    if found := NOT_BUILDABLE.search(folder.as_posix()):
        what = found.group()
        name = f'the character "{what}"' if what.isprintable() else "a control character"
        if what >= "\ud800":
            name = "bytes that are not UTF-8"
        raise UsageError(
            f"{quoted(folder)} has {name} in its path, which compilers cannot build with: rename "
            "that folder, or choose another"
        )


def is_project(folder: Path) -> bool:
    return (folder / MARKER).is_file()


def in_project() -> bool:
    """Return whether commands have a project where they are called; a checkout always is one."""
    try:
        return bool(find_project())
    except UsageError:
        return False


def find_project() -> Path:
    """Return RLT_PROJECT, else the project around the current folder, else the checkout."""
    if named := os.environ.get(VARIABLE):
        root = Path(named).resolve()
        if not is_project(root):
            raise UsageError(
                f"{VARIABLE}={named} is not a project: create an empty file {MARKER} in it"
            )
        return root
    present = Path.cwd()
    for folder in (present, *present.parents):
        if is_project(folder):
            return folder.resolve()
    if is_project(TREE.root):
        return TREE.root
    line = command_line("new", "--project", "DIR")
    raise UsageError(
        f"{present} is in no project: create one with `{line}` or by an empty file {MARKER}, or "
        f"name one in {VARIABLE}"
    )
