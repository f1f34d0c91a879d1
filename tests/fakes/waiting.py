"""Waiting for what another process or thread does, and seeing whether one runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait_for(
    what: Callable[[], Any], limit_s: float = 100.0, otherwise: str = "it did not come to it"
) -> None:
    until = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < until, otherwise
        time.sleep(0.01)


def is_running(process_id: int) -> bool:
    """Not where it has ended and only waits for its parent."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
