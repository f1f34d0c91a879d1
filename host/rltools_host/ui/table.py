"""Tables as lines of text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rltools_host.lines import INDENT, in_columns

GAP = "   "
SENTENCE = 7  # spaces of an entry's line; what has fewer is a name, a number, a path
SETTINGS = re.compile(r"\w=\S+, \w+=")  # or a list of these


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
