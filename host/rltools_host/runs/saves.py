"""Saves: checkpoint and policies of one training state, in a folder that is named after it.

A save is one step. Its files are written into a hidden folder, synchronized, and appear together by
one rename, as save-<step>-<state's hash>; the save is the run's from the run.json on that names it,
and what was saved before is removed after that. So a process that is killed at any point leaves the
save before or the new one, and besides at most what the next save removes.

A policy's header (docs/policy_image.md) says of which training state it is; in format 2 a record is
behind it. It is read without NumPy, which training does not load.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltools_host.files import (
    disk_error,
    is_partial,
    partial_path,
    read_limited,
    write_durably,
)
from rltools_host.runs.contents import SAVE_NAME, Run
from rltools_host.system import replace, synchronize_folder

CHECKPOINT_FILE = "checkpoint.safetensors"
POLICY_FILE = "policy.rltp"
BEST_FILE = "best.rltp"  # the policy of the best evaluation up to this state, where it was kept
MAX_POLICY_BYTES = 256_000_000
SAVED_FILES = (CHECKPOINT_FILE, POLICY_FILE, BEST_FILE)
# After an evaluation a run is saved if saves take no more than this part of its time; what the
# first one takes is not known, and is taken to be little.
LARGEST_SHARE, FIRST_SAVE_S = 0.05, 0.1
HASH_DIGITS = 12  # of the state's hash, in the folder's name


class SavesOnTheWay:
    """The times at which a run in training is saved: after evaluations, as often as that takes a
    small part of its time, and by time. So a fault costs what came after an evaluation at most."""

    def __init__(self) -> None:
        self._at_s = 0.0  # of the last one, by the time in training
        self._cost_s = FIRST_SAVE_S
        self._is_evaluated = False  # since then

    def evaluated(self) -> None:
        self._is_evaluated = True

    def saved(self, at_s: float, cost_s: float) -> None:
        """Note a save `at_s` of the time in training, which took `cost_s` besides."""
        self._at_s, self._cost_s, self._is_evaluated = at_s, cost_s, False

    def is_due(self, now_s: float, every_s: float) -> bool:
        since_s = now_s - self._at_s
        return since_s > every_s or (self._is_evaluated and since_s * LARGEST_SHARE > self._cost_s)


def write_save(run: Path, step: int, state_sha256: str, files: Mapping[str, bytes]) -> str:
    """Write a save, and return the name of its folder for run.json. If that fails, there is
    none."""
    path = free_path(run, f"save-{step}-{state_sha256[:HASH_DIGITS]}")
    partial = partial_path(path)
    try:
        try:
            partial.mkdir(exist_ok=True)
            for name, data in files.items():
                write_durably(partial / name, data)
            synchronize_folder(partial)
            replace(partial, path)
        except BaseException:
            remove_save(partial)
            raise
        synchronize_folder(run)
    except OSError as error:
        raise disk_error(path, error) from None
    return path.name


def free_path(run: Path, name: str) -> Path:
    """Return the path of `name`, or `name-2` and so on: the same state may be saved again, to
    complete a save."""
    path, number = run / name, 2
    while path.exists():
        path, number = run / f"{name}-{number}", number + 1
    return path


def remove_others(run: Path, name: str) -> None:
    """Remove earlier saves; one that cannot be removed stays, and does no harm."""
    for other in saves_in(run):
        if other != name:
            remove_save(run / other)


def remove_partials(run: Path) -> None:
    """Remove the files of a write that was killed."""
    for name in names_in(run):
        if is_partial(name):
            remove_save(run / name)
            with contextlib.suppress(OSError):
                (run / name).unlink()


def names_in(run: Path) -> list[str]:
    try:
        return os.listdir(run)
    except OSError:
        return []


def saves_in(run: Path) -> list[str]:
    return [name for name in names_in(run) if re.fullmatch(SAVE_NAME, name)]


def holds_save(run: Path) -> bool:
    """Return whether anything that was saved is there."""
    return bool(saves_in(run))


def remove_save(path: Path) -> None:
    """Remove the files of a save; its folder stays if others' files are in it."""
    for name in SAVED_FILES:
        with contextlib.suppress(OSError):
            (path / name).unlink()
    with contextlib.suppress(OSError):
        path.rmdir()


def saves_to_resume(path: Path, run: Run) -> list[Path]:
    """Return the folders of checkpoints, best first.

    First are whole saves that run.json does not name, as their process was killed just before; then
    the one that it names; if that one is gone, any other.
    """
    committed = path / (run.save or "")
    is_there, step = (committed / CHECKPOINT_FILE).is_file(), step_of(committed)
    found = [path / name for name in saves_in(path)]
    newer = [save for save in found if not is_there or step_of(save) > step]
    newer.sort(key=step_of, reverse=True)
    return [*newer, committed]


def step_of(save: Path) -> int:
    """Return the step that a save's name states; 0 where it is none."""
    match = re.fullmatch(SAVE_NAME, save.name)
    return int(match.group(1)) if match else 0


def is_whole(save: Path, state_sha256: str | None) -> bool:
    """Return whether a save has a policy, of this state."""
    try:
        data = read_limited(save / POLICY_FILE, MAX_POLICY_BYTES, save.parent)
    except (OSError, ValueError):
        return False
    return state_sha256 is not None and state_of_policy(data) == state_sha256


# -- the header of a policy ------------------------------------------------------------------------

MAGIC = b"RLTP"
VERSION, RECURRENT_VERSION = 1, 2
HEADER = struct.Struct("<4sHHIIHHHHIIIIII32s32s32s")
RECURRENCE = struct.Struct("<IIHHI")  # behind the header of format 2
CRC32_PLACE = slice(12, 16)  # in the header
STEP_PLACE, STATE_PLACE = 11, 15  # among the header's fields


def image_crc32(data: bytes) -> int:
    """Return the CRC-32 of all bytes but the four that hold it."""
    return zlib.crc32(data[CRC32_PLACE.stop :], zlib.crc32(data[: CRC32_PLACE.start]))


def header_bytes(version: int) -> int:
    """Return the size of the header; the data follows it."""
    return HEADER.size + (RECURRENCE.size if version == RECURRENT_VERSION else 0)


def state_of_policy(data: bytes) -> str | None:
    """Return the SHA-256 of the training state that the image states; None if it is damaged."""
    fields = _fields(data)
    state: bytes | None = None if fields is None else fields[STATE_PLACE]
    return None if state is None else state.hex()


def step_of_policy(data: bytes) -> int | None:
    """Return the step of training that the image states; None if it is damaged."""
    fields = _fields(data)
    return None if fields is None else int(fields[STEP_PLACE])


def _fields(data: bytes) -> tuple[Any, ...] | None:
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        return None
    if image_crc32(data) != int.from_bytes(data[CRC32_PLACE], "little"):
        return None
    return HEADER.unpack_from(data)
