"""Sockets at which a program of this user on this machine connects, and nobody else."""

from __future__ import annotations

import abc
import contextlib
import hmac
import os
import secrets
import socket
import struct
import sys
from collections.abc import Callable

LOOK_S = 0.05  # between two looks at what is awaited
TOKEN_S = 2.0  # from a connection to its token
CREDENTIALS = struct.Struct("3i")  # process, user and group: unix(7), SO_PEERCRED


class Listener(abc.ABC):
    """A listening socket; the program is told its `address`."""

    address: str

    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self._socket.listen()
        self._socket.settimeout(LOOK_S)

    def accept(self, goes_on: Callable[[], bool]) -> socket.socket | None:
        """Return the first connection of the program; drop others. None as soon as it does not go
        on."""
        while goes_on():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            with contextlib.ExitStack() as opened:
                opened.callback(connection.close)
                with contextlib.suppress(OSError):
                    if self.is_expected(connection):
                        connection.settimeout(None)
                        opened.pop_all()
                        return connection
        return None

    @abc.abstractmethod
    def is_expected(self, connection: socket.socket) -> bool:
        """Return whether it is the program's."""

    def close(self) -> None:
        """Close the socket; connections stay. A second call does nothing."""
        self._socket.close()


class TcpListener(Listener):
    """A port of 127.0.0.1, at which a program says a token first; its address is PORT:TOKEN."""

    def __init__(self, *, has_token: bool = True) -> None:
        """Open a free port. has_token: whether the program can send one; if not, whoever connects
        is taken."""
        listening = socket.socket()
        try:
            if option := getattr(socket, "SO_EXCLUSIVEADDRUSE", 0):  # else Windows shares a port
                listening.setsockopt(socket.SOL_SOCKET, option, 1)
            listening.bind(("127.0.0.1", 0))
            super().__init__(listening)
        except BaseException:
            listening.close()
            raise
        self.port: int = listening.getsockname()[1]
        self._token = secrets.token_hex(16).encode() if has_token else b""
        self.address = f"{self.port}:{self._token.decode()}"

    def is_expected(self, connection: socket.socket) -> bool:
        connection.settimeout(TOKEN_S)
        received = b""
        while len(received) < len(self._token):
            part = connection.recv(len(self._token) - len(received))
            if not part:
                return False
            received += part
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return hmac.compare_digest(received, self._token)


if sys.platform == "linux":

    class AbstractListener(Listener):
        """A name in Linux's abstract namespace (unix(7)): it leaves no file, nobody can guess it,
        and only a process of the same user is answered."""

        def __init__(self) -> None:
            self.address = f"rlt-{secrets.token_hex(16)}"
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(f"\0{self.address}")
            super().__init__(listening)

        def is_expected(self, connection: socket.socket) -> bool:
            found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            return bool(CREDENTIALS.unpack(found)[1] == os.getuid())


def fastest_listener() -> Listener:
    """Return a listener for many short messages: a round trip over TCP takes half as long again."""
    if sys.platform == "linux" and hasattr(socket, "AF_UNIX"):
        return AbstractListener()
    return TcpListener()
