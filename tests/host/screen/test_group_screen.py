"""The screen of a group of runs."""

from __future__ import annotations

import io
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from rltools_host.runs.group import RunName
from rltools_host.screen import terminal
from rltools_host.screen.group_screen import (
    LiveGroupScreen,
    PlainGroupScreen,
    change_of,
    chosen,
    footer,
    heading,
    make_group_screen,
    picture,
    plain_line,
)
from rltools_host.screen.training_screen import PLAIN_LINE_S
from rltools_host.training.progress import (
    FAILED,
    FINISHED,
    PAUSED,
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
@pytest.mark.parametrize("width", [40, 47, 60, 80, 120, 300])
@pytest.mark.parametrize("height", [6, 10, 24, 50])
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


def test_columns_give_way_in_their_order() -> None:
    kept = [drawn(view_of(STATES), width, 24)[0].split()[2:] for width in range(40, 90)]
    assert kept[0] == ["step"]
    assert ["step", "return"] in kept
    assert kept[-2:] == [["step", "return", "left", "steps/s", "length"]] * 2
    assert ["step", "return", "left", "steps/s"] in kept
    assert kept == sorted(kept, key=len)


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


def test_plain_line_now_and_then() -> None:
    stream = io.StringIO()
    now = 0.0
    view = view_of([TRAINING, WAITING], "without it")
    view.clock = lambda: now
    screen = PlainGroupScreen(view, stream)
    for now in (5.0, 10.5, 11.0, 21.0):  # noqa: B007 - read by the clock
        screen.refresh()
    line = "  1 training, 1 waiting   without it, seed 0 at step 2,500   left 2:55"
    assert stream.getvalue().splitlines()[1:] == [line, line]


def member_of(state: str, step: int = 0, **figures: float) -> Member:
    member = Member(RunName("", 3), "", Path("s3"), 10_000, state)
    figures = {"return_mean": math.nan, "return_std": math.nan, **figures}
    member.take({"step": step, "steps": 10_000, "steps_per_s": None, **figures})
    member.state, member.error = state, "the board is gone"
    return member


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        (member_of(STARTING), "seed 3: starting"),
        (member_of(TRAINING, 10, return_mean=1.0), "seed 3: training"),
        (member_of(FAILED, 10, return_mean=1.0), "seed 3: failed: the board is gone"),
        (member_of(PRUNED, 1_000), "seed 3: pruned at step 1,000"),
        (
            member_of(PAUSED, 2_000, return_mean=-1.25, return_std=0.06),
            "seed 3: paused at step 2,000, return -1.2 ± 0.1",
        ),
    ],
)
def test_a_change_in_words(member: Member, expected: str) -> None:
    assert change_of(member) == expected


def test_heading_counts_the_runs() -> None:
    view = view_of([WAITING])
    assert heading(view) == "pendulum-ppo on host: 1 run, 2 at once, in g"
    view.total = 12
    assert heading(view) == "pendulum-ppo on host: 12 runs, 2 at once, in g"


def test_plain_lines_wait_after_a_change() -> None:
    now, stream = 0.0, io.StringIO()
    view = view_of([TRAINING, FINISHED])
    view.clock = lambda: now
    screen = PlainGroupScreen(view, stream)
    now = PLAIN_LINE_S
    screen.refresh()
    assert stream.getvalue().count("\n") == 1, "a moment later"
    screen.changed(view.members[1])
    now = 2 * PLAIN_LINE_S
    screen.refresh()
    assert stream.getvalue().count("\n") == 2
    now += 0.1
    screen.refresh()
    screen.activity("")
    assert stream.getvalue().count("\n") == 3
    view.members[0].state = WAITING
    assert plain_line(view) == "1 finished, 1 waiting   left -"


def test_who_is_chosen() -> None:
    """In their order, all where they fit; else with a line for how many do not."""
    members = view_of([WAITING, FINISHED, TRAINING, PRUNED]).members
    assert chosen(members, 4) == (members, [])
    assert chosen(members, 3) == ([members[1], members[2]], [members[0], members[3]])
    assert chosen(members, 2) == ([members[2]], [members[0], members[1], members[3]])


def test_footer_says_what_ctrl_c_does_where_it_fits() -> None:
    view = view_of([TRAINING])
    told = " 1 training   elapsed 0:00   left 1:15"
    hint = "Ctrl-C pauses and saves"
    fits = len(told) + 2 + len(hint)
    assert footer(view, fits).plain == f"{told}  {hint}"
    assert footer(view, fits + 3).plain == f"{told}     {hint}"
    assert footer(view, fits - 1).plain == told
    assert footer(view, 9).plain == " 1 traini"
    view.activity = "pausing"
    assert (footer(view, 80).plain, footer(view, 4).plain) == (" pausing", " pau")
    at_rest = view_of([FINISHED])
    assert footer(at_rest, 80).plain == " 1 finished   elapsed 0:00"


def test_the_live_table_is_drawn_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, drawn_at, stopped = 0.0, [], []
    view = view_of([TRAINING])
    view.clock = lambda: now
    live = SimpleNamespace(
        console=SimpleNamespace(size=(80, 24)),
        transient=False,
        update=lambda _picture, refresh: drawn_at.append((now, refresh)),
        stop=lambda: stopped.append(live.transient),
    )
    monkeypatch.setattr(terminal, "open_live", lambda _stream: live)
    monkeypatch.setattr(terminal, "DRAWING_SHARE", 1e6)  # what drawing costs is another test
    stream = io.StringIO()
    screen = LiveGroupScreen(view, stream)
    assert stream.getvalue() == "pendulum-ppo on host: 1 run, 2 at once, in g\n"
    for now in (0.4, 0.5, 0.6):  # noqa: B007 - read by the clock
        screen.refresh()
    screen.activity("pausing")
    assert view.activity == "pausing"
    screen.refresh()
    screen.close()
    assert drawn_at == [(0.0, True), (0.5, True), (0.6, True)]
    assert stopped == [True], "what it showed goes"
