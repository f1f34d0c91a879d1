"""Lines of text and tables for a terminal: as wide as it is, without a number or a path broken.

Output that may come to nothing: a pipe whose reader has gone, a full disk, a closed terminal.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import stat
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TextIO

from rltools_host.errors import DiskError, RltError

UNLIMITED = 10_000  # columns, of what is no terminal
INDENT = "  "
# What a line does not break in: a command in backticks, `12 %`, `1 ± 2`, `steps 200`.
WHOLE = re.compile(r"`[^`]*`|(?<=\S) (?=%)| ± |(?<=\S) (?=[-+]?\d)")
LABEL = re.compile(r" {4,}|\s*\S+ {2,}(?=\S)")  # of a line such as "  return   -1395.1 ± 91.8"
HARD_SPACE = "\xa0"
GAP = "   "
SENTENCE = 7  # spaces of an entry's line; what has fewer is a name, a number, a path
SETTINGS = re.compile(r"\w=\S+, \w+=")  # or a list of these


def columns(stream: IO[str]) -> int:
    """Of a terminal."""
    with contextlib.suppress(OSError, ValueError):
        if stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns or UNLIMITED
    return UNLIMITED


def without_breaks(text: str) -> str:
    """With spaces at which no line breaks, where none is to."""
    return WHOLE.sub(lambda found: found.group().replace(" ", HARD_SPACE), text)


def wrapped(text: str, width: int, first: str = "", rest: str = INDENT) -> list[str]:
    """Lines that break between words, and nowhere in a path, a number or a command to type; behind
    `first`, the further ones behind `rest`."""
    lines = textwrap.wrap(
        without_breaks(text),
        max(width, len(rest) + 1),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(HARD_SPACE, " ") for line in lines]


def in_columns(lines: Iterable[str], width: int) -> list[str]:
    """Lines of text, those that are longer than `width` broken between words; what follows stands
    beneath what is beside the label."""
    found: list[str] = []
    for line in lines:
        if len(line) <= width:
            found.append(line)
            continue
        label = LABEL.match(line)
        indent = label.end() if label else len(line) - len(line.lstrip()) + len(INDENT)
        found += wrapped(line, width, "", " " * min(indent, width // 3))
    return found


def say(stream: IO[str], *lines: str) -> None:
    """Prints lines at once, in the columns that the stream has."""
    for line in in_columns(lines, columns(stream)):
        print(line, file=stream, flush=True)


def aside(*lines: str) -> None:
    """Says what is not the output itself: on standard error."""
    say(sys.stderr, *lines)


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines, in columns as wide as their longest entry."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    )
    return [line.rstrip() for line in lines]


def folded(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """The table; where a line is longer than `width`, a paragraph for each row, with the heads of
    the first row beside its entries. No entry is cut; only sentences and lists of settings are
    broken over two lines.
    """
    lines = aligned(rows)
    if max(map(len, lines)) <= width:
        return lines
    heads, *rest = rows
    lines = []
    for row in rest:
        lines.append(f"{heads[0]} {row[0]}" if row[0].isdigit() else row[0])
        line = ""
        for head, entry in zip(heads[1:], row[1:], strict=True):
            if entry in ("", "-"):
                continue
            piece = f"{head} {entry}".strip()
            if line and len(INDENT) + len(line) + len(GAP) + len(piece) > width:
                lines.append(INDENT + line)
                line = ""
            line = f"{line}{GAP}{piece}" if line else piece
        lines += [INDENT + line] if line else []
    return [
        part
        for line in lines
        for part in (in_columns([line], width) if may_break(line) else [line])
    ]


def may_break(line: str) -> bool:
    return line.count(" ") > SENTENCE or SETTINGS.search(line) is not None


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
