"""A board's program behind a TCP port, where it goes on from one command to the next."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path


class TcpBoard:
    """Serves one connection after another, until it is closed."""

    def __init__(self, program: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
        )
        self._server = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self.port = f"socket://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        to_board, from_board = self._process.stdin.fileno(), self._process.stdout.fileno()
        connection: socket.socket | None = None
        while not self._stopped.is_set():
            sources: list[socket.socket | int] = [self._server, from_board]
            ready, _, _ = select.select(
                [*sources, *([connection] if connection else [])], [], [], 0.05
            )
            if self._server in ready:
                connection = self._server.accept()[0]
            if from_board in ready:
                data = os.read(from_board, 65536)
                with contextlib.suppress(OSError):
                    if connection is not None:
                        connection.sendall(data)
            if connection is not None and connection in ready:
                received = b""
                with contextlib.suppress(OSError):
                    received = connection.recv(65536)
                if received:
                    os.write(to_board, received)
                else:
                    connection.close()
                    connection = None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(10)
        self._server.close()
        self._process.communicate(timeout=10)

    def __enter__(self) -> TcpBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
