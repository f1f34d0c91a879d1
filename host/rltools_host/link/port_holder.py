"""Which program of this machine has a UDP port, as far as the kernel tells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
LOCAL, INODE = 1, 9  # columns of /proc/net/udp


def holder_of(port: int, proc: Path = PROC) -> str | None:
    """`python3 (process 123)`; None where nobody has it, or it is another user's, or not known."""
    sockets = {f"socket:[{inode}]" for inode in inodes_of(port, proc)}
    for process in sorted(proc.glob("[0-9]*")) if sockets else []:
        with contextlib.suppress(OSError):  # another user's, or it has ended
            if sockets & set(open_files(process)):
                name = (process / "comm").read_text(errors="replace").strip()
                return f"{name} (process {process.name})"
    return None


def open_files(process: Path) -> Iterator[str]:
    """What the process has open; one may be closed while they are looked at."""
    for entry in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            yield str(entry.readlink())


def inodes_of(port: int, proc: Path) -> set[str]:
    found = set()
    for table in ("udp", "udp6"):
        try:
            rows = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if len(columns) > INODE and columns[LOCAL].endswith(f":{port:04X}"):
                found.add(columns[INODE])
    return found
