"""Saves: checkpoint and policy of one training state, in a folder that is named after it.

A save is one step. Its files are written into a hidden folder, synchronised, and appear together by
one rename, as save-<step>-<state's hash>; the save is the run's from the run.json on that names it,
and what was saved before is removed after that. So a process that is killed at any point leaves the
save before or the new one, and besides at most what the next save removes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltools_host.files import (
    disk_error,
    is_partial,
    partial_path,
    synchronise_folder,
    write_durably,
)
from rltools_host.runs.policy_file import state_of_policy
from rltools_host.runs.schema import SAVE_NAME

CHECKPOINT_FILE = "checkpoint.safetensors"
POLICY_FILE = "policy.rltp"
SAVED_FILES = (CHECKPOINT_FILE, POLICY_FILE)
HASH_DIGITS = 12  # of the state's hash, in the folder's name


def write_save(run: Path, step: int, state_sha256: str, files: Mapping[str, bytes]) -> str:
    """Writes a save; returns its folder's name, for run.json. If that fails, there is none."""
    path = free_path(run, f"save-{step}-{state_sha256[:HASH_DIGITS]}")
    partial = partial_path(path)
    try:
        try:
            os.mkdir(partial)
            for name, data in files.items():
                write_durably(partial / name, data)
            synchronise_folder(partial)
            os.rename(partial, path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        synchronise_folder(run)
    except OSError as error:
        raise disk_error(path, error) from None
    return path.name


def free_path(run: Path, name: str) -> Path:
    """`name`, or `name-2` and so on: the same state may be saved again, to complete a save."""
    path, number = run / name, 2
    while path.exists():
        path, number = run / f"{name}-{number}", number + 1
    return path


def remove_others(run: Path, name: str) -> None:
    """Removes earlier saves; what cannot be removed stays, and does no harm."""
    for other in names_in(run):
        if re.fullmatch(SAVE_NAME, other) and other != name:
            remove(run / other)
    for file in SAVED_FILES:  # of a run of format 1
        remove(run / file)


def remove_partials(run: Path) -> None:
    """Removes what a write left that was killed."""
    for name in names_in(run):
        if is_partial(name):
            remove(run / name)


def names_in(run: Path) -> list[str]:
    try:
        return os.listdir(run)
    except OSError:
        return []


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def saves_to_resume(run: Path, metadata: Mapping[str, Any]) -> list[Path]:
    """Folders of checkpoints, best first: whole saves that run.json does not name yet, as their
    process was killed just before, then the one that it names.
    """
    committed = run / str(metadata.get("save", ""))
    committed_step = int(metadata.get("checkpoint_step", 0))
    found = [run / name for name in names_in(run) if re.fullmatch(SAVE_NAME, name)]
    newer = [path for path in found if step_of(path, metadata) > committed_step]
    newer.sort(key=lambda path: step_of(path, metadata), reverse=True)
    return [*newer, committed]


def step_of(save: Path, metadata: Mapping[str, Any]) -> int:
    """The step that a save's name states, or run.json of one that has no folder of its own."""
    match = re.fullmatch(SAVE_NAME, save.name)
    return int(match.group(1)) if match else int(metadata.get("checkpoint_step", 0))


def is_whole(save: Path, state_sha256: str) -> bool:
    """Whether a save has a policy, of this state."""
    try:
        data = (save / POLICY_FILE).read_bytes()
    except OSError:
        return False
    return state_of_policy(data) == state_sha256
