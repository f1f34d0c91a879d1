"""Names of runs: which there are, which one is meant, what a new one is called."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from rltools_host.errors import UnknownNameError, UsageError, unknown_name
from rltools_host.files import disk_error
from rltools_host.paths import RUNS_DIRECTORY

RUN_FILE = "run.json"
GROUP_FILE = "group.json"  # of a folder of runs
LATEST = "latest"
DATED = re.compile(r"\d{8}-\d{6}-")


def find_run(run: str | Path, runs_directory: Path = RUNS_DIRECTORY) -> Path:
    """Where a run lies; UnknownNameError when there is none.

    A path, a name under runs/, or `latest`, which is the newest run in the folder before it:
    `latest` and `runs/latest` are that of runs/, wherever one is.
    """
    path = Path(run)
    if str(run) and is_run(path):
        return path
    if path.name == LATEST:
        folder = folder_of_latest(path, (RUN_FILE,), runs_directory)
        if names := run_names(folder):
            return folder / names[-1]
        raise UnknownNameError(f"there is no run in {folder}: train one first, or name its folder")
    if str(run):
        for candidate in (runs_directory / path, runs_directory.parent / path):
            if is_run(candidate):
                return candidate
        if (group := find_group(run, runs_directory)) is not None:
            raise UsageError(f"{group} is a group of runs: name one of them{example_of(group)}")
    raise unknown_name("run", str(run), run_names(runs_directory)[-5:])


def find_group(name: str | Path, runs_directory: Path = RUNS_DIRECTORY) -> Path | None:
    """Where a group of this name lies; None where the name is a run's or nothing's.

    `latest` is a group where the newest of runs and groups is one.
    """
    path = Path(name)
    if not str(name):
        return None
    if path.name == LATEST and not is_group(path):
        files = (RUN_FILE, GROUP_FILE)
        folder = folder_of_latest(path, files, runs_directory)
        path = folder / run_names(folder, files)[-1] if run_names(folder, files) else path
    candidates = (path, runs_directory / path, runs_directory.parent / path)
    return next((candidate for candidate in candidates if is_group(candidate)), None)


def folder_of_latest(path: Path, files: Sequence[str], runs_directory: Path) -> Path:
    folder = path.parent
    is_runs = folder == Path(runs_directory.name) and not run_names(folder, files)
    return runs_directory if folder == Path() or is_runs else folder


def is_run(path: Path) -> bool:
    return os.path.isfile(path / RUN_FILE)


def is_group(path: Path) -> bool:
    return os.path.isfile(path / GROUP_FILE)


def example_of(group: Path) -> str:
    """A clause with a run of the group."""
    for found in sorted(group.rglob(RUN_FILE)):
        return f", such as {shlex.quote(str(found.parent))}"
    return ""


def run_names(
    runs_directory: Path = RUNS_DIRECTORY, files: Sequence[str] = (RUN_FILE,)
) -> list[str]:
    """The runs in a folder, oldest first: by the date in their names, or when they were written."""
    dated = []
    for path in (found for file in files for found in runs_directory.glob(f"*/{file}")):
        name = path.parent.name
        written = ""
        if not DATED.match(name):
            try:
                written = time.strftime("%Y%m%d-%H%M%S-", time.localtime(path.stat().st_mtime))
            except OSError:  # removed meanwhile
                continue
        dated.append((f"{written}{name}", name))
    return [name for _, name in sorted(dated)]


def require_empty(path: Path) -> None:
    """UsageError unless a new run may be written to `path`: nothing, or an empty folder."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is not a folder: choose another with --out")
    if path.is_dir() and any(path.iterdir()):
        go_on = (
            f", or go on with --resume {shlex.quote(str(path))}"
            if is_run(path) or is_group(path)
            else ""
        )
        raise UsageError(f"{path} is not empty: choose another folder with --out{go_on}")


def make_empty(path: Path) -> None:
    """Makes the folder; UsageError where it is not empty, DiskError where it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        pass  # no folder: `require_empty` says so
    except OSError as error:
        raise disk_error(path, error) from None
    require_empty(path)


def new_run_path(name: str, runs_directory: Path = RUNS_DIRECTORY) -> Path:
    """Makes the folder `runs/<name>`, or `runs/<name>-2` and so on when that is taken."""
    path = runs_directory / name
    number = 2
    while True:
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            path = runs_directory / f"{name}-{number}"
            number += 1
        except OSError as error:
            raise disk_error(path, error) from None
        else:
            return path
