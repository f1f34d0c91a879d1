"""The learning curve on a terminal, cell by cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.clients.messages import Evaluation, TrainingProgress
from rltools_host.training.progress import TrainingView
from rltools_host.ui.terminal import BRAILLE_BITS, Canvas, nice_range, tick_labels
from rltools_host.ui.training_screen import chart, legend, step_axis, style_of

Point = tuple[float, float]


def test_a_line_and_dots_are_drawn_where_they_lie() -> None:
    """Evaluations in cyan, over the episodes of training."""
    view = TrainingView("a", "b", 1, 100, Path("runs/x"))
    view.take(TrainingProgress(1, 20, 100, 1, 31, 70.0, 0.0, ()))
    for step, value in ((50, 0.0), (100, 100.0)):
        view.take(Evaluation(1, step, 10, value, 0.0, value, value))
    *lines, axis, legend = chart(view, 40, 4)
    assert [line.plain for line in lines] == [
        " 100 ┤                             ⣀⠤⠒⠉",
        "     │      ⠈                 ⢀⡠⠔⠒⠉    ",
        "  50 ┤                    ⣀⠤⠔⠊⠁        ",
        "   0 ┤                ⣀⠤⠒⠉             ",
    ]
    assert axis.plain == "     └0              50       100 steps"
    assert legend.plain == " return:  ⣀⠤⠒ evaluation   ⠂ training episode"
    styles = [[str(span.style) for span in line.spans] for line in lines]
    assert styles == [
        ["dim", "bold cyan"],
        ["dim", "yellow", "bold cyan"],
        *[["dim", "bold cyan"]] * 2,
    ]


def test_each_dot_of_a_cell_is_its_own_bit() -> None:
    canvas = Canvas(1, 1, (0.0, 1.0), (0.0, 3.0))
    found = []
    for y in (3.0, 2.0, 1.0, 0.0):
        for x in (0.0, 1.0):
            single = Canvas(1, 1, (0.0, 1.0), (0.0, 3.0))
            single.draw_dot(x, y)
            canvas.draw_dot(x, y)
            found.append(single.bits[0][0])
    assert found == [0x01, 0x08, 0x02, 0x10, 0x04, 0x20, 0x40, 0x80]
    assert canvas.bits == [[0xFF]]


@pytest.mark.parametrize(
    ("low", "high", "tick", "labels"),
    [
        (0.0, 100.0, 50.0, {0: "100", 2: "50", 3: "0"}),
        (-2000.0, 0.0, 1000.0, {0: "0", 2: "-1,000", 3: "-2,000"}),
        (0.0, 0.4, 0.2, {0: "0.4", 2: "0.2", 3: "0.0"}),
        (0.0, 0.05, 0.05, {0: "0.05", 3: "0.00"}),
        (1.0, 4.0, 1.0, {0: "4", 1: "3", 2: "2", 3: "1"}),
    ],
)
def test_ticks_have_the_digits_that_tell_them_apart(
    low: float, high: float, tick: float, labels: dict[int, str]
) -> None:
    assert tick_labels(low, high, tick, 4) == labels


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 100.0, (0.0, 100.0, 50.0)),
        (0.1, 7.9, (0.0, 8.0, 2.0)),
        (0.0, 40.0, (0.0, 40.0, 10.0)),
        (0.0, 40.02, (0.0, 50.0, 10.0)),  # a quarter of it is a tick, but for rounding
        (0.0, 40.1, (0.0, 60.0, 20.0)),
        (0.0, 36.0, (0.0, 40.0, 10.0)),  # not 5: the tick of 9 is the next power
        (-300.0, -1.0, (-300.0, 0.0, 100.0)),
        (5.0, 5.0, (2.0, 8.0, 2.0)),  # half of the value to both sides
        (-5.0, -5.0, (-8.0, -2.0, 2.0)),
        (0.0, 0.0, (-0.5, 0.5, 0.5)),
        (0.3, 0.1 + 0.2, (0.1, 0.5, 0.1)),
    ],
)
def test_range_ends_on_ticks(low: float, high: float, expected: tuple[float, ...]) -> None:
    assert nice_range(low, high) == pytest.approx(expected)


def dots_of(canvas: Canvas) -> set[tuple[int, int]]:
    """(column, row) of the dots."""
    return {
        (2 * column + x, 4 * row + y)
        for row, cells in enumerate(canvas.bits)
        for column, cell in enumerate(cells)
        for y, pair in enumerate(BRAILLE_BITS)
        for x, bit in enumerate(pair)
        if cell & bit
    }


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([], set()),
        ([(13.0, 170.0)], {(1, 2)}),  # 0.9 of 3 and 2.1 of 7 dots away from the corner
        ([(20.0, 100.0)] * 2, {(3, 7)}),
        ([(-50.0, 900.0)], {(0, 0)}),  # outside: on the edge
        ([(99.0, -900.0)], {(3, 7)}),
        ([(10.0, 150.0), (20.0, 150.0)], {(0, 4), (1, 4), (2, 4), (3, 4)}),
        (
            [(10.0, 200.0), (13.0, 100.0)],
            {*((0, row) for row in range(4)), *((1, row) for row in range(4, 8))},
        ),
        (
            [(10.0, 100.0), (10.0, 200.0), (20.0, 200.0)],
            {*((0, row) for row in range(8)), (1, 0), (2, 0), (3, 0)},
        ),
    ],
)
def test_dots_of_a_line(points: list[Point], expected: set[tuple[int, int]]) -> None:
    """In 2 x 2 cells: 4 x 8 dots over steps 10 to 20 and returns 100 to 200."""
    for drawn in (points, points[::-1]):
        canvas = Canvas(2, 2, (10.0, 20.0), (100.0, 200.0))
        canvas.draw_line(drawn)
        assert dots_of(canvas) == expected
    if len(points) == 1:
        single = Canvas(2, 2, (10.0, 20.0), (100.0, 200.0))
        single.draw_dot(*points[0])
        assert dots_of(single) == expected


def test_the_line_has_its_color_where_an_episode_is_too() -> None:
    cells = [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [style_of(cell) for cell in cells] == ["", "yellow", "bold cyan", "bold cyan"]


def test_before_the_first_episode_the_chart_says_so() -> None:
    lines = chart(TrainingView("a", "b", 1, 100, Path("runs/x")), 51, 4)
    assert [line.plain for line in lines] == [
        *["", ""],
        "  the learning curve begins with the first episode ",
        *["", "", ""],
    ]
    assert lines[2].style == "dim"


@pytest.mark.parametrize(
    ("columns", "margin", "expected"),
    [
        (31, 5, "      └0           5,000  10,000 steps"),
        (30, 0, " └0           5,000 10,000 steps"),
        (4, 2, "   └05,00010,000 steps"),  # no room: nothing is lost
    ],
)
def test_step_axis(columns: int, margin: int, expected: str) -> None:
    (axis,) = step_axis(10_000, columns, margin)
    assert axis.plain == expected


def test_legend_has_the_number_of_episodes_where_it_fits() -> None:
    view = TrainingView("a", "b", 1, 100, Path("runs/x"))
    short = " return:  ⣀⠤⠒ evaluation   ⠂ training episode"
    assert legend(view, 200).plain == short
    view.take(Evaluation(1, 50, 10, 0.0, 0.0, 0.0, 0.0))
    long = " return:  ⣀⠤⠒ evaluation, mean of 10 episodes   ⠂ training episode"
    assert legend(view, len(long)).plain == long
    assert legend(view, len(long) - 1).plain == short
    assert [str(span.style) for span in legend(view, 200).spans] == [
        *["dim", "bold cyan"],
        *["dim", "yellow", "dim"],
    ]
