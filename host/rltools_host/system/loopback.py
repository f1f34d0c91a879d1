"""Ports of this machine at which one child connects, which is known by a token, and nobody else."""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
from collections.abc import Callable

LOOK_S = 0.05  # between two looks at what is awaited
TOKEN_S = 2.0  # from a connection to its token


class Listener:
    """A listening port of 127.0.0.1; a child is told `address`, which is PORT:TOKEN."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        with contextlib.ExitStack() as opened:
            opened.callback(self._socket.close)
            if option := getattr(socket, "SO_EXCLUSIVEADDRUSE", 0):  # else Windows shares a port
                self._socket.setsockopt(socket.SOL_SOCKET, option, 1)
            self._socket.bind(("127.0.0.1", 0))
            self._socket.listen()
            self._socket.settimeout(LOOK_S)
            opened.pop_all()
        self.port: int = self._socket.getsockname()[1]
        self._token = secrets.token_hex(16)
        self.address = f"{self.port}:{self._token}"

    def accept(
        self, goes_on: Callable[[], bool], *, has_token: bool = True
    ) -> socket.socket | None:
        """Return the first connection that begins with the token; drop others. None as soon as it
        does not go on.

        has_token: whether the child can send one; if not, the first one that connects is taken.
        """
        while goes_on():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            with contextlib.ExitStack() as opened:
                opened.callback(connection.close)
                with contextlib.suppress(OSError):
                    if not has_token or is_told(connection, self._token.encode()):
                        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        opened.pop_all()
                        return connection
        return None

    def close(self) -> None:
        """Close the port; connections stay. A second call does nothing."""
        self._socket.close()


def is_told(connection: socket.socket, token: bytes) -> bool:
    """Return whether the first bytes are the token."""
    connection.settimeout(TOKEN_S)
    told = b""
    while len(told) < len(token):
        part = connection.recv(len(token) - len(told))
        if not part:
            return False
        told += part
    return hmac.compare_digest(told, token)
