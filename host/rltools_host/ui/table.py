"""Tables as lines of text."""

from __future__ import annotations

import contextlib
import os
import textwrap
from collections.abc import Sequence
from typing import IO

UNLIMITED = 10_000  # columns, of what is no terminal
INDENT = "  "
GAP = "   "


def columns(stream: IO[str]) -> int:
    """Of a terminal."""
    with contextlib.suppress(OSError, ValueError):
        if stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns or UNLIMITED
    return UNLIMITED


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
    the first row beside its entries. No entry is cut, and none is broken over two lines.
    """
    lines = aligned(rows)
    if max(map(len, lines)) <= width:
        return lines
    heads, *rest = rows
    lines = []
    for row in rest:
        lines.append(row[0])
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
    return lines


def wrapped(text: str, width: int, first: str = "", rest: str = INDENT) -> list[str]:
    """Lines that break between words, and nowhere in a path, a number or `1 ± 2`; behind `first`,
    the further ones behind `rest`."""
    lines = textwrap.wrap(
        text.replace(" ± ", "\xa0±\xa0").replace(" %", "\xa0%"),
        max(width, len(rest) + 1),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\xa0", " ") for line in lines]
