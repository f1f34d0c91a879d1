"""The screen of a group of runs."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest

from rltools_host.runs.group import RunName
from rltools_host.screen.group_screen import (
    PlainGroupScreen,
    make_group_screen,
    picture,
    plain_line,
    result_lines,
)
from rltools_host.training.progress import (
    FAILED,
    FINISHED,
    STARTING,
    TRAINING,
    WAITING,
    GroupView,
    Member,
)
from terminal import drawn

LABEL = "without observation normalization"


def view_of(states: list[str], label: str = "") -> GroupView:
    now = [0.0]
    members = []
    for seed, state in enumerate(states):
        member = Member(RunName("v" if label else "", seed), label, Path(f"s{seed}"), 10_000, state)
        if state in (TRAINING, FINISHED):
            step = 10_000 if state == FINISHED else 2_500
            rate = 100.0 if state == TRAINING else math.nan
            values = {"steps_per_s": rate, "left_s": 75.0 if state == TRAINING else 0.0}
            returns = {"return_mean": -1234.5, "return_std": 56.7, "length_mean": 1999.6}
            member.take({"step": step, "steps": 10_000, **values, **returns})
        members.append(member)
    return GroupView("pendulum-ppo on host", "host", Path("g"), members, 2, clock=lambda: now[0])


STATES = [FINISHED, TRAINING, TRAINING, FAILED, STARTING, *[WAITING] * 5]


@pytest.mark.parametrize(("width", "height", "label"), [(40, 6, ""), (120, 24, LABEL)])
def test_picture_fits(width: int, height: int, label: str) -> None:
    lines = drawn(picture(view_of(STATES, label), width, height), width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert len({len(line) for line in lines[:-2]}) == 1, "columns are not in line"
    assert lines[0].split()[: 2 + bool(label)] == (["variant"] * bool(label) + ["seed", "state"])
    assert "training" in "".join(lines[1:-1])


def test_plain_lines() -> None:
    stream = io.StringIO()
    view = view_of([WAITING, TRAINING])
    screen = make_group_screen(view, stream)
    assert isinstance(screen, PlainGroupScreen)
    first, second = view.members
    first.state = STARTING
    screen.changed(first)
    second.state = FINISHED
    screen.changed(second)
    first.state, first.error = FAILED, "the board is gone"
    screen.changed(first)
    screen.refresh()
    screen.activity("pausing")
    screen.activity("pausing")
    screen.close()
    assert stream.getvalue().splitlines() == [
        "pendulum-ppo on host: 2 runs, 2 at once, in g",
        "  seed 1: finished at step 2,500, return -1234.5 ± 56.7",
        "  seed 0: failed: the board is gone",
        "  pausing",
    ]


def test_of_a_thousand_runs_the_worst_have_a_line() -> None:
    stream = io.StringIO()
    view = view_of([TRAINING] * 1000)
    screen = make_group_screen(view, stream)
    for member in view.members:
        member.return_mean = -float(member.seed)
        member.state = FINISHED
        screen.changed(member)
    view.members[7].state, view.members[7].error = FAILED, "the board is gone"
    screen.changed(view.members[7])
    assert stream.getvalue().splitlines()[1:] == ["  seed 7: failed: the board is gone"]
    assert plain_line(view_of([TRAINING] * 1000)) == "1000 training   at step 2,500   left 1:15"
    summary = {"variant": "", "label": "", "runs": 999, "failed": 1}
    summary |= {"mean": -500.0, "std": 1.0, "worst": -999.0, "median": -500.0}
    runs = [member.figures() for member in view.members]
    lines = result_lines({"runs": runs, "summary": [summary]})
    assert [line.split()[0] for line in lines[:9]] == ["seed", "7", *map(str, range(999, 992, -1))]
    assert any(line.startswith("  8 of 1,000 runs are listed") for line in lines)
    assert len(lines) < 20
