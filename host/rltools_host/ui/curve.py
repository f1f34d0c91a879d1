"""The learning curve in a terminal, from braille characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from rltools_host.training.progress import Point, TrainingView

if TYPE_CHECKING:
    from rich.text import Text


BRAILLE = 0x2800


# The bit of a braille character for the dot in row 0..3 and column 0..1 of its cell.
BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def chart(view: TrainingView, width: int, rows: int) -> list[Text]:
    """The learning curve: evaluations as a line, training episodes as dots."""
    from rich.text import Text

    lines, dots = view.evaluation_points, view.episode_points
    values = [value for _, value in (*lines, *dots)]
    if not values:
        waiting = "the learning curve begins with the first episode"
        empty = [Text("") for _ in range(rows + 2)]
        empty[rows // 2] = Text(waiting.center(width), "dim")
        return empty
    low, high, tick = nice_range(min(values), max(values))
    labels = tick_labels(low, high, tick, rows)
    margin = max(map(len, labels.values())) + 1
    columns = width - margin - 3
    line_cells = Canvas(columns, rows, (0, view.steps), (low, high))
    dot_cells = Canvas(columns, rows, (0, view.steps), (low, high))
    line_cells.draw_line(lines)
    for point in dots:
        dot_cells.draw_dot(*point)
    result = []
    for row in range(rows):
        label = labels.get(row, "")
        text = Text.assemble((f"{label:>{margin}} {'┤' if label else '│'}", "dim"))
        cells = zip(line_cells.bits[row], dot_cells.bits[row], strict=True)
        for style, group in groupby(cells, style_of):
            text.append("".join(chr(BRAILLE + (a | b)) if a | b else " " for a, b in group), style)
        result.append(text)
    return [*result, *step_axis(view.steps, columns, margin), legend(view, width)]


def style_of(cell: tuple[int, int]) -> str:
    """Of a cell with the dots of the line and those of the episodes."""
    on_line, on_dots = cell
    return "bold cyan" if on_line else "yellow" if on_dots else ""


def step_axis(steps: int, columns: int, margin: int) -> list[Text]:
    from rich.text import Text

    middle, last = f"{steps // 2:,}", f"{steps:,} steps"
    axis = "0" + middle.rjust(columns // 2 + len(middle) // 2 - 1)
    return [Text(f"{'':>{margin}} └{axis}{last:>{max(0, columns - len(axis))}}", "dim")]


def legend(view: TrainingView, width: int) -> Text:
    from rich.text import Text

    count = view.evaluation.episodes if view.evaluation else 0
    episodes = f", mean of {count} episodes" if count else ""
    for mean in (episodes, ""):  # where the line is too short
        text = Text.assemble((" return:  ", "dim"))
        text.append("⣀⠤⠒ ", "bold cyan")
        text.append(f"evaluation{mean}   ", "dim")
        text.append("⠂ ", "yellow")
        text.append("training episode", "dim")
        if text.cell_len <= width:
            break
    return text


class Canvas:
    """A grid of braille cells, 2 dots wide and 4 high each, over a range of x and y."""

    def __init__(self, columns: int, rows: int, x_range: Point, y_range: Point) -> None:
        self.bits = [[0] * columns for _ in range(rows)]
        self._width, self._height = 2 * columns, 4 * rows
        self._x_range, self._y_range = x_range, y_range

    def _place(self, x: float, y: float) -> tuple[int, int]:
        (left, right), (low, high) = self._x_range, self._y_range
        column = (x - left) / (right - left) * (self._width - 1)
        row = (high - y) / (high - low) * (self._height - 1)
        return (
            min(max(round(column), 0), self._width - 1),
            min(max(round(row), 0), self._height - 1),
        )

    def _set(self, column: int, row: int) -> None:
        self.bits[row // 4][column // 2] |= BRAILLE_BITS[row % 4][column % 2]

    def draw_dot(self, x: float, y: float) -> None:
        self._set(*self._place(x, y))

    def draw_line(self, points: Sequence[Point]) -> None:
        places = [self._place(*point) for point in points]
        for place in places[:1]:
            self._set(*place)
        for (column, row), (next_column, next_row) in pairwise(places):
            count = max(abs(next_column - column), abs(next_row - row), 1)
            for i in range(count + 1):
                self._set(
                    round(column + (next_column - column) * i / count),
                    round(row + (next_row - row) * i / count),
                )


def nice_range(low: float, high: float) -> tuple[float, float, float]:
    """A range around the values that ends on ticks, and the ticks' distance: 1, 2 or 5 * 10^n."""
    if math.isclose(low, high):  # no ticks lie between floats that are next to each other
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / 4))
    tick = next(f * power for f in (1, 2, 5, 10) if f * power >= span / 4 * 0.999)
    return math.floor(low / tick) * tick, math.ceil(high / tick) * tick, tick


def tick_labels(low: float, high: float, tick: float, rows: int) -> dict[int, str]:
    """Row of the chart -> label of the tick that lies in it."""
    labels = {}
    for i in range(round((high - low) / tick) + 1):
        value = low + i * tick
        row = round((high - value) / (high - low) * (4 * rows - 1)) // 4
        labels[row] = f"{value:,.{max(0, -math.floor(math.log10(tick)))}f}"
    return labels
