"""Lines of text for a terminal: as wide as it is, broken where no number and no path is."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import IO

UNLIMITED = 10_000  # columns, of what is no terminal
INDENT = "  "


def columns(stream: IO[str]) -> int:
    """Of a terminal."""
    with contextlib.suppress(OSError, ValueError):
        if stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns or UNLIMITED
    return UNLIMITED


# What a line does not break in: a command in backticks, `12 %`, `1 ± 2`, `steps 200`.
WHOLE = re.compile(r"`[^`]*`|(?<=\S) (?=%)| ± |(?<=\S) (?=[-+]?\d)")
LABEL = re.compile(r" {4,}|\s*\S+ {2,}(?=\S)")  # of a line such as "  return   -1395.1 ± 91.8"
HARD_SPACE = "\xa0"


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


def aside(*lines: str) -> None:
    """Says what is not the output itself: on standard error, as wide as that is."""
    for line in in_columns(lines, columns(sys.stderr)):
        print(line, file=sys.stderr)


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
