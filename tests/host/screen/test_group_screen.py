"""The screen of a group of runs."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest

from rltools_host.runs.group import RunName
from rltools_host.screen.group_screen import (
    PlainGroupScreen,
    chosen,
    make_group_screen,
    picture,
)
from rltools_host.training.progress import (
    FAILED,
    FINISHED,
    PRUNED,
    STARTING,
    TRAINING,
    WAITING,
    GroupView,
    Member,
)

LABELS = ("", "without observation normalization")


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


def drawn(view: GroupView, width: int, height: int) -> list[str]:
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream, width=width, height=height, force_terminal=True, color_system=None
    )
    console.print(picture(view, width, height))
    return stream.getvalue().rstrip("\n").split("\n")


STATES = [FINISHED, TRAINING, TRAINING, FAILED, STARTING, *[WAITING] * 5]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("width", [40, 120])
@pytest.mark.parametrize("height", [6, 24])
def test_picture_fits(width: int, height: int, label: str) -> None:
    lines = drawn(view_of(STATES, label), width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    assert len({len(line) for line in lines[:-2]}) == 1, "columns are not in line"
    assert lines[0].split()[: 2 + bool(label)] == (["variant"] * bool(label) + ["seed", "state"])
    assert "training" in "".join(lines[1:-1])


def test_what_is_in_a_wide_picture() -> None:
    lines = drawn(view_of(STATES), 120, 24)
    assert lines[0].split() == ["seed", "state", "step", "return", "left", "steps/s", "length"]
    assert lines[1].split()[:2] == ["0", "finished"]
    whole = lines[1].count("━")
    assert whole > 40
    words = lines[2].split()
    assert (words[0], words[1], words[3:]) == (
        "1",
        "training",
        ["2,500", "-1234.5", "±", "56.7", "1:15", "100.0", "2,000"],
    )
    assert words[2].count("━") == whole // 4
    assert lines[4].split()[:2] == ["3", "failed"]
    assert lines[-1].split("   ")[0] == " 1 finished, 2 training, 1 starting, 5 waiting, 1 failed"
    assert lines[-1].endswith("Ctrl-C pauses and saves")
    # 2 and 1 and 6 runs to go, of which 200 steps are done in a second.
    assert f"left {(2 * 7_500 + 6 * 10_000) // 200 // 60}:15" in lines[-1]


def test_what_trains_is_shown_first_where_there_is_no_room() -> None:
    lines = drawn(view_of([*[FINISHED] * 20, TRAINING, TRAINING, *[WAITING] * 20]), 80, 10)
    seeds = [line.split()[0] for line in lines[1:-2]]
    assert seeds == ["0", "1", "2", "20", "21"]
    assert lines[-2] == " and 37 more: 17 finished, 20 waiting"


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


def test_who_is_chosen() -> None:
    """In their order, all where they fit; else with a line for how many do not."""
    members = view_of([WAITING, FINISHED, TRAINING, PRUNED]).members
    assert chosen(members, 4) == (members, [])
    assert chosen(members, 3) == ([members[1], members[2]], [members[0], members[3]])
    assert chosen(members, 2) == ([members[2]], [members[0], members[1], members[3]])
