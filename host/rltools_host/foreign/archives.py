"""Zip archives of somebody's, within bounds: nothing is unpacked to the disk."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from rltools_host.documents import shown
from rltools_host.foreign.pickles import UnreadableError

MOST_ENTRIES = 10_000
MOST_ENTRY_BYTES = 128_000_000
MOST_BYTES = 512_000_000  # of all entries that are read
DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, struct.error)
STRANGE = (NotImplementedError, RuntimeError, OverflowError)  # a compression, or a password


class Archive:
    """Reads entries whole; UnreadableError where one is damaged, too large or not there."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
            entries = self._zip.infolist()
        except (*DAMAGES, *STRANGE):
            raise UnreadableError("it is a damaged zip archive") from None
        if len(entries) > MOST_ENTRIES:
            raise UnreadableError(f"its zip archive has more than {MOST_ENTRIES:,} entries")
        self.names = [entry.filename for entry in entries]
        self._known = set(self.names)
        self._bytes = 0

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def read(self, name: str) -> bytes:
        if name not in self._known:
            raise UnreadableError(f"its zip archive has no entry {shown(name)}")
        try:
            with self._zip.open(name) as entry:
                data = entry.read(MOST_ENTRY_BYTES + 1)  # never more, whatever the header says
        except DAMAGES:
            raise UnreadableError(f"the entry {shown(name)} of its archive is damaged") from None
        except STRANGE:
            raise UnreadableError(
                f"the entry {shown(name)} of its archive is packed in a way that is not read"
            ) from None
        self._bytes += len(data)
        if len(data) > MOST_ENTRY_BYTES or self._bytes > MOST_BYTES:
            raise UnreadableError(
                f"it unpacks to more than is read, {MOST_ENTRY_BYTES:,} bytes an entry and "
                f"{MOST_BYTES:,} in all"
            )
        return data
