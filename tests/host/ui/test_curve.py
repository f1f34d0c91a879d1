"""The learning curve on a terminal, cell by cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.clients.messages import Evaluation, TrainingProgress
from rltools_host.training.progress import TrainingView
from rltools_host.ui.curve import Canvas, chart, tick_labels


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
    ],
)
def test_ticks_have_the_digits_that_tell_them_apart(
    low: float, high: float, tick: float, labels: dict[int, str]
) -> None:
    assert tick_labels(low, high, tick, 4) == labels
