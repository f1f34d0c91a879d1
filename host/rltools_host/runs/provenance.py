"""The origin of a run: revision of the sources, versions of packages, machine; and the sources
that firmware is compiled from, as an archive for its folder.

Unpacked, CMake and PlatformIO build from the archive what they build here. It is a tar file whose
bytes depend on names, contents and which files can be executed, and is named after their hash. It
is written here: importing tarfile takes longer than all of this.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

import rltools_host
from rltools_host.files import files_below
from rltools_host.runs.contents import Run
from rltools_host.tree import MARKER, PROJECT, TREE

# Not all of platforms/, which has what PlatformIO downloads for real boards, too.
FOLDERS = (
    *("cmake", "firmware", "host/native", "lib", "toolchains"),
    *("platforms/rltools_emulated", "platforms/packages/tool-scons"),
    *("host/rltools_host/build", "host/rltools_host/system"),
)
OWN_FOLDERS = ("boards", "contracts", "environments", "experiments")  # of a project
FILES = (
    *("CMakeLists.txt", "CMakePresets.json", "platformio.ini", MARKER),
    "platforms/packages/tool-scons/.piopm",
    *(f"host/rltools_host/{name}.py" for name in ("__init__", "errors", "files", "lines", "tree")),
)
BLOCK = 512
PLAIN, EXECUTABLE = 0o644, 0o755
HASH_DIGITS = 12
GZIP = 31  # zlib's window of 2^15 bytes, with gzip's header around it
FASTEST = 1


class Sources(NamedTuple):
    name: str  # sources-<hash>.tar.gz
    data: bytes


def read_sources(tree: Path | None = None, generated: Sequence[str] = ()) -> Sources:
    """Return the archive of the sources of experiments, core and firmware, as they are now, with
    these headers."""
    project, tree = tree or PROJECT.root, tree or TREE.root
    files = paths_of_sources(tree, project)
    files.update({name: project / name for name in generated})
    content = b"".join(entry_of(files[name], name) for name in sorted(files)) + bytes(2 * BLOCK)
    compressor = zlib.compressobj(FASTEST, zlib.DEFLATED, GZIP)
    data = compressor.compress(content) + compressor.flush()
    return Sources(f"sources-{hashlib.sha256(content).hexdigest()[:HASH_DIGITS]}.tar.gz", data)


def last_change_s() -> float:
    """Return the time of the newest source, of the tree or the project."""
    paths = paths_of_sources(TREE.root, PROJECT.root).values()
    return max(path.stat().st_mtime for path in paths)


def paths_of_sources(tree: Path, project: Path) -> dict[str, Path]:
    """Return the path of each source by its name in the archive; a project's files replace those of
    the same name."""
    files = {name: path_in(tree, name) for name in source_files(tree)}
    if project != tree:
        own = (MARKER, *files_in(project, OWN_FOLDERS))
        files.update({name: project / name for name in own})
    return files


def source_files(tree: Path) -> list[str]:
    """Return the paths of the tree's sources, relative to it, in order."""
    names = [name for name in FILES if path_in(tree, name).is_file()]
    return sorted([*names, *files_in(tree, (*FOLDERS, *OWN_FOLDERS))])


def path_in(tree: Path, name: str) -> Path:
    return TREE.file(name) if tree == TREE.root else tree / name


def files_in(root: Path, folders: Sequence[str]) -> list[str]:
    present = [folder for folder in folders if path_in(root, folder).is_dir()]
    return [name for folder in present for name in files_below(str(path_in(root, folder)), folder)]


def entry_of(path: Path, name: str) -> bytes:
    """Return the entry of a file; a script that the build runs can be executed in the archive,
    too."""
    return tar_entry(name, path.read_bytes(), EXECUTABLE if os.access(path, os.X_OK) else PLAIN)


def tar_entry(name: str, data: bytes, mode: int = PLAIN) -> bytes:
    """Return the entry of a file without owner and time, in the format ustar (POSIX.1-1988)."""
    folder, _, last = name.rpartition("/")
    parts = (last, folder) if len(name.encode()) > 100 else (name, "")
    fields = (
        parts[0].encode().ljust(100, b"\0"),
        f"{mode:07o}\0".encode() + 2 * b"0000000\0",
        f"{len(data):011o}\0".encode(),
        b"00000000000\0",
        b" " * 8,  # instead of the checksum
        b"0".ljust(101, b"\0"),
        b"ustar\00000".ljust(88, b"\0"),
        parts[1].encode().ljust(155, b"\0"),
    )
    header = b"".join(fields).ljust(BLOCK, b"\0")
    checksum = f"{sum(header):06o}\0 ".encode()
    return header[:148] + checksum + header[156:] + data + bytes(-len(data) % BLOCK)


class Revision(TypedDict):
    """The revision of the tree, and True if it was changed since; None outside of git, also if a
    repository around an installed tree is another's."""

    git_revision: str | None
    git_dirty: bool | None


def git_revision() -> Revision:
    unknown: Revision = {"git_revision": None, "git_dirty": None}
    if not (TREE.root / ".git").exists():
        return unknown

    def git(*arguments: str) -> str:
        result = subprocess.run(
            ["git", "-C", str(TREE.root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return result.stdout.strip()

    try:
        revision = git("rev-parse", "HEAD")
        return {"git_revision": revision, "git_dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.SubprocessError):
        return unknown


def version() -> str:
    """Return the version of the package, and the revision of the tree if it has one."""
    revision = git_revision()["git_revision"]
    return f"{rltools_host.__version__}{f' {revision}' if revision else ''}"


def machine() -> dict[str, str | int | None]:
    return {
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


def package_versions() -> dict[str, str]:
    from pymavlink import __version__ as pymavlink_version  # importlib.metadata takes longer

    return {
        "rltools_host": rltools_host.__version__,
        "python": platform.python_version(),
        "pymavlink": pymavlink_version,
    }


def checkpoint_versions(run: Run) -> dict[str, str]:
    """Return the versions that a checkpoint states."""
    return run.versions | ({"git_revision": run.git_revision} if run.git_revision else {})
