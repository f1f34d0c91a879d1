"""Emulated boards: QEMU on a pseudo-terminal, which ends with its parent and after a time limit;
and the file that is such a board's flash, as long as the emulator runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from rltools_host.boards.description import Board, list_boards
from rltools_host.child_process import end_child, ending, start_child
from rltools_host.errors import PortError, UsageError
from rltools_host.files import disk_error, partial_path, write_durably
from rltools_host.toolchain import tools
from rltools_host.toolchain.description import PTS
from rltools_host.tree import command_line

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


START_LIMIT_S = 20.0
TIME_LIMIT_S = 3600.0
PTY_NAME = re.compile(rb"char device redirected to (\S+) ")


class Emulator:
    """A running emulated board; its serial port is `port`."""

    def __init__(
        self,
        board: Board,
        program: Path,
        time_limit_s: float = TIME_LIMIT_S,
        storage: Path | None = None,
    ) -> None:
        """What the board keeps is in the file `storage`, or else ends with the emulator."""
        if board.emulator is None:
            raise UsageError(not_emulated(board))
        tools.require(board.emulator.program, PTS.name)
        self._name = f"the emulator of {board.name}"
        self._limit_s = time_limit_s
        self._reached_limit = False
        # A file, as nobody reads a pipe later and QEMU must not block on one; gone when closed.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the emulator
        # The guest's serial port on a new pty. QEMU takes {elf} for the program where the board's
        # arguments place it; otherwise it is the kernel.
        arguments = [
            argument.replace("{elf}", str(program)) for argument in board.emulator.arguments
        ]
        if arguments == list(board.emulator.arguments):
            arguments += ["-kernel", str(program)]
        self._storage = StorageFile(board, storage) if storage is not None else None
        if self._storage is not None:
            arguments += self._storage.arguments
        arguments += ["-chardev", "pty,id=s0", "-serial", "chardev:s0"]
        self._process = start_child(
            [board.emulator.program, *arguments], stdout=self._output, stderr=self._output
        )
        self._timer = threading.Timer(time_limit_s, self._end_at_limit)
        self._timer.daemon = True
        self._timer.start()
        try:
            self.port = self._wait_for_port()
        except BaseException:
            self.close()
            raise

    @property
    def process_id(self) -> int:
        return self._process.pid

    def ending(self) -> str:
        """How the emulator ended, in words."""
        if self._reached_limit:
            return f"its time limit of {self._limit_s:g} s was reached (--time-limit)"
        text = ending(self._process)
        if lines := self._text().decode(errors="replace").strip().splitlines()[1:]:
            text += f' and wrote "{lines[-1]}"'
        return text

    def wait(self) -> None:
        """Returns when the emulator has ended by itself."""
        self._process.wait()

    def has_ended(self, within_s: float) -> bool:
        """Waits so long for it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        return self._process.poll() is not None

    def close(self) -> None:
        """Ends the emulator; a second time does nothing."""
        self._timer.cancel()
        end_child(self._process)
        if self._storage is not None:
            self._storage.close()
            self._storage = None
        self._output.close()

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end_at_limit(self) -> None:
        self._reached_limit = True
        self._process.kill()

    def _wait_for_port(self) -> str:
        deadline = time.monotonic() + min(START_LIMIT_S, self._limit_s)
        while time.monotonic() < deadline:
            ended = self._process.poll() is not None
            if match := PTY_NAME.search(self._text()):
                return match.group(1).decode()
            if ended:
                lines = self._text().decode(errors="replace").strip().splitlines()
                raise PortError(
                    f"{self._name} did not start: {lines[-1] if lines else ending(self._process)}; "
                    f"see `{command_line('doctor')}`"
                )
            time.sleep(0.005)
        raise PortError(f"{self._name} named no port within {START_LIMIT_S:g} s: try again")

    def _text(self) -> bytes:
        if self._output.closed:
            return b""
        self._output.seek(0)
        return self._output.read()


def not_emulated(board: Board) -> str:
    """Why a board cannot be emulated, and what to do instead."""
    emulated = ", ".join(known.name for known in list_boards() if known.emulator)
    if board.link.kind == "process":
        remedy = f"train there directly with --board {board.name}"
    else:
        remedy = f"take an emulated one: {emulated}"
    return f"{board.name} is not emulated: {remedy}"
