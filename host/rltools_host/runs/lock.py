"""Keeps other processes from writing to a folder while this one does."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from rltools_host.errors import UsageError
from rltools_host.files import disk_error


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
