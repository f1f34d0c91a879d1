"""The file that is an emulated board's flash, as long as the emulator runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rltools_host.boards.description import Board, list_boards
from rltools_host.errors import PortError, UsageError
from rltools_host.files import disk_error, partial_path, write_durably

PATIENCE_S = 2.0  # that another board may take to end


class StorageFile:
    """A board's storage, erased at first. One emulator at a time has it, which QEMU leaves open."""

    def __init__(self, board: Board, path: Path) -> None:
        storage = board.emulator.storage if board.emulator is not None else None
        if storage is None:
            keeping = [
                known.name for known in list_boards() if known.emulator and known.has_storage
            ]
            raise UsageError(
                f"{board.name} keeps its policies in memory, not in a file such as {path}: "
                f"take {' or '.join(keeping)}"
            )
        try:
            if not path.exists():
                create(path, b"\xff" * storage.bytes)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise disk_error(path, error) from None
        try:
            lock(self._descriptor, path)
            if (found := os.fstat(self._descriptor).st_size) != storage.bytes:
                raise UsageError(
                    f"{path} is not a storage of {board.name}: it has {found:,} bytes, not "
                    f"{storage.bytes:,}; name another file, or one that does not exist"
                )
        except BaseException:
            self.close()
            raise
        # QEMU takes a comma for the end of the file's name, but for two of them.
        name = os.path.abspath(path).replace(",", ",,")
        self.arguments = [argument.replace("{file}", name) for argument in storage.arguments]

    def close(self) -> None:
        os.close(self._descriptor)


def lock(descriptor: int, path: Path, kind: int = fcntl.LOCK_EX) -> None:
    """PortError where another board has the file, and does not end soon."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise PortError(
                    f"{path} is in use by another board: end that one, or name another file"
                ) from None
        time.sleep(0.05)


@contextlib.contextmanager
def copied(path: Path) -> Iterator[Path]:
    """A copy of a storage that no board has at the time. It has no name in any folder, and goes
    with this process, however that ends."""
    with tempfile.TemporaryFile() as copy:
        try:
            with path.open("rb") as original:
                lock(original.fileno(), path, fcntl.LOCK_SH)
                shutil.copyfileobj(original, copy)
            copy.flush()
        except OSError as error:
            raise disk_error(Path(tempfile.gettempdir()), error) from None
        yield Path(f"/proc/{os.getpid()}/fd/{copy.fileno()}")


def create(path: Path, content: bytes) -> None:
    """Makes the whole file; leaves one that another process has made meanwhile."""
    partial = partial_path(path)
    try:
        write_durably(partial, content)
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)
