"""Text, numbers and tiles as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
STYLE_SHEET = Path(__file__).with_name("report.css")
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


class Html(str):
    """What is HTML already."""


def text(value: Any) -> str:
    """Any value as text that HTML cannot misread."""
    if isinstance(value, Html):
        return value
    return escape(str(value).encode(errors="replace").decode(), quote=True)


def number(value: float | None, digits: int = 0) -> str:
    """With thousands separators and a true minus; an en dash where there is none."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", MINUS)


def duration(seconds: float) -> str:
    """For example "3 min 32 s"."""
    if round(seconds, 1) < 60:
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


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    style: str = "",
    columns: Sequence[str] = (),
) -> str:
    """Of texts; those of the first column are heads of their rows. `columns`: the classes of the
    others, which are numbers unless they say so."""
    opening = f'<table class="{style}">' if style else "<table>"
    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    head = head and f"<thead><tr>{head}</tr></thead>"
    body = "".join(
        f"<tr><th>{text(row[0])}</th>"
        + "".join(
            f'<td class="{name}">{text(cell)}</td>' if name else f"<td>{text(cell)}</td>"
            for cell, name in zip_longest(row[1:], columns, fillvalue="number")
        )
        + "</tr>"
        for row in rows
    )
    return f"{opening}{head}<tbody>{body}</tbody></table>"


def document(
    *,
    title: str,
    kicker: str,
    heading: str,
    verdict: str,
    tiles: str,
    sections: Sequence[Section],
    folder: str,
    command: str = "rlt report",
) -> str:
    """A whole page, self-contained; all but the folder's name and the command is HTML."""
    style = STYLE_SHEET.read_text(encoding="utf-8") + "".join(shown.style for shown in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="kicker">{kicker}</p>
<h1>{heading}</h1>
<p class="verdict">{verdict}</p>
</header>
<div class="tiles">
{tiles}
</div>
{"".join(shown.html() for shown in sections)}
<footer>Written by <code>{text(command)}</code> from the run folder
<code>{text(folder)}</code>. This page needs no network.</footer>
</body>
</html>
"""
