"""Text, numbers and tiles as HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Section:
    """A part of the page; lead and body are HTML, style is CSS that only this section needs."""

    heading: str
    lead: str
    body: str
    style: str = ""

    def html(self) -> str:
        return (
            f"<section>\n<h2>{text(self.heading)}</h2>\n<p>{self.lead}</p>\n{self.body}\n"
            "</section>\n"
        )


def text(value: Any) -> str:
    """Any value as text that HTML cannot misread."""
    return escape(str(value), quote=True)


def number(value: float, digits: int = 0) -> str:
    """With thousands separators and a true minus; an en dash where there is none."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", MINUS)


def duration(seconds: float) -> str:
    """For example "3 min 32 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def tile(name: str, value: str, note: str) -> str:
    """All three are HTML."""
    return (
        f'<div class="tile"><div class="name">{name}</div><div class="value">{value}</div>'
        f'<div class="note">{note}</div></div>\n'
    )
