"""Serves a folder of static files to this machine alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rltools_host.errors import UsageError

MOST_PORT = 65535


class Handler(SimpleHTTPRequestHandler):
    """Without a line for each request."""

    extensions_map = {  # noqa: RUF012 - as the base has it
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".webmanifest": "application/manifest+json",
    }

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - as the base calls it
        pass


def server_of(folder: Path, port: int) -> ThreadingHTTPServer:
    """Port 0 takes one that is free."""
    if not 0 <= port <= MOST_PORT:
        raise UsageError(f"--port {port} is not a valid port: name one from 0 to {MOST_PORT}")
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(folder)))
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be served: {error.strerror}: name another with --port"
        ) from None


def address_of(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/"


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Its address, while somebody has a use for it."""
    with server_of(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield address_of(server)
        finally:
            server.shutdown()
