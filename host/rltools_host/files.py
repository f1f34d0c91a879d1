"""Writes files whole or not at all, and says what went wrong in one sentence."""

from __future__ import annotations

import contextlib
import errno
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltools_host.errors import DiskError


def disk_error(path: Path, error: OSError) -> DiskError:
    """One sentence for a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "free some space, then run the command again"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        remedy = "choose another folder with --out"
    else:
        remedy = "check the disk, or choose another folder with --out"
    return DiskError(f"cannot write {path}: {error.strerror or error}; {remedy}")


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file beside its place and renames it; if that fails, DiskError and no file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        try:
            descriptor = os.open(
                partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666
            )
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
    except OSError as error:
        raise disk_error(path, error) from None


def plain_json(value: Any) -> Any:
    """The value with null for numbers that JSON cannot write (not a number, infinite)."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    return value
