"""The sources that a run's firmware is compiled from, as an archive for its folder.

The archive is a tar file whose bytes depend on names and contents alone, and is named after their
hash. It is written here: importing tarfile takes longer than all of this.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rltools_host import paths

FOLDERS = ("boards", "cmake", "experiments", "firmware", "host/native", "lib", "platforms")
FILES = ("CMakeLists.txt", "CMakePresets.json")
BLOCK = 512
HASH_DIGITS = 12
GZIP = 31  # zlib's window of 2^15 bytes, with gzip's header around it
FASTEST = 1


class Sources(NamedTuple):
    name: str  # sources-<hash>.tar.gz
    data: bytes


def read_sources(tree: Path = paths.REPOSITORY) -> Sources:
    """What experiments, core and firmware are compiled from, as it is now."""
    content = b"".join(tar_entry(name, (tree / name).read_bytes()) for name in source_files(tree))
    content += bytes(2 * BLOCK)
    compressor = zlib.compressobj(FASTEST, zlib.DEFLATED, GZIP)
    data = compressor.compress(content) + compressor.flush()
    return Sources(f"sources-{hashlib.sha256(content).hexdigest()[:HASH_DIGITS]}.tar.gz", data)


def source_files(tree: Path) -> list[str]:
    """Relative to the tree, in order."""
    names = [name for name in FILES if (tree / name).is_file()]
    for folder in FOLDERS:
        if (tree / folder).is_dir():
            names += files_below(str(tree), folder)
    return sorted(names)


def files_below(tree: str, folder: str) -> Iterator[str]:
    with os.scandir(f"{tree}/{folder}") as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(tree, f"{folder}/{entry.name}")
            elif entry.is_file():
                yield f"{folder}/{entry.name}"


def tar_entry(name: str, data: bytes) -> bytes:
    """A file of mode 644, of nobody and no time, in the format ustar (POSIX.1-1988)."""
    folder, _, last = name.rpartition("/")
    place = (last, folder) if len(name.encode()) > 100 else (name, "")
    fields = (
        place[0].encode().ljust(100, b"\0"),
        b"0000644\0" + 2 * b"0000000\0",
        f"{len(data):011o}\0".encode(),
        b"00000000000\0",
        b" " * 8,  # in place of the checksum
        b"0".ljust(101, b"\0"),
        b"ustar\00000".ljust(88, b"\0"),
        place[1].encode().ljust(155, b"\0"),
    )
    header = b"".join(fields).ljust(BLOCK, b"\0")
    checksum = f"{sum(header):06o}\0 ".encode()
    return header[:148] + checksum + header[156:] + data + bytes(-len(data) % BLOCK)
