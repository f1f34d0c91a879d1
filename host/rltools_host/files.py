"""Writing files whole or not at all, reading plain files of a bounded length, and locking a folder.

What somebody else may have written (files of a run, logs, gates) is opened here alone.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from rltools_host.errors import DamagedFileError, DiskError, UsageError
from rltools_host.system import (
    BINARY,
    NO_FOLLOW,
    READ_PLAIN,
    lock,
    open_folder,
    replace,
    synchronize_folder,
)

MAX_JSON_BYTES = 32_000_000
MAX_JSON_MARKS = 2_000_000  # commas, colons and opening brackets: each value has one of them
PARTIAL_SUFFIX = ".partial"
FULL = (errno.ENOSPC, errno.EDQUOT)
PARTIAL_NAME = re.compile(r"\..+\.\d+\.partial")
MAX_NESTING = 20  # of our JSON; far below the limit of Python's functions


def disk_error(path: Path, error: OSError) -> DiskError:
    """Return the error for a file that could not be written, with a remedy."""
    if error.errno in FULL:
        first = "free some space"
        remedy = f"{first}, then run the command again"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        first = "make its folder writable"
        remedy = f"{first}, or choose another"
    else:
        first, remedy = "check the disk", "check the disk, or choose another folder"
    reason = error.strerror or str(error)
    if error.errno == errno.ENOENT:
        gone = [folder for folder in path.parents if not folder.is_dir()]
        if gone:
            reason, first = f"there is no folder {gone[-1]}", "see that it is there"
            remedy = f"{first}, and run the command again"
    if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        files = [each for each in (path, *path.parents) if each.exists() and not each.is_dir()]
        if files:
            reason, first = f"{files[0]} is a file and no folder", f"move {files[0]} away"
            remedy = f"{first}, then run the command again"
    cause = f"cannot write {path}: {reason}"
    return DiskError(f"{cause}; {remedy}", cause, first)


def partial_path(path: Path) -> Path:
    """Return the path at which a file or folder is written before it is renamed."""
    return path.with_name(f".{path.name}.{os.getpid()}{PARTIAL_SUFFIX}")


@contextlib.contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, which replaces `folder` at the end.

    Raise DiskError, and leave `folder` as it was, where it cannot be written.
    """
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
    """Return whether a killed process may have left a file of this name."""
    return PARTIAL_NAME.fullmatch(name) is not None


def files_below(path: str, folder: str) -> Iterator[str]:
    """Yield the paths of the files in a folder, but hidden and compiled ones, below `folder`."""
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path, f"{folder}/{entry.name}")
            elif entry.is_file():
                yield f"{folder}/{entry.name}"


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes, however many the system takes at once."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def write_durably(path: Path, data: bytes) -> None:
    """Write a file, and return when its content is on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY, 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file under another name and rename it; raise DiskError where that fails."""
    partial = partial_path(path)
    try:
        try:
            write_durably(partial, data)
            replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise
        synchronize_folder(path.parent)
    except OSError as error:
        raise disk_error(path, error) from None


def write_changed(path: Path, content: str | bytes) -> None:
    """Write a file and its folder, unless the file has this content already.

    The time of an unchanged file stays, so nothing is built again because of it.
    """
    data = content.encode() if isinstance(content, str) else content
    if not path.is_file() or path.read_bytes() != data:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise disk_error(path, error) from None
        write_atomically(path, data)


def plain_json(value: Any) -> Any:
    """Return the value with None for numbers that JSON cannot have (NaN, infinite)."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value


def read_json(path: Path, within: Path | None = None) -> Any:
    """Return the document of a file; raise DamagedFileError where it is not JSON."""
    try:
        return load_json(path, within)
    except OSError as error:
        raise DamagedFileError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFileError(f"{path} is damaged, it is not JSON: {error}") from None


def load_json(path: Path, within: Path | None = None) -> Any:
    """Return the document of a file; raise OSError or ValueError where there is none."""
    return parse_json(read_limited(path, MAX_JSON_BYTES, within))


def open_plain(path: Path, within: Path | None = None) -> BinaryIO:
    """Open a file to read it; raise OSError for a pipe or a device, without waiting for one.

    within: the folder that it belongs to, such as a run's; raise OSError where a link leads out of
    it.
    """
    real = os.fspath(path)
    flags = READ_PLAIN
    if within is not None:
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(os.path.realpath(within)):
            raise OSError(errno.ELOOP, f"a link leads out of {within}, copy the file there")
        flags |= NO_FOLLOW
    descriptor = os.open(real, flags)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        raise OSError(errno.EINVAL, "it is not a file")
    return os.fdopen(descriptor, "rb")


def read_limited(path: Path, max_bytes: int, within: Path | None = None) -> bytes:
    """Return a file's bytes; raise ValueError where it is longer, OSError as open_plain() does."""
    with open_plain(path, within) as file:
        is_longer = os.fstat(file.fileno()).st_size > max_bytes
        data = b"" if is_longer else file.read(max_bytes + 1)
    if is_longer or len(data) > max_bytes:
        raise ValueError(f"it has more than {max_bytes:,} bytes")
    return data


def parse_json(data: bytes | str) -> Any:
    """Return the document; raise ValueError with line and column where it is not JSON.

    Too many values are refused before there is memory for them; deep nesting and text with half of
    a surrogate pair are refused too.
    """
    text = data if isinstance(data, str) else data.decode("latin-1")
    if sum(map(text.count, ",:[{")) > MAX_JSON_MARKS:
        raise ValueError(f"it has more than {MAX_JSON_MARKS:,} commas, colons and brackets")
    try:
        document = json.loads(data)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}: {error.msg}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [document]
    for _ in range(MAX_NESTING):
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
    """A lock of one folder, which the system releases when this process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock; raise UsageError where another process has it."""
        try:
            self._descriptor = open_folder(self._path)
            is_locked = lock(self._descriptor)
        except OSError as error:
            raise disk_error(self._path, error) from None
        if not is_locked:
            self.release()
            raise UsageError(
                f"another rlt is training in {self._path}: wait for it or stop it first"
            )

    def is_taken(self) -> bool:
        """Return whether another process has the lock."""
        try:
            self.take()
        except UsageError:
            return True
        self.release()
        return False

    def release(self) -> None:
        """Release the lock; do nothing where it is not taken."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
