"""Stands between the host tools and the disk: counts calls, ends the process or fails at one."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHANGING = ("open", "write", "fsync", "close", "replace", "rename", "mkdir", "unlink", "rmdir")
Before = Callable[[str, tuple[Any, ...]], None]


@contextmanager
def watched(before: Before, names: tuple[str, ...] = CHANGING) -> Iterator[None]:
    """Calls `before` with name and arguments ahead of each call that changes files."""
    originals = {name: getattr(os, name) for name in names}

    def wrap(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            before(name, arguments)
            return originals[name](*arguments, **options)

        return call

    for name in names:
        setattr(os, name, wrap(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(os, name, original)


def killer(point: int) -> Before:
    """Kills this process ahead of a call; a write has a second point, after half of its bytes."""
    left = point
    real_write = os.write

    def before(name: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        if name == "write":
            if left == 0:
                real_write(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    return before


def ends_killed_at(point: int, act: Callable[[], None]) -> bool:
    """Acts in a forked process that is killed at this point; whether it came to that."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with watched(killer(point)):
                act()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the process failed"
    return os.WIFSIGNALED(status)


class FullDisk:
    """From a call on, all that need space on the disk fail."""

    NEED_SPACE = ("open", "write", "fsync", "replace", "rename", "mkdir")

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "open" and not arguments[1] & os.O_CREAT:
            return
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def path_of(descriptor: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{descriptor}"))


class SmallDisk:
    """Stands in for os.write: a folder takes some bytes, then the disk is full."""

    def __init__(self, room: int, folder: Path) -> None:
        self.room, self.folder = room, folder
        self._write = os.write

    def __call__(self, descriptor: int, data: bytes | memoryview) -> int:
        if not path_of(descriptor).is_relative_to(self.folder):
            return self._write(descriptor, data)
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = self._write(descriptor, bytes(data[: self.room]))
        self.room -= taken
        return taken


class Durability:
    """Follows what would survive a power failure, and finds a file that is used before it does."""

    def __init__(self) -> None:
        self.contents: set[Path] = set()  # files with content that is not on the disk yet
        self.made: set[Path] = set()  # names that were made in a folder that is not on the disk yet
        self.renamed: set[Path] = set()  # likewise, by renaming
        self.written: set[Path] = set()
        self.faults: list[str] = []

    def __call__(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "open":
            if arguments[1] & os.O_CREAT:
                self.made.add(Path(arguments[0]))
                self.written.add(Path(arguments[0]))
        elif name == "write":
            self.contents.add(path_of(arguments[0]))
        elif name == "fsync":
            self._synchronize(path_of(arguments[0]))
        elif name == "mkdir":
            self.made.add(Path(arguments[0]))
        elif name in ("replace", "rename"):
            self._rename(Path(arguments[0]), Path(arguments[1]))

    def _synchronize(self, path: Path) -> None:
        self.contents.discard(path)
        for names in (self.made, self.renamed):
            names -= {name for name in names if name.parent == path}

    def _rename(self, source: Path, target: Path) -> None:
        for path in (*self.contents, *self.made):
            if path == source and path in self.contents:
                self.faults.append(f"{target.name} takes its place before its content is there")
            if path.is_relative_to(source) and path != source:
                self.faults.append(f"{target.name} takes its place without {path.name}")
        if self.renamed:
            names = ", ".join(sorted(path.name for path in self.renamed))
            self.faults.append(f"{target.name} takes its place before {names} is there")
        self.made = {path for path in self.made if not path.is_relative_to(source)}
        self.renamed.add(target)

    def at_the_end(self) -> list[str]:
        """What was found, and what is not on the disk when all is done."""
        late = [f"{path.name} may be lost" for path in sorted(self.contents | self.renamed)]
        return self.faults + late
