"""Writes files whole or not at all, and says what went wrong in one sentence."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rltools_host.errors import DamagedFileError, DiskError, UsageError

MOST_JSON_BYTES = 100_000_000
PARTIAL_SUFFIX = ".partial"
FULL = (errno.ENOSPC, errno.EDQUOT)
PARTIAL_NAME = re.compile(r"\..+\.\d+\.partial")
DEEPEST_NESTING = 20  # of JSON that is ours; far below what Python's own functions take


def disk_error(path: Path, error: OSError) -> DiskError:
    """One sentence for a file that could not be written."""
    if error.errno in FULL:
        first = "free some space"
        remedy = f"{first}, then run the command again"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        first, remedy = "make its folder writable", "choose another folder"
    else:
        first, remedy = "check the disk", "check the disk, or choose another folder"
    reason = error.strerror or str(error)
    if error.errno == errno.ENOENT:
        gone = [folder for folder in path.parents if not folder.is_dir()]
        if gone:
            reason, first = f"there is no folder {gone[-1]}", "see that it is there"
            remedy = f"{first}, and run the command again"
    cause = f"cannot write {path}: {reason}"
    return DiskError(f"{cause}; {remedy}", cause, first)


def partial_path(path: Path) -> Path:
    """Where a file or folder is made before it is renamed to its place."""
    return path.with_name(f".{path.name}.{os.getpid()}{PARTIAL_SUFFIX}")


@contextlib.contextmanager
def in_place_of(folder: Path) -> Iterator[Path]:
    """An empty folder, which takes the other's place at once when it is written; DiskError, and
    nothing else, where the disk does not take it."""
    new = partial_path(folder)
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        yield new
        if folder.exists():
            shutil.rmtree(folder)
        new.rename(folder)
    except OSError as error:
        raise disk_error(folder, error) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def is_partial(name: str) -> bool:
    """Whether this is what a write left that was killed."""
    return PARTIAL_NAME.fullmatch(name) is not None


def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def reserve(path: Path, count: int) -> None:
    """Makes a file of `count` bytes that has its place on the disk, for what is written later."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.posix_fallocate(descriptor, 0, max(1, count))
    except OSError as error:
        if error.errno in FULL:  # others are of a disk that reserves nothing
            raise
    finally:
        os.close(descriptor)


def write_durably(path: Path, data: bytes) -> None:
    """Writes a file of this name, whose content is on the disk when this returns. One that is there
    is written over in its place, which it may have been reserved for."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        write_all(descriptor, data)
        os.ftruncate(descriptor, len(data))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def synchronize_folder(path: Path) -> None:
    """Has the folder's names on the disk: those that were made, renamed and removed in it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file beside its place and renames it; if that fails, DiskError and no file."""
    partial = partial_path(path)
    try:
        try:
            write_durably(partial, data)
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
        synchronize_folder(path.parent)
    except OSError as error:
        raise disk_error(path, error) from None


def write_changed(path: Path, content: str | bytes) -> None:
    """The same, with its folder; a file that has this content stays untouched, and so does what was
    built of it."""
    data = content.encode() if isinstance(content, str) else content
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)


def plain_json(value: Any) -> Any:
    """The value with null for numbers that JSON cannot write (not a number, infinite)."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value


def read_json(path: Path) -> Any:
    """The document of a file; DamagedFileError, which names it, where it is none."""
    try:
        return parse_json(read_limited(path, MOST_JSON_BYTES))
    except OSError as error:
        raise DamagedFileError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFileError(f"{path} is damaged, it is not JSON: {error}") from None


def read_limited(path: Path, most_bytes: int) -> bytes:
    """A file of somebody's. ValueError where it is longer; OSError where it is no plain file."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"it has more than {most_bytes:,} bytes")
    return data


def parse_json(data: bytes | str) -> Any:
    """What JSON says. ValueError where it is none (with the place), is nested deeply or has text
    that is none."""
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{place}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [document]
    for _ in range(DEEPEST_NESTING):
        inner: list[Any] = []
        for value in level:
            if isinstance(value, str):
                value.encode()  # UnicodeEncodeError, a ValueError, for half of a surrogate pair
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, dict):
                inner += [*value, *value.values()]
        if not inner:
            return document
        level = inner
    raise ValueError("it is nested too deeply")


class FolderLock:
    """Of one folder; the system lets go when this process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> None:
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise UsageError(
                f"another rlt is training in {self._path}: wait for it or stop it first"
            ) from None
        except OSError as error:
            raise disk_error(self._path, error) from None

    def is_taken(self) -> bool:
        """Whether another process has it now."""
        try:
            self.take()
        except UsageError:
            return True
        self.release()
        return False

    def release(self) -> None:
        """A second time does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
