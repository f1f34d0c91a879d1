"""Received parts of a board's file, kept so that an interrupted transfer continues where it
stopped.

They are kept in a hidden file, as records one after the other, which survive a killed tool. The
file names what it is a part of: the state that the board stated, the path, its size and its CRC-32.
A part of anything else is dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rltools_host.boards.messages import DATA_BYTES, Packet, bytes_missing, insert_data
from rltools_host.files import read_limited

RECORD = struct.Struct("<II")  # offset and length of the bytes behind it
KEEP_EVERY_S = 2.0  # what a tool that is killed may lose; a transfer that is faster keeps nothing
PART_SUFFIX = ".part"
MAX_SIZE_FACTOR = 3  # of the file, with the records' heads


def part_path(folder: Path, path: str) -> Path:
    """Return where a part of a board's file is kept."""
    return folder / f".{path.strip('/')}{PART_SUFFIX}"


def remove_parts(folder: Path) -> None:
    """Remove the parts of files that have arrived since."""
    for path in folder.glob(f".*.rlt?{PART_SUFFIX}"):
        with contextlib.suppress(OSError):
            path.unlink()


@dataclass(frozen=True)
class Keeping:
    """The folder for the parts of a board's files, and the state that the files are of."""

    folder: Path
    state_sha256: str


class Part:
    """The bytes received of a file of `size` bytes."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)
        self.missing = [(0, size)] if size else []
        self._fresh: list[tuple[int, int]] = []  # that is not kept yet
        self._file: Path | None = None
        self._head = b""
        self._kept_at = 0.0

    @property
    def size(self) -> int:
        return len(self.content)

    @property
    def left(self) -> int:
        return bytes_missing(self.missing)

    def lacks(self, offset: int, size: int) -> bool:
        """Return whether one of these bytes is missing."""
        return any(begin < offset + size and offset < end for begin, end in self.missing)

    def insert(self, reply: Packet) -> bool:
        """Copy an answer's data to its offset, and return whether any of it was missing."""
        before, self.missing = self.missing, insert_data(reply, self.content, self.missing)
        if self.missing == before:
            return False
        begin, end = reply.offset, reply.offset + len(reply.data)
        if self._fresh and self._fresh[-1][1] == begin:
            begin = self._fresh.pop()[0]
        self._fresh.append((begin, end))
        return True

    def pieces(self, end: int) -> Iterator[tuple[int, int]]:
        """Return offset and size of each single request for what is missing now, up to `end`."""
        for first, last in list(self.missing):
            for offset in range(first, min(last, end), DATA_BYTES):
                yield offset, min(DATA_BYTES, last - offset)

    # -- the hidden file ---------------------------------------------------------------------------

    def keep_as(self, keeping: Keeping, path: str, crc32: int, now: float) -> None:
        """Load the kept parts, if they are of the same file of the same state, and keep new ones
        from now on."""
        self._file, self._kept_at = part_path(keeping.folder, path), now
        file = self._file
        identity = {
            "state_sha256": keeping.state_sha256,
            "path": path,
            "size": self.size,
            "crc32": crc32,
        }
        self._head = json.dumps(identity).encode() + b"\n"
        try:
            if file.is_symlink() or (file.exists() and not file.is_file()):
                self._file = None  # somebody else's
                return
            kept = read_limited(file, MAX_SIZE_FACTOR * (len(self._head) + self.size))
        except (OSError, ValueError):
            return
        if not kept.startswith(self._head):
            return
        end = len(self._head)
        while (at := end + RECORD.size) <= len(kept):
            offset, length = RECORD.unpack_from(kept, end)
            if at + length > len(kept) or offset + length > self.size:
                break  # its tool was killed here
            record = Packet(0, 0, 0, offset=offset, data=kept[at : at + length])
            self.missing = insert_data(record, self.content, self.missing)
            end = at + length
        # What a record lacks must not be taken for the beginning of the next one.
        with contextlib.suppress(OSError):
            os.truncate(file, end)
        self._head = b""

    def keep(self, now: float, *, at_once: bool = False) -> None:
        """Append the new bytes to the hidden file, from time to time. A full disk ends the keeping
        only."""
        if self._file is None or not self._fresh:
            return
        if not at_once and now - self._kept_at < KEEP_EVERY_S:
            return
        records = b"".join(
            RECORD.pack(begin, end - begin) + self.content[begin:end] for begin, end in self._fresh
        )
        try:
            with self._file.open("wb" if self._head else "ab") as file:
                file.write(self._head + records)
        except OSError:
            self.forget()
            return
        self._head, self._fresh, self._kept_at = b"", [], now

    def keep_rest(self, now: float) -> None:
        """Keep the last bytes of a transfer, if it took long enough for any to be kept."""
        self.keep(now, at_once=not self._head)

    def forget(self) -> None:
        """Keep nothing any more, and remove what was kept."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()
        self._file = None
