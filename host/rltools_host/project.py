"""The project: the folder where the user's files lie and where everything is written.

A file `rlt.toml`, which may be empty, makes a folder a project. A checkout has one.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from rltools_host.errors import UsageError
from rltools_host.tree import TREE

MARKER = "rlt.toml"
VARIABLE = "RLT_PROJECT"  # names the project, wherever the command is called


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
    def benchmarks(self) -> Path:
        """Results, and environments of what is compared with."""
        return self.build / "bench"

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
