"""Programs that a wheel brings for computers without a compiler: prebuilt/<board>/ of the tree.

host/wheel/build.py makes them. They are used as long as the tree has the sources that they were
made from.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rltools_host.build.boards import Board
from rltools_host.errors import BuildError
from rltools_host.files import files_below, read_json, write_atomically
from rltools_host.system import processor_features
from rltools_host.tree import PROJECT, TREE

CONTENT = "content.json"  # in a board's folder
AGAIN = "install the wheel again"
RECORD = "prebuilt.json"  # in a build tree: what was put there, by its SHA-256
# Of the tree, beside CMakeLists.txt: what a program is made from.
SOURCES = ("boards", "cmake", "experiments", "firmware", "host/native", "lib", "toolchains")
OVERRIDES = ("experiments", "boards")  # folders of a project, whose files replace the tree's
# What x86-64-v3 has beyond x86-64, as Linux names it.
X86_64_V3 = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")


@dataclass(frozen=True)
class Content:
    """The programs of a board.

    system, machine, features: of the computer that runs them, "" and none: firmware. targets: of
    each target its files in the build tree, with their SHA-256.
    """

    system: str
    machine: str
    features: Sequence[str]
    sources_sha256: str
    targets: Mapping[str, Mapping[str, str]]

    def runs_here(self) -> bool:
        here = self.system in ("", platform.system()) and self.machine in ("", platform.machine())
        return here and processor_features().issuperset(self.features)


def folder_of(board: Board) -> Path:
    return TREE.root / "prebuilt" / board.firmware


@cache
def content_of(folder: Path) -> Content | None:
    """Return what a folder has for this computer and this tree; None where there is nothing.

    Raise BuildError where it cannot be read.
    """
    if not (folder / CONTENT).is_file():
        return None
    try:
        content = Content(**read_json(folder / CONTENT))
    except (TypeError, ValueError) as error:
        raise BuildError(f"{folder / CONTENT} is damaged ({error}): {AGAIN}") from None
    fits = content.runs_here() and content.sources_sha256 == sources_sha256()
    return content if fits else None


@cache
def sources_sha256() -> str:
    """Return the SHA-256 of all sources and their names."""
    names = [name for folder in SOURCES for name in files_below(str(TREE.root / folder), folder)]
    digest = hashlib.sha256()
    for name in sorted([*names, "CMakeLists.txt"]):
        digest.update(f"{name} {sha256(TREE.root / name)}\n".encode())
    return digest.hexdigest()


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def has_compiler(board: Board) -> bool:
    """Return whether the system has the board's compiler, or one is asked for by its name."""
    return not any(tool.is_stood_in and not tool.is_asked_for for tool in board.toolchain.tools)


def is_users() -> bool:
    """Return whether the project has files of its own that programs may be made from."""
    folders = [PROJECT.root / name for name in OVERRIDES] if PROJECT.is_elsewhere else []
    own = (file for folder in folders for file in folder.glob("*"))
    return any((TREE.root / file.relative_to(PROJECT.root)).exists() for file in own)


def files_of(board: Board, targets: Sequence[str]) -> Mapping[str, str]:
    """Return the files of these targets with their SHA-256; none where one is to be compiled: on a
    computer with a compiler, of other sources, for another computer."""
    if not targets:
        return {}
    content = content_of(folder_of(board))
    if content is None or not content.targets.keys() >= set(targets):
        return {}
    if has_compiler(board) or is_users():
        return {}
    return {name: digest for target in targets for name, digest in content.targets[target].items()}


def provide(board: Board, files: Mapping[str, str], directory: Path) -> bool:
    """Put what files_of() has named into a build tree; return False where it is to be compiled.

    Files of an earlier wheel are replaced, and those that were compiled here are left alone. Raise
    BuildError where the wheel's file is damaged.
    """
    there = {name: sha256(directory / name) for name in files if (directory / name).is_file()}
    record = directory / RECORD
    known = read_json(record) if record.is_file() else {}
    compiled = [name for name, has in there.items() if has not in (files[name], known.get(name))]
    if not files or compiled:
        return False
    for name in (name for name, digest in files.items() if there.get(name) != digest):
        file = folder_of(board) / name
        data = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(data).hexdigest() != files[name]:
            raise BuildError(f"{file} is damaged or missing: {AGAIN}")
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(directory / name, data)
        (directory / name).chmod(0o755)
    if not known.items() >= files.items():
        write_atomically(record, json.dumps(known | dict(files)).encode())
    return True
