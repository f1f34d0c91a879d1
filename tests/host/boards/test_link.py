"""Each kind of link: bytes both ways, and what ends it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Iterator

import pytest
import serial

from rltools_host.boards import transport
from rltools_host.boards.transport import (
    Link,
    ProcessLink,
    SerialLink,
    TcpLink,
    UdpLink,
    open_link,
)
from rltools_host.errors import LinkLostError, PortError
from rltools_host.interruption import end_child
from rltools_host.system import start_child
from rltools_host.system.loopback import TcpListener
from waiting import is_running, wait_for

CONNECTED = """
import os, socket, time
port, _, token = os.environ["RLT_LINK"].partition(":")
link = socket.create_connection(("127.0.0.1", int(port)))
link.sendall(token.encode())
"""
ECHO = f"{CONNECTED}while data := link.recv(65536): link.sendall(data)"


def write_often(link: Link) -> None:
    """The first bytes for a board that has ended go into the system's buffer."""
    for _ in range(100):
        link.write(b"x")


def read_exactly(link: Link, count: int) -> bytes:
    received = b""
    deadline = time.monotonic() + 60
    while len(received) < count and time.monotonic() < deadline:
        received += link.read(0.1)
    return received


@pytest.fixture
def pty() -> Iterator[tuple[int, str]]:
    """The master's descriptor and the slave's name of a pseudo-terminal."""
    master, slave = os.openpty()
    tty.setraw(slave)
    yield master, os.ttyname(slave)
    for descriptor in (master, slave):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def test_udp_link_carries_datagrams_both_ways() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle:
        vehicle.bind(("127.0.0.1", 0))
        vehicle.settimeout(5.0)
        link = UdpLink(f"udp:127.0.0.1:{vehicle.getsockname()[1]}")
        assert link.read(0.0) == b""
        link.write(b"hello")
        data, host = vehicle.recvfrom(100)
        assert data == b"hello"
        vehicle.sendto(b"", host)  # nothing, and no end
        vehicle.sendto(b"there", host)
        assert link.read(5.0) == b""
        assert link.read(5.0) == b"there"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"elsewhere", host)
        assert link.read(0.05) == b""
        assert link.read(-1.0) == b""
        link.close()
        link.close()


def test_udp_link_goes_on_where_nobody_listens_yet() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle:
        vehicle.bind(("127.0.0.1", 0))
        address = vehicle.getsockname()
    link = UdpLink(f"udp:127.0.0.1:{address[1]}")
    for _ in range(3):
        link.write(b"anybody?")
        assert link.read(0.01) == b""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle:
        vehicle.bind(address)
        vehicle.settimeout(5.0)
        link.write(b"anybody?")
        assert vehicle.recv(100) == b"anybody?"
    link.close()


def test_process_carries_bytes_and_ends_when_closed() -> None:
    link = ProcessLink([sys.executable, "-c", ECHO])
    data = bytes(range(256)) * 100
    link.write(data)
    assert read_exactly(link, len(data)) == data
    assert link.read(0.01) == b""
    process_id = link.process_id
    link.close()
    link.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


def test_killed_process_is_a_lost_link() -> None:
    link = ProcessLink([sys.executable, "-c", ECHO], "the program echo")
    os.kill(link.process_id, signal.SIGKILL)
    with pytest.raises(LinkLostError, match=r"lost the program echo: it was ended by SIGKILL"):
        read_exactly(link, 1)
    with pytest.raises(LinkLostError):
        write_often(link)
    link.close()


def test_process_that_never_reads_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "WRITE_TIMEOUT_S", 0.2)
    link = ProcessLink([sys.executable, "-c", f"{CONNECTED}time.sleep(60)"])
    began = time.monotonic()
    with pytest.raises(LinkLostError, match="has taken no bytes"):
        link.write(bytes(100_000_000))
    assert time.monotonic() - began < 30
    link.close()
    assert not is_running(link.process_id)


def test_child_dies_with_a_parent_that_is_killed() -> None:
    """The parent gets SIGKILL, so nothing in it can clean up: the kernel must."""
    program = (
        "import sys, time; from rltools_host.system import start_child\n"
        "child = start_child([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: not is_running(child), 30)  # it would end by itself after 60 s


def test_child_does_not_get_the_interrupt_of_the_terminal() -> None:
    child = start_child([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert os.getpgid(child.pid) != os.getpgid(0)
    finally:
        child.kill()
        child.wait()


def test_child_ends_though_an_interrupt_left_popens_lock_taken() -> None:
    """One interrupt in a hundred within `poll()` leaves it so."""
    child = start_child([sys.executable, "-c", "import time; time.sleep(60)"])
    child._waitpid_lock.acquire()  # type: ignore[attr-defined]
    ends = threading.Thread(target=end_child, args=(child, 0.0), daemon=True)
    ends.start()
    ends.join(30)
    assert not ends.is_alive()
    assert not is_running(child.pid)
    child._waitpid_lock.release()  # type: ignore[attr-defined]
    assert child.poll() == -signal.SIGTERM


def test_pty_carries_every_byte(pty: tuple[int, str]) -> None:
    master, port = pty
    link = open_link(port)
    assert isinstance(link, SerialLink)
    assert link.description == port
    every_byte = bytes(range(256))
    link.write(every_byte)
    assert os.read(master, 4096) == every_byte
    os.write(master, every_byte)
    assert read_exactly(link, 256) == every_byte
    link.close()
    link.close()


def test_pulled_cable_is_a_lost_link(pty: tuple[int, str]) -> None:
    master, port = pty
    link = open_link(port)
    os.close(master)
    with pytest.raises(LinkLostError, match=f"lost the board on {port}: unplugged"):
        link.read(5.0)
    with pytest.raises(LinkLostError):
        link.write(b"x")
    link.close()


def test_port_in_use(pty: tuple[int, str]) -> None:
    _, port = pty
    first = open_link(port)
    with pytest.raises(PortError, match=f"{port} is in use by another program"):
        open_link(port)
    first.close()
    open_link(port).close()


def test_who_does_not_send_the_token_is_dropped() -> None:
    listener = TcpListener()
    strangers = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(3)]
    strangers[0].sendall(b"x" * 32)
    strangers[1].close()
    port, _, token = listener.address.partition(":")
    strangers[2].sendall(token[:-1].encode())
    strangers[2].shutdown(socket.SHUT_WR)
    with socket.create_connection(("127.0.0.1", int(port))) as child:
        child.sendall(f"{token}first bytes".encode())
        connection = listener.accept(lambda: True)
        assert connection is not None
        with connection:
            assert connection.getpeername() == child.getsockname()
            assert connection.recv(100) == b"first bytes"
    for stranger in (strangers[0], strangers[2]):
        assert stranger.recv(1) == b""
        stranger.close()
    assert listener.accept(lambda: False) is None
    listener.close()


def test_a_program_that_ends_before_it_connects() -> None:
    program = "import sys; sys.exit('no such number')"
    with pytest.raises(LinkLostError, match=r'exit code 1 and wrote "no such number"'):
        ProcessLink([sys.executable, "-c", program])


def test_a_program_that_does_not_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "START_LIMIT_S", 0.1)
    started: list[subprocess.Popen[bytes]] = []

    def ended(child: subprocess.Popen[bytes]) -> None:
        started.append(child)
        end_child(child)

    monkeypatch.setattr(transport, "end_child", ended)
    with pytest.raises(PortError, match=r"has not connected within 0\.1 s: try again"):
        ProcessLink([sys.executable, "-c", "import time; time.sleep(60)"])
    assert [each.poll() for each in started] == [-signal.SIGTERM]


def test_tcp_carries_bytes_and_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[socket.socket] = []
        thread = threading.Thread(target=lambda: accepted.append(server.accept()[0]))
        thread.start()
        link = open_link(f"socket://127.0.0.1:{server.getsockname()[1]}")
        thread.join()
        assert isinstance(link, TcpLink)
        at_once = link._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert at_once, "a message waits for the next one"
        link.write(b"to the board")
        assert accepted[0].recv(100) == b"to the board"
        accepted[0].sendall(b"to the host")
        assert read_exactly(link, 11) == b"to the host"
        accepted[0].close()
        with pytest.raises(LinkLostError, match="lost the board on socket://127"):
            link.read(5.0)
        link.close()


def test_a_port_of_windows_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyserial has the number in its text alone there."""
    monkeypatch.setattr(transport, "PORT_IN_USE", (errno.EACCES,))
    monkeypatch.setattr(transport, "may_be_port", lambda _: True)
    said = "PermissionError(13, 'Access is denied.', None, 5)"
    error = serial.SerialException(f"could not open port 'COM7': {said}")
    assert "COM7 is in use by another program" in str(transport._port_error("COM7", error))
