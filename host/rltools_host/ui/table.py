"""Tables as lines of text."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines, in columns as wide as their longest entry."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = (
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    )
    return [line.rstrip() for line in lines]
