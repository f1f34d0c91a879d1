"""The process in which a ULog is read: pyulog is not perfect, and a log comes from anybody.

`python -m rltools_host.drones.fitting.ulog_process` is that process.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from msgspec import Struct

from rltools_host.confined import answer_calls, read_apart
from rltools_host.drones.fitting.formats import Array, Table, bytes_of, px4

PROGRAM = "rltools_host.drones.fitting.ulog_process"
REMEDY = "cut it to a flight, or write its columns as CSV (docs/fit.md)"


class Question(Struct, frozen=True):
    file: bytes  # its path


class Found(Struct, frozen=True):
    columns: dict[str, Array]
    notes: list[str]
    sha256: str


def read_ulog(path: Path) -> tuple[Table, str]:
    """Return the columns of a ULog and the file's SHA-256, as a process of its own finds them."""
    found = read_apart(PROGRAM, Question(os.fsencode(path)), Found, path, REMEDY)
    return Table(found.columns, found.notes), found.sha256


def answer(question: Question) -> Found:
    path = Path(os.fsdecode(question.file))
    data = bytes_of(path)
    table = px4(path, data)
    return Found(table.columns, table.notes, hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    answer_calls(Question, answer)
