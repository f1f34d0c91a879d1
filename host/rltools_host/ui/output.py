"""Output that may come to nothing: a pipe whose reader has gone, a full disk, a closed terminal."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import stat
import sys
from pathlib import Path
from typing import IO, TextIO

from rltools_host.errors import DiskError, RltError

ANY_TEXT = "rlt-any-text"  # of Python's ways to encode what an encoding lacks


class Output(io.TextIOBase):
    """Passes text on to a stream until that refuses some; from then on text is dropped.

    A run does not depend on who watches it: training goes on, and `error` says what happened.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        if self.error is None:
            try:
                self._stream.write(text)
            except OSError as error:
                self.error = error
        return len(text)

    def flush(self) -> None:
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self.error = error

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # which is a variable there
        return getattr(self._stream, "encoding", None) or "utf-8"


def lost(error: OSError, run_path: Path) -> RltError:
    """What a script, or the person who closed a pipe, must know: the run itself is whole."""
    reason = error.strerror or str(error)
    return DiskError(f"the output could not be written ({reason}), but run {run_path} is complete")


def open_missing_streams() -> None:
    """Where a standard stream is closed, as with `>&-`, text goes nowhere and no file takes its
    number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - to the end


def take_any_text() -> None:
    """Paths that are not UTF-8 are written as the bytes that they are, and no text is refused."""
    codecs.register_error(ANY_TEXT, bytes_or_escapes)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ANY_TEXT)


def bytes_or_escapes(error: UnicodeError) -> tuple[str | bytes, int]:
    """As Python decodes paths, else as an escape sequence of Python's."""
    assert isinstance(error, UnicodeEncodeError)
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeEncodeError:
        return codecs.backslashreplace_errors(error)


def output_can_be_full() -> bool:
    """Whether standard output is on a disk: a pipe and a terminal are never full."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
        return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not sys.stdout.isatty())
    except (OSError, ValueError):
        return False


def without_commands(text: str) -> str:
    """Without what commands a terminal; the bytes of a path stay what they are."""
    return "".join(
        c if c.isprintable() or c in "\n\t" or "\udc80" <= c <= "\udcff" else "?" for c in text
    )


def drop_output(stream: TextIO) -> None:
    """What is still to be written to a standard stream goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
