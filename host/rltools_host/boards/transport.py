"""Links to a board: a serial port or pty, TCP, UDP, the pipes of a process; all carry bytes."""

from __future__ import annotations

import abc
import contextlib
import errno
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from rltools_host.errors import LinkLostError, PortError
from rltools_host.interruption import end_child, ending
from rltools_host.system import group_of, start_child
from rltools_host.tree import command_line

CHUNK_BYTES = 65536
WRITE_TIMEOUT_S = 10.0
TCP_CONNECT_TIMEOUT_S = 5.0
DEFAULT_BAUD = 115200


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


class DescriptorLink(Link):
    """A link over file descriptors, the base of every kind."""

    def __init__(self, description: str, read_descriptor: int, write_descriptor: int) -> None:
        self.description = description
        self._read_descriptor = read_descriptor
        self._write_descriptor = write_descriptor
        self._closed = False
        for descriptor in {read_descriptor, write_descriptor}:
            os.set_blocking(descriptor, False)
        self._readable = select.poll()
        self._readable.register(read_descriptor, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(write_descriptor, select.POLLOUT)

    def read(self, timeout_s: float) -> bytes:
        if not self._readable.poll(max(0.0, timeout_s) * 1000.0):
            return b""
        try:
            chunk = os.read(self._read_descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._lost(error) from None
        if not chunk:  # readable but nothing to read: the other end is closed
            raise self._lost(None)
        return chunk

    def write(self, data: bytes) -> None:
        deadline = time.monotonic() + WRITE_TIMEOUT_S
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._write_descriptor, rest) :]
            except BlockingIOError:
                left_s = deadline - time.monotonic()
                if left_s <= 0.0:
                    raise LinkLostError(
                        f"the board on {self.description} has taken no bytes for "
                        f"{WRITE_TIMEOUT_S:.0f} s: reset it, then start again"
                    ) from None
                self._writable.poll(left_s * 1000.0)
            except OSError as error:
                raise self._lost(error) from None

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._close_descriptors()

    def _close_descriptors(self) -> None:
        for descriptor in {self._read_descriptor, self._write_descriptor}:
            os.close(descriptor)

    def _lost(self, error: OSError | None) -> LinkLostError:
        detail = f" ({error.strerror})" if error is not None and error.errno != errno.EIO else ""
        return LinkLostError(
            f"lost the board on {self.description}: unplugged, or its program ended{detail}"
        )


class SerialLink(DescriptorLink):
    """A serial port, or the pty of an emulated board."""

    def __init__(self, port: str, baud: int = DEFAULT_BAUD) -> None:
        import serial

        try:
            # exclusive: a second program that reads the same port would steal half of the bytes
            self._serial = serial.Serial(port, baud, timeout=0, exclusive=True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise _port_error(port, error) from None
        super().__init__(port, self._serial.fileno(), self._serial.fileno())

    def _close_descriptors(self) -> None:
        self._serial.close()


class TcpLink(DescriptorLink):
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
            self._socket = socket.create_connection((host, port), TCP_CONNECT_TIMEOUT_S)
        except OSError as error:
            reason = error.strerror or str(error)
            raise PortError(
                f"cannot connect to {url}: {reason}; start the board's server first"
            ) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(url, self._socket.fileno(), self._socket.fileno())

    def _close_descriptors(self) -> None:
        self._socket.close()


class UdpLink(DescriptorLink):
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
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            try:
                self._socket.bind(("", own_port))
            except OSError:
                self.obstacle = (
                    f"another program has the port {own_port} of this machine, to which answers "
                    f"may go (`ss -ulpn sport = :{own_port}` names it): close it, or give the "
                    "address at which it passes MAVLink on"
                )
            self._socket.connect(address)
        except OSError as error:
            raise PortError(f"cannot send to {url}: {error.strerror or error}") from None
        super().__init__(url, self._socket.fileno(), self._socket.fileno())

    def read(self, timeout_s: float) -> bytes:
        if not self._readable.poll(max(0.0, timeout_s) * 1000.0):
            return b""
        try:
            return self._socket.recv(CHUNK_BYTES)
        except (BlockingIOError, ConnectionRefusedError):  # nobody listened to what was sent
            return b""
        except OSError as error:
            raise self._lost(error) from None

    def write(self, data: bytes) -> None:
        try:
            self._socket.send(data)
        except (BlockingIOError, ConnectionRefusedError):
            return
        except OSError as error:
            raise self._lost(error) from None

    def _close_descriptors(self) -> None:
        self._socket.close()


class ProcessLink(DescriptorLink):
    """A board that is a program on this machine, with its messages on standard input and output."""

    def __init__(
        self,
        command: Sequence[str],
        description: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the program; `environment` is added to that of this process."""
        # A file, as nobody reads a pipe while the program trains; gone when closed.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the link
        try:
            self._process = start_child(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                environment=environment,
            )
        except OSError as error:
            self._errors.close()
            raise PortError(
                f"cannot start {command[0]}: {error.strerror}; build it again"
            ) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        super().__init__(
            description or f"the program {Path(command[0]).name}",
            self._process.stdout.fileno(),
            self._process.stdin.fileno(),
        )

    @property
    def process_id(self) -> int:
        """Number of the process, for tests that end it."""
        return self._process.pid

    def _close_descriptors(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self._process.wait(0.2)  # it ends by itself once its input is closed
        except subprocess.TimeoutExpired:
            end_child(self._process)
        self._errors.close()

    def _lost(self, _: OSError | None) -> LinkLostError:
        text = f"lost {self.description}: {ending(self._process)}"
        self._errors.seek(0)
        if lines := self._errors.read().decode(errors="replace").strip().splitlines():
            text += f' and wrote "{lines[-1]}"'
        return LinkLostError(text)


def open_link(port: str, baud: int = DEFAULT_BAUD) -> Link:
    """Open the link that `--port` names: a device such as /dev/ttyACM0, or socket://HOST:PORT."""
    if port.startswith("socket://"):
        return TcpLink(port)
    if "://" in port:
        raise PortError(
            f'"{port}" is not a port: write a device such as /dev/ttyACM0 or socket://HOST:PORT'
        )
    return SerialLink(port, baud)


def _port_error(port: str, error: Exception) -> PortError:
    number = getattr(error, "errno", None)
    if number == errno.ENOENT or not Path(port).exists():
        return PortError(f"there is no port {port}: {_ports_here()}")
    if number in (errno.EACCES, errno.EPERM):
        return PortError(f"no permission to open {port}: {_permission_remedy(port)}")
    if number in (errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK):
        return PortError(f"{port} is in use by another program: close that one first")
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
