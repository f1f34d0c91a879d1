"""Links to a board: a serial port, TCP, UDP, a process on this machine; all carry bytes."""

from __future__ import annotations

import abc
import errno
import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from rltools_host.errors import LinkLostError, PortError
from rltools_host.interruption import end_child, ending
from rltools_host.system import A_PORT, PORT_IN_USE, group_of, may_be_port, start_child
from rltools_host.system.loopback import TcpListener
from rltools_host.tree import command_line

CHUNK_BYTES = 65536
WRITE_TIMEOUT_S = 10.0
TCP_CONNECT_TIMEOUT_S = 5.0
DEFAULT_BAUD = 115200
START_LIMIT_S = 20.0  # from the start of a program to its connection
LINK_VARIABLE = "RLT_LINK"  # firmware/host/board.cpp


class Link(abc.ABC):
    """Bytes to and from a board."""

    description: str
    obstacle: str = ""  # what may keep answers from arriving, and what to do, as a clause

    @abc.abstractmethod
    def read(self, timeout_s: float) -> bytes:
        """Return what has arrived; empty after `timeout_s` without a byte. Raise LinkLostError at
        the end."""

    @abc.abstractmethod
    def write(self, data: bytes) -> None:
        """Send all of `data`; raise LinkLostError if the other side is gone or takes nothing."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the link; a second call does nothing."""


class SocketLink(Link):
    """A link over a socket."""

    def __init__(self, description: str, connection: socket.socket) -> None:
        self.description = description
        self._socket = connection
        self._closed = False

    def read(self, timeout_s: float) -> bytes:
        self._socket.settimeout(max(0.0, timeout_s))
        try:
            chunk = self._socket.recv(CHUNK_BYTES)
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError as error:
            raise self._lost(error) from None
        if not chunk:  # the other end is closed
            raise self._lost(None)
        return chunk

    def write(self, data: bytes) -> None:
        deadline = time.monotonic() + WRITE_TIMEOUT_S
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(max(0.0, deadline - time.monotonic()))
            try:
                rest = rest[self._socket.send(rest) :]
            except (TimeoutError, BlockingIOError):
                raise taken_nothing(self.description) from None
            except OSError as error:
                raise self._lost(error) from None

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._close()

    def _close(self) -> None:
        self._socket.close()

    def _lost(self, error: OSError | None) -> LinkLostError:
        return lost(self.description, error)


def taken_nothing(description: str) -> LinkLostError:
    return LinkLostError(
        f"the board on {description} has taken no bytes for {WRITE_TIMEOUT_S:.0f} s: reset it, "
        "then start again"
    )


def lost(description: str, error: OSError | None) -> LinkLostError:
    reason = error.strerror if error is not None and error.errno != errno.EIO else ""
    detail = f" ({reason})" if reason else ""
    return LinkLostError(
        f"lost the board on {description}: unplugged, or its program ended{detail}"
    )


class SerialLink(Link):
    """A serial port, or a pseudo-terminal in its place."""

    def __init__(self, port: str, baud: int = DEFAULT_BAUD) -> None:
        import serial

        self.description = port
        try:
            # exclusive: a second program that reads the same port would steal half of the bytes
            self._serial = serial.Serial(
                port, baud, timeout=0, write_timeout=WRITE_TIMEOUT_S, exclusive=True
            )
        except (serial.SerialException, OSError, ValueError) as error:
            raise _port_error(port, error) from None

    def read(self, timeout_s: float) -> bytes:
        wait_s = max(0.0, timeout_s)
        try:
            if self._serial.timeout != wait_s:
                self._serial.timeout = wait_s
            count = min(self._serial.in_waiting, CHUNK_BYTES)
            return bytes(self._serial.read(max(1, count)))
        except OSError as error:  # SerialException is one
            raise lost(self.description, error) from None

    def write(self, data: bytes) -> None:
        import serial

        try:
            self._serial.write(data)
        except serial.SerialTimeoutException:
            raise taken_nothing(self.description) from None
        except OSError as error:
            raise lost(self.description, error) from None

    def close(self) -> None:
        self._serial.close()


class TcpLink(SocketLink):
    """A TCP socket, such as an emulator's `-serial tcp:127.0.0.1:PORT,server=on`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or not port:
            raise PortError(f'"{url}" is not an address: write socket://HOST:PORT')
        try:
            connection = socket.create_connection((host, port), TCP_CONNECT_TIMEOUT_S)
        except OSError as error:
            reason = error.strerror or str(error)
            raise PortError(
                f"cannot connect to {url}: {reason}; start the board's server first"
            ) from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(url, connection)


# Of datagrams: there is none, or nobody listened to what was sent.
NOBODY = (BlockingIOError, ConnectionRefusedError, ConnectionResetError)


class UdpLink(SocketLink):
    """Datagrams to and from one address, `udp:HOST:PORT`, as PX4 listens on.

    Nobody needs to be there yet, and what is not taken is lost, as any datagram may be.
    """

    def __init__(self, url: str, own_port: int = 0) -> None:
        """Send from `own_port`, if that is free."""
        try:
            parts = urlsplit(f"//{url.removeprefix('udp:').removeprefix('//')}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not url.startswith("udp:") or not host or not port or parts.path:
            raise PortError(f'"{url}" is not an address: write udp:HOST:PORT')
        try:
            family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            datagrams = socket.socket(family, socket.SOCK_DGRAM)
            try:
                datagrams.bind(("", own_port))
            except OSError:
                self.obstacle = (
                    f"another program has the port {own_port} of this machine, to which answers "
                    f"may go (`ss -ulpn sport = :{own_port}` names it): close it, or give the "
                    "address at which it passes MAVLink on"
                )
            datagrams.connect(address)
        except OSError as error:
            raise PortError(f"cannot send to {url}: {error.strerror or error}") from None
        super().__init__(url, datagrams)

    def read(self, timeout_s: float) -> bytes:
        self._socket.settimeout(max(0.0, timeout_s))
        try:
            return self._socket.recv(CHUNK_BYTES)
        except (TimeoutError, *NOBODY):
            return b""
        except OSError as error:
            raise self._lost(error) from None

    def write(self, data: bytes) -> None:
        self._socket.settimeout(0.0)
        try:
            self._socket.send(data)
        except NOBODY:
            return
        except OSError as error:
            raise self._lost(error) from None


class ProcessLink(SocketLink):
    """A board that is a program on this machine, which connects to this process."""

    def __init__(
        self,
        command: Sequence[str],
        description: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the program; `environment` is added to that of this process."""
        name = description or f"the program {Path(command[0]).name}"
        listener = TcpListener()
        # A file, as nobody reads a pipe while the program trains; gone when closed.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the link
        try:
            self._process = start_child(
                command,
                stdout=self._output,
                stderr=self._output,
                environment={**(environment or {}), LINK_VARIABLE: listener.address},
            )
        except OSError as error:
            listener.close()
            self._output.close()
            raise PortError(
                f"cannot start {command[0]}: {error.strerror}; build it again"
            ) from None
        try:
            deadline = time.monotonic() + START_LIMIT_S
            self.description = name
            connection = listener.accept(
                lambda: self._process.poll() is None and time.monotonic() < deadline
            )
            if connection is None and self._process.poll() is None:
                raise PortError(f"{name} has not connected within {START_LIMIT_S:g} s: try again")
            if connection is None:
                raise self._lost(None)
        except BaseException:
            end_child(self._process)
            self._output.close()
            raise
        finally:
            listener.close()
        super().__init__(name, connection)

    @property
    def process_id(self) -> int:
        """Number of the process, for tests that end it."""
        return self._process.pid

    def _close(self) -> None:
        super()._close()
        try:
            self._process.wait(0.2)  # it ends by itself once its connection is closed
        except subprocess.TimeoutExpired:
            end_child(self._process)
        self._output.close()

    def _lost(self, _: OSError | None) -> LinkLostError:
        return LinkLostError(
            f"lost {self.description}: {ending_with_line(self._process, self._output)}"
        )


def ending_with_line(process: subprocess.Popen[bytes], output: IO[bytes]) -> str:
    """Describe how a program ended, with the last line that it has written."""
    line = last_line(output)
    return ending(process) + (f' and wrote "{line}"' if line else "")


def last_line(output: IO[bytes]) -> str:
    """Return the last line that a program has written; empty without one."""
    if output.closed:
        return ""
    output.seek(0)
    return output.read().decode(errors="replace").strip().rpartition("\n")[2]


def open_link(port: str, baud: int = DEFAULT_BAUD) -> Link:
    """Open the link that `--port` names: a device such as /dev/ttyACM0, or socket://HOST:PORT."""
    if port.startswith("socket://"):
        return TcpLink(port)
    if "://" in port:
        raise PortError(
            f'"{port}" is not a port: write a device such as {A_PORT} or socket://HOST:PORT'
        )
    return SerialLink(port, baud)


def _port_error(port: str, error: Exception) -> PortError:
    number = getattr(error, "errno", None)
    if number is None and (named := re.search(r"Error\((\d+), ", str(error))):
        number = int(named[1])  # as pyserial has it on Windows
    if number == errno.ENOENT or not may_be_port(port):
        return PortError(f"there is no port {port}: {_ports_here()}")
    if number in PORT_IN_USE:
        return PortError(f"{port} is in use by another program: close that one first")
    if number in (errno.EACCES, errno.EPERM):
        return PortError(f"no permission to open {port}: {_permission_remedy(port)}")
    if number in (errno.EIO, errno.ENXIO, errno.ENODEV):
        return PortError(f"nothing answers behind {port}: plug the board in again")
    return PortError(f"{port} is not a serial port: give the board's device to --port")


def _ports_here() -> str:
    from serial.tools.list_ports import comports

    if names := sorted(port.device for port in comports()):
        return f"connected are {', '.join(names)}"
    return f"no serial port is connected; plug the board in, or see `{command_line('doctor')}`"


def _permission_remedy(port: str) -> str:
    group = group_of(port)
    if group is None:
        return "ask the administrator for a udev rule that gives it to the group dialout"
    return f"run `sudo usermod -aG {group} $USER`, then log in again"
