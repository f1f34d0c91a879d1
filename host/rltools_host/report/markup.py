"""Text, numbers and tiles as HTML, and plots as inline SVG, drawn by matplotlib and colored by the
page's style sheet.

matplotlib writes colors into the SVG. The ones used here are placeholders that become CSS
variables, so that a plot follows the page from light to dark. Each plot is drawn twice, for a wide
and for a narrow page, as text that is scaled down with its plot cannot be read.
"""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    """Text that is HTML already."""


def text(value: Any) -> str:
    """Escape any value as text of HTML."""
    if isinstance(value, Html):
        return value
    return escape(str(value).encode(errors="replace").decode(), quote=True)


def number(value: float | None, digits: int = 0) -> str:
    """Format with thousands separators and a true minus; an en dash where there is no number."""
    if value is None or not math.isfinite(value):
        return "\N{EN DASH}"
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", MINUS)


def duration(seconds: float) -> str:
    """Format a duration, for example "3 min 32 s"."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def tile(name: str, value: str, note: str) -> str:
    """Return a tile; all three arguments are HTML."""
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
    """Return a table of texts; those of the first column are heads of their rows. `columns` has
    the classes of the others, which are numbers unless it says so."""
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
    """Return a whole self-contained page; all but the folder's name and the command is HTML."""
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


# Placeholder colors, and the variable of report.css that takes the place of each.
COLORS = {
    "ink": "#000101",
    "soft": "#000102",
    "line": "#000103",
    "first": "#000104",
    "second": "#000105",
    "third": "#000106",
    "goal": "#000107",
    "card": "#000108",
}
INK, SOFT, LINE, FIRST, SECOND, THIRD, GOAL, CARD = COLORS.values()
WIDE, NARROW = 980, 400  # CSS pixels
STYLE: Mapping[str, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "report",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 1.0,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "ytick.major.size": 0.0,
    "text.color": SOFT,
    "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round",
}

Values = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Curve:
    """Values over training steps."""

    steps: Values
    values: Values

    def finite(self) -> Curve:
        known = np.isfinite(self.values)
        return Curve(self.steps[known], self.values[known])

    def thinned(self, count: int) -> Curve:
        """Return the curve with at most `count` of its points, the extremes among them."""
        chosen = extremes(self.values, count)
        return self if len(self.steps) <= count else Curve(self.steps[chosen], self.values[chosen])


def extremes(values: Values, count: int) -> NDArray[np.intp]:
    """Return the places of at most `count` values: the first, the last, and the least and the
    greatest of each of equal parts; of all values where these are not more."""
    if len(values) <= count:
        return np.arange(len(values))
    edges = part_edges(len(values), (count - 2) // 2)
    chosen = {0, len(values) - 1}
    for begin, end in pairwise(edges):
        part = values[begin:end]
        if np.isnan(part).all():
            chosen.add(int(begin))
        else:
            chosen |= {int(begin + np.nanargmin(part)), int(begin + np.nanargmax(part))}
    return np.array(sorted(chosen), np.intp)


def part_edges(count: int, parts: int) -> NDArray[np.intp]:
    return np.linspace(0, count, parts + 1).astype(np.intp)


def band(axes: Axes, steps: Values, low: Values, high: Values, **look: Any) -> None:
    """Fill between two curves; where points are more than pixels, between the extremes of each."""
    if len(steps) > WIDE:
        begins = part_edges(len(steps), WIDE)[:-1]
        steps = np.append(steps[begins], steps[-1])
        low, high = np.fmin.reduceat(low, begins), np.fmax.reduceat(high, begins)
        low, high = np.append(low, low[-1]), np.append(high, high[-1])
    axes.fill_between(steps, low, high, linewidth=0, **look)


@dataclass(frozen=True)
class Panel:
    """One quantity of an episode; `names` has those of its values 0, 1 ..., where they are
    discrete."""

    label: str
    values: Values
    bounds: tuple[float, float] | None = None
    names: tuple[str, ...] = ()


def responsive(
    draw: Callable[[Figure, bool], None], heights: tuple[int, int], label: str, width: int = WIDE
) -> str:
    """Draw a plot by draw(figure, is_wide) as two SVGs, of which the style sheet shows one."""
    pictures = []
    for is_wide, size in ((True, (width, heights[0])), (False, (NARROW, heights[1]))):
        with figure_of(*size) as figure:
            draw(figure, is_wide)
            name = "wide" if is_wide else "narrow"
            pictures.append(svg_of(figure, name, label))
    return "".join(pictures)


@contextmanager
def figure_of(width: int, height: int) -> Iterator[Figure]:
    """Yield a figure of this many CSS pixels."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in STYLE.items():
            matplotlib.rcParams[name] = value  # type: ignore[index]
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
        FigureCanvasSVG(figure)
        yield figure


def svg_of(figure: Figure, css_class: str, label: str) -> str:
    """Return the figure as an SVG element for an HTML page."""
    thin_lines(figure)
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<svg[^>]*viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', text, count=1)
    for name, color in COLORS.items():
        text = text.replace(color, f"var(--{name})")
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = unique_names(text, f"{css_class}-{zlib.crc32(label.encode()):x}")
    return text.replace(
        "<svg ", f'<svg class="{css_class}" role="img" aria-label="{escape(label)}" ', 1
    ).strip()


def thin_lines(figure: Figure) -> None:
    """Leave two points of each line for a CSS pixel: more of them are megabytes, and hide each
    other."""
    count = round(2 * 72 * figure.get_figwidth())
    for axes in figure.axes:
        for line in axes.lines if axes.name != "3d" else ():
            steps, values = (np.asarray(each, float) for each in line.get_data(orig=False))
            if len(values) > count:
                chosen = extremes(values, count)
                line.set_data(steps[chosen], values[chosen])


def unique_names(svg: str, prefix: str) -> str:
    """Prefix all identifiers, as those of several SVGs share one page."""
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    return re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)


def use_thousands(axes: Axes, is_wide: bool, *, both: bool = True) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_formatter(lambda value, _position: number(value))
    axes.xaxis.set_major_locator(MaxNLocator(10 if is_wide else 4, steps=[1, 2, 5, 10]))
    if both:
        axes.yaxis.set_major_formatter(lambda value, _position: number(value))


def short_number(value: float, _position: Any = None) -> str:
    if 1000 <= abs(value) < 1e6:
        return number(value)
    return f"{value:.3g}".replace("-", MINUS) if math.isfinite(value) else ""


def title(axes: Axes, text: str) -> None:
    """Write what the vertical axis shows above it, horizontally."""
    axes.set_title(text, loc="left", color=SOFT, pad=8)


def legend(figure: Figure, axes: Axes, is_wide: bool, *, below: bool = False) -> None:
    """Write the legend above a wide plot; below a narrow one, and where labels are long and dashes
    must be visible."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper right" if is_wide and not below else "outside lower left",
        ncols=1 if not is_wide else 2 if below else len(labels),
        frameon=False,
        labelcolor=INK,
        handlelength=4 if below else None,
    )


def label_line(axes: Axes, value: float, text: str, color: str, *, to_left: bool) -> None:
    """Write text at the top of a vertical line, beside it."""
    axes.annotate(
        text,
        (value, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if to_left else 5, -10),
        textcoords="offset points",
        ha="right" if to_left else "left",
        color=color,
    )
