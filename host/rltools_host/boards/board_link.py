"""The link to a board: over a given port, to a new process or emulator, or to a connected board.

Also emulated boards (QEMU or Unicorn, which end with their parent and after a time limit) and the
file that is such a board's flash.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rltools_host import system
from rltools_host.boards.transport import (
    DEFAULT_BAUD,
    START_LIMIT_S,
    Link,
    ProcessLink,
    SocketLink,
    ending_with_line,
    last_line,
    open_link,
)
from rltools_host.build import tools
from rltools_host.build.boards import Board, EmulatorDescription, list_boards
from rltools_host.build.toolchains import system_tools
from rltools_host.errors import LinkLostError, PortError, UsageError
from rltools_host.files import disk_error, partial_path, write_durably
from rltools_host.interruption import end_child, ending
from rltools_host.system import BINARY, start_child
from rltools_host.system.loopback import TcpListener
from rltools_host.tree import command_line

PATIENCE_S = 2.0  # that another board may take to end


class StorageFile:
    """A file that is an emulated board's flash, erased when it is created.

    One emulator at a time may use it, which QEMU itself does not ensure.
    """

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
            self._descriptor = os.open(path, os.O_RDWR | BINARY)
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


def lock(descriptor: int, path: Path, *, shared: bool = False) -> None:
    """Lock the file, or raise PortError if another board holds it for longer than PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while not system.lock(descriptor, shared=shared):
        if time.monotonic() > deadline:
            raise PortError(
                f"{path} is in use by another board: end that one, or name another file"
            )
        time.sleep(0.05)


@contextlib.contextmanager
def copied(path: Path) -> Iterator[Path]:
    """Provide a copy of a storage that no board uses at the time; it ends with this process."""
    with system.temporary_file() as (copy, name):
        try:
            with path.open("rb") as original:
                lock(original.fileno(), path, shared=True)
                shutil.copyfileobj(original, copy)
            copy.flush()
        except OSError as error:
            raise disk_error(Path(tempfile.gettempdir()), error) from None
        yield Path(name)


def create(path: Path, content: bytes) -> None:
    """Create the whole file at once; keep one that another process has created meanwhile."""
    partial = partial_path(path)
    try:
        write_durably(partial, content)
        with contextlib.suppress(FileExistsError):
            os.link(partial, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)


TIME_LIMIT_S = 3600.0


class Emulator:
    """A running emulated board.

    Its serial port is a TCP connection to this process, or a TCP port to which others connect.
    """

    connection: socket.socket | None = None
    port: str = ""  # as --port takes it

    def __init__(
        self,
        board: Board,
        program: Path,
        time_limit_s: float = TIME_LIMIT_S,
        storage: Path | None = None,
        *,
        serves: bool = False,
    ) -> None:
        """Start the emulator. The board's policies are in the file `storage`, or else end with the
        emulator. `serves`: whether it has a port, at which one program after the other connects."""
        if board.emulator is None:
            raise UsageError(not_emulated(board))
        tools.require(board.emulator.program)
        self._name = f"the emulator of {board.name}"
        self._limit_s = time_limit_s
        self._reached_limit = False
        # A file, as nobody reads a pipe later and QEMU must not block on one; gone when closed.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the emulator
        self._storage = StorageFile(board, storage) if storage is not None else None
        further = [] if self._storage is None else self._storage.arguments
        with contextlib.closing(TcpListener(has_token=False)) as listener:
            if serves:  # a port that is free
                listener.close()
                self.port = f"socket://127.0.0.1:{listener.port}"
            command = emulator_command(board.emulator, program, further, listener.port, serves)
            self._process = start_child(command, stdout=self._output, stderr=self._output)
            self._timer = threading.Timer(time_limit_s, self._end_at_limit)
            self._timer.daemon = True
            self._timer.start()
            try:
                self._wait_for_port(listener)
            except BaseException:
                self.close()
                raise

    @property
    def process_id(self) -> int:
        return self._process.pid

    def ending(self) -> str:
        """Describe how the emulator ended."""
        if self._reached_limit:
            return f"its time limit of {self._limit_s:g} s was reached (--time-limit)"
        return ending_with_line(self._process, self._output)

    def wait(self) -> None:
        """Return when the emulator has ended by itself."""
        self._process.wait()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End the emulator; a second call does nothing."""
        self._timer.cancel()
        if self.connection is not None:
            self.connection.close()
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

    def _wait_for_port(self, listener: TcpListener) -> None:
        deadline = time.monotonic() + min(START_LIMIT_S, self._limit_s)

        def is_awaited() -> bool:
            return not self.has_ended and time.monotonic() < deadline

        if self.port:
            while is_awaited():
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", listener.port), 1.0).close()
                    return
                time.sleep(0.005)
        else:
            # The emulator can send no token, but it connects as it starts: where another program is
            # first, the emulator finds the port closed and ends, which the link notices.
            self.connection = listener.accept(is_awaited)
            if self.connection is not None:
                return
        if not self.has_ended:
            raise PortError(f"{self._name} has not connected within {START_LIMIT_S:g} s: try again")
        raise PortError(
            f"{self._name} did not start: {last_line(self._output) or ending(self._process)}; "
            f"see `{command_line('doctor')}`"
        )


def emulator_command(
    emulator: EmulatorDescription, program: Path, further: Sequence[str], port: int, serves: bool
) -> list[str]:
    """Return the command that starts an emulator with this program, its serial port connected to a
    TCP port of this machine, or there for others."""
    tool = system_tools().get(emulator.program)
    if tool is not None and tool.is_of_group:
        words = [str(program), str(port), *(["serves"] if serves else [])]
        return [sys.executable, "-I", str(tool.path()), *words]
    # QEMU takes {elf} for the program where the board's arguments place it; otherwise it is the
    # kernel.
    arguments = [argument.replace("{elf}", str(program)) for argument in emulator.arguments]
    if arguments == list(emulator.arguments):
        arguments += ["-kernel", str(program)]
    serial = f"socket,id=s0,host=127.0.0.1,port={port},nodelay=on"
    serial += ",server=on,wait=off" if serves else ""
    link = ["-chardev", serial, "-serial", "chardev:s0"]
    return [emulator.program, *arguments, *further, *link]


def not_emulated(board: Board) -> str:
    """Return the sentence for a board that cannot be emulated, with what to do instead."""
    emulated = ", ".join(known.name for known in list_boards() if known.emulator)
    if board.is_process:
        remedy = f"train there directly with --board {board.name}"
    else:
        remedy = f"take an emulated one: {emulated}"
    return f"{board.name} is not emulated: {remedy}"


PORT_WAIT_S = 15.0


def usb_ids_present() -> set[str] | None:
    """Return the USB ids of all connected devices, also of those without a port; None without a
    list."""
    devices = Path("/sys/bus/usb/devices")
    if not devices.is_dir():
        return None
    ids = set()
    for device in devices.iterdir():
        try:
            vendor = (device / "idVendor").read_text().strip()
            product = (device / "idProduct").read_text().strip()
        except OSError:
            continue
        ids.add(f"{vendor}:{product}".upper())
    return ids


def require_connected(board: Board) -> None:
    """Raise PortError if the board is not on USB; in its bootloader it has an id there but no
    port."""
    if find_connected(board):
        return
    present = usb_ids_present()
    flashable = {*board.link.usb_ids, *board.bootloader_usb_ids}
    if present is None or present & flashable:
        return
    raise PortError(
        f"no {board.name} found on USB (ids {', '.join(sorted(flashable))}): "
        "plug it in with a cable that carries data, or press its program button"
    )


def wait_for_port(board: Board) -> str | None:
    """Wait for the serial port of a freshly flashed board, and return it; None if none appears."""
    deadline = time.monotonic() + PORT_WAIT_S
    while time.monotonic() < deadline:
        ports = find_connected(board)
        if ports:
            return ports[0]
        time.sleep(0.2)
    return None


@dataclass(frozen=True)
class ConnectedPort:
    device: str
    serial_number: str | None


def connected_ports(board: Board) -> list[ConnectedPort]:
    """Return the serial ports whose USB id is one of the board's."""
    if not board.link.usb_ids:
        return []
    from serial.tools import list_ports

    ports = []
    for port in list_ports.comports():
        if port.vid is None or port.pid is None:
            continue
        if f"{port.vid:04X}:{port.pid:04X}" in board.link.usb_ids:
            ports.append(ConnectedPort(port.device, port.serial_number))
    return sorted(ports, key=lambda port: port.device)


def find_connected(board: Board) -> list[str]:
    """Return the names of the serial ports on which this board is connected, such as
    /dev/ttyACM0."""
    return [port.device for port in connected_ports(board)]


EMULATOR_LIMIT_S = 6 * 3600.0
STORAGE_VARIABLE = "RLT_POLICY_STORAGE"  # firmware/host/file_storage.h
THREADS_VARIABLE = "RLT_THREADS"  # firmware/host/thread_count.h
ENVIRONMENTS_VARIABLE = "RLT_ENVIRONMENT_SERVER"  # rl/environments/external/connection.h


def open_board_link(
    board: Board,
    port: str | None,
    program: Path | None,
    remedy: str,
    storage: Path | None = None,
    threads: int | None = None,
    environments: str | None = None,
) -> Link:
    """Open a link to the given port; else start `program`, or take the connected board.

    `remedy` says what to do if none is connected. `storage` is the file for the policies of a board
    that is started here, in place of memory. `threads` is how many compute in a process, in place
    of its own choice. `environments` is the socket's name of the environment server.
    """
    if port is not None:
        return open_link(port, board.link.baud or DEFAULT_BAUD)
    if program is not None and board.is_process:
        environment = {
            STORAGE_VARIABLE: str(storage or ""),
            THREADS_VARIABLE: str(threads or ""),
            ENVIRONMENTS_VARIABLE: environments or "",
        }
        return ProcessLink([str(program)], f"the program of board {board.name}", environment)
    if program is not None and board.emulator is not None:
        return EmulatedLink(Emulator(board, program, EMULATOR_LIMIT_S, storage), board.name)
    ports = find_connected(board)
    if not ports:
        raise PortError(f"no {board.name} is connected: {remedy}")
    if len(ports) > 1:
        raise PortError(
            f"several boards {board.name} are connected ({', '.join(ports)}): "
            "choose one with --port"
        )
    return open_link(ports[0], board.link.baud or DEFAULT_BAUD)


class EmulatedLink(SocketLink):
    """The link to an emulated board, which ends with the link."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        assert emulator.connection is not None
        self.emulator = emulator
        super().__init__(f"{name} (emulated)", emulator.connection)

    def read(self, timeout_s: float) -> bytes:
        data = super().read(timeout_s)
        if self.emulator.has_ended:  # whatever another program sends in its place
            raise self._lost(None)
        return data

    def _close(self) -> None:
        self.emulator.close()

    def _lost(self, _: OSError | None) -> LinkLostError:
        return LinkLostError(f"lost {self.description}: {self.emulator.ending()}")
