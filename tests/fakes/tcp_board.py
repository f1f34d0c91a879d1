"""A board's program behind a TCP port, where it goes on from one command to the next."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Mapping
from pathlib import Path

from rltools_host.boards.transport import ProcessLink


class TcpBoard:
    """Serves one connection after another, until it is closed. Where the link `is_gone`, what is
    sent is lost both ways."""

    def __init__(self, program: Path, environment: Mapping[str, str]) -> None:
        self._board = ProcessLink([str(program)], environment=environment)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.is_gone = False
        self._stopped = threading.Event()
        self.port = f"socket://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        from_board = self._board._socket
        connection: socket.socket | None = None
        while not self._stopped.is_set():
            sources = [self._server, from_board]
            ready, _, _ = select.select(
                [*sources, *([connection] if connection else [])], [], [], 0.05
            )
            if self._server in ready:
                connection = self._server.accept()[0]
            if from_board in ready:
                data = self._board.read(1.0)
                with contextlib.suppress(OSError):
                    if connection is not None and not self.is_gone:
                        connection.sendall(data)
            if connection is not None and connection in ready:
                received = b""
                with contextlib.suppress(OSError):
                    received = connection.recv(65536)
                if received and not self.is_gone:
                    self._board.write(received)
                elif not received:
                    connection.close()
                    connection = None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(10)
        self._server.close()
        self._board.close()

    def __enter__(self) -> TcpBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
