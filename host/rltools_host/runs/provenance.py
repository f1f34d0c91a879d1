"""The origin of a run: revision of the sources, versions of packages, machine; and the sources
that firmware is compiled from, as an archive for its folder.

Unpacked, CMake and PlatformIO build from the archive what they build here. It is a tar file whose
bytes depend on names, contents and which files can be executed, and is named after their hash.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import zlib
from collections.abc import Callable, Sequence
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
HASH_DIGITS = 12
GZIP = 31  # zlib's window of 2^15 bytes, with gzip's header around it
FASTEST = 1


class Sources(NamedTuple):
    name: str  # sources-<hash>.tar.gz
    data: bytes


def read_sources(generated: Sequence[str] = ()) -> Sources:
    """Return the archive of the sources of experiments, core and firmware, as they are now, with
    these headers."""
    files = paths_of_sources() | {name: PROJECT.root / name for name in generated}
    content = b"".join(entry_of(files[name], name) for name in sorted(files)) + bytes(2 * BLOCK)
    compressor = zlib.compressobj(FASTEST, zlib.DEFLATED, GZIP)
    data = compressor.compress(content) + compressor.flush()
    return Sources(f"sources-{hashlib.sha256(content).hexdigest()[:HASH_DIGITS]}.tar.gz", data)


def last_change_s() -> float:
    """Return the time of the newest source, of the tree or the project."""
    return max(path.stat().st_mtime for path in paths_of_sources().values())


def paths_of_sources() -> dict[str, Path]:
    """Return the path of each source by its name in the archive; a project's files replace those of
    the same name."""
    files = {name: TREE.file(name) for name in FILES if TREE.file(name).is_file()}
    files |= files_in((*FOLDERS, *OWN_FOLDERS), TREE.file)
    if PROJECT.is_elsewhere:
        files |= {MARKER: PROJECT.root / MARKER, **files_in(OWN_FOLDERS, PROJECT.root.joinpath)}
    return files


def files_in(folders: Sequence[str], path_of: Callable[[str], Path]) -> dict[str, Path]:
    present = [folder for folder in folders if path_of(folder).is_dir()]
    names = [name for folder in present for name in files_below(str(path_of(folder)), folder)]
    return {name: path_of(name) for name in names}


def entry_of(path: Path, name: str) -> bytes:
    """Return the entry of a file, without owner and time; a script that the build runs can be
    executed in the archive, too."""
    from tarfile import TarInfo  # which takes some milliseconds

    entry, data = TarInfo(name), path.read_bytes()
    entry.size, entry.mode = len(data), 0o755 if os.access(path, os.X_OK) else 0o644
    return entry.tobuf() + data + bytes(-len(data) % BLOCK)


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
