"""Lines of text and tables, wrapped to the width of a terminal; numbers and paths stay whole.

`Output` passes text on to a stream that may fail: a closed pipe, a full disk, a closed terminal.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import IO, TextIO

UNLIMITED = 10_000  # columns of a stream that is not a terminal
INDENT = "  "
# Text in which a line does not break: a command in backticks, `12 %`, `1 ± 2`, `steps 200`.
WHOLE = re.compile(r"`[^`]*`|(?<=\S) (?=%)| ± |(?<=\S) (?=[-+]?\d)")
LABEL = re.compile(r" {4,}|\s*\S+ {2,}(?=\S)")  # of a line such as "  return   -1395.1 ± 91.8"
HARD_SPACE = "\xa0"
GAP = "   "
SENTENCE = 7  # spaces: a line with fewer is a name, a number or a path, and is not wrapped
SETTINGS = re.compile(r"\w=\S+, \w+=")  # or a list of these


def columns(stream: IO[str]) -> int:
    """Return the width of a terminal; UNLIMITED for another stream."""
    with contextlib.suppress(OSError, ValueError):
        if stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns or UNLIMITED
    return UNLIMITED


def without_breaks(text: str) -> str:
    """Replace spaces at which a line must not break by hard ones."""
    return WHOLE.sub(lambda found: found.group().replace(" ", HARD_SPACE), text)


def wrapped(text: str, width: int, first: str = "", rest: str = INDENT) -> list[str]:
    """Wrap a text between words, never in a path, a number or a command to type.

    The first line begins with `first`, the others with `rest`.
    """
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
    """Wrap the lines longer than `width`; further lines begin below the text after the label."""
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
    """Print lines, wrapped to the width of the stream, and flush them."""
    for line in in_columns(lines, columns(stream)):
        print(line, file=stream, flush=True)


def aside(*lines: str) -> None:
    """Print lines on standard error."""
    say(sys.stderr, *lines)


class ProgressLine:
    """A line that shows the progress of something, on a terminal only."""

    def __init__(self, what: str = "") -> None:
        self._begin = f"\r\x1b[K{what}: " if what else "\r\x1b[K"
        self._is_shown = False

    def show(self, what: str, done: int, whole: int) -> None:
        self.write(f"{done:,} of {whole:,} {what}")

    def sent(self, done: int, whole: int) -> None:
        self.write(f"sent {done:,} of {whole:,} bytes")

    def write(self, text: str) -> None:
        if sys.stderr.isatty():
            self._is_shown = True
            print(f"{self._begin}{text}", end="", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        self.clear()
        say(sys.stdout, line)

    def clear(self) -> None:
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def next_steps(*commands: str) -> list[str]:
    """Return the lines that say what to type next, a command each."""
    first, *others = commands
    return [f"  next  {first}", *(f"        {command}" for command in others)]


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows as lines, in columns as wide as their longest entry."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    )
    return [line.rstrip() for line in lines]


def folded(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Return a table as lines; where it is wider than `width`, one paragraph for each row.

    The first row has the heads, which stand before the entries in a paragraph. No entry is cut;
    only sentences and lists of settings are wrapped.
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


class Output(io.TextIOBase):
    """A stream that passes text on to another one, and drops text once that has failed.

    A run does not depend on who watches it: training continues, and `error` has the failure.
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


def without_commands(text: str) -> str:
    """Replace characters that control a terminal by question marks; keep the bytes of a path."""
    return "".join(
        c if c.isprintable() or c in "\n\t" or "\udc80" <= c <= "\udcff" else "?" for c in text
    )


def drop_output(stream: TextIO) -> None:
    """Discard what a standard stream still has to write, also at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
