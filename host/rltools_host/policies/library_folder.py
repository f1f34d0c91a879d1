"""A folder that needs nothing of this repository: a policy, and the headers that run it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from rltools_host.errors import UsageError
from rltools_host.files import disk_error, partial_path
from rltools_host.tree import TREE

INCLUDE = TREE.include
LICENSE = TREE.root / "LICENSE"
VERSION = "0.1.0"
LIBRARY = "rltools"  # the folder of its headers, in each


def library_headers(sources: Iterable[bytes]) -> dict[str, bytes]:
    """What these sources include of the library, and all that those include: name -> content.

    What is included behind a condition counts as well: it is another processor's.
    """
    found: dict[str, bytes] = {}
    waiting = list(sources)
    while waiting:
        for name in re.findall(r'#include "(rltools/[^"]+)"', waiting.pop().decode()):
            if name not in found:
                found[name] = (INCLUDE / name).read_bytes()
                waiting.append(found[name])
    return dict(sorted(found.items()))


def write_folder(folder: Path, files: Mapping[str, bytes], mark: str) -> None:
    """The folder appears whole, in place of an earlier one; `mark` is a file that each has. What a
    user has put into that stays, but for headers of the library's own folder."""
    if folder.exists() and not (folder / mark).is_file():
        raise UsageError(f"{folder} is there already and has no {mark}: choose another folder")
    partial = partial_path(folder)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        for name, content in files.items():
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for path in sorted(folder.rglob("*")):
            target = partial / path.relative_to(folder)
            is_own = LIBRARY in target.relative_to(partial).parts
            if path.is_file() and not target.exists() and not is_own:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)
        if folder.exists():
            shutil.rmtree(folder)
        partial.rename(folder)
    except OSError as error:
        raise disk_error(folder, error) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def folder_of(root: Path, *parts: str) -> dict[str, bytes]:
    """Every file of these parts of it, of all of it where none is named."""
    found = [path for part in parts or ("",) for path in ((root / part), *(root / part).rglob("*"))]
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(found)
        if path.is_file()
    }
