"""The progress of a group of runs: a table that stays in place on a terminal, plain lines
elsewhere; and its results, as lines of text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from rltools_host.lines import INDENT, UNLIMITED, folded, plural, wrapped
from rltools_host.screen.terminal import InPlace, can_show, duration, number
from rltools_host.screen.training_screen import PLAIN_LINE_S
from rltools_host.training.progress import (
    COMPILING,
    FAILED,
    FINISHED,
    PAUSED,
    PRUNED,
    STARTING,
    TRAINING,
    WAITING,
    GroupScreen,
    GroupView,
    Member,
    states_of,
)

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table
    from rich.text import Text

STYLES = {
    **dict.fromkeys((TRAINING, COMPILING, STARTING), "cyan"),
    FINISHED: "green",
    FAILED: "red",
    PAUSED: "yellow",
}
# What is shown first where not all lines fit.
SHOWN_FIRST = (TRAINING, COMPILING, STARTING, FAILED, PAUSED, FINISHED, WAITING, PRUNED)
WIDEST = 120
MANY = 50  # runs, of which a line each is not read
NAMED = 8  # of them, where some are
WITH_BAR = 56  # columns of the screen, beside the labels
MIN_LABEL, MAX_LABEL = 10, 34  # with a space to both sides


class PlainGroupScreen(GroupScreen):
    """A line for each change of a run, of MANY for faults alone, and one of all now and then."""

    def __init__(self, view: GroupView, stream: IO[str]) -> None:
        super().__init__(view)
        self._stream = stream
        self._line_at = view.clock()
        self._print(heading(view))

    def changed(self, member: Member) -> None:
        if self.view.count > MANY and member.state != FAILED:
            self.refresh()
            return
        self._line_at = self.view.clock()
        if member.state != STARTING:
            self._print(f"  {change_of(member)}")

    def refresh(self) -> None:
        if self.view.clock() - self._line_at > PLAIN_LINE_S:
            self._line_at = self.view.clock()
            self._print(f"  {plain_line(self.view)}")

    def activity(self, text: str) -> None:
        if text and text != self.view.activity:
            self._print(f"  {text}")
        super().activity(text)

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def heading(view: GroupView) -> str:
    """Return a line such as `pendulum-td3 on host: 10 runs, 2 at once, in runs/x`."""
    count = f"{view.count} run{'s' * (view.count != 1)}"
    return f"{view.title}: {count}, {view.jobs} at once, in {view.path}"


def change_of(member: Member) -> str:
    """Return a line such as `seed 3: finished at step 10,000, return -149.1 ± 80.2`."""
    text = f"{member.title}: {member.state}"
    if member.state == FAILED:
        return f"{text}: {member.error}"
    if member.state in (FINISHED, PAUSED, PRUNED):
        text += f" at step {member.step:,}"
        if math.isfinite(member.return_mean):
            text += f", return {returned(member)}"
    return text


def plain_line(view: GroupView) -> str:
    """Return a line such as `3 finished, 1 training, 5 waiting seed 3 at step 2,000 left 0:12`."""
    running = [member for member in view.members if member.state == TRAINING]
    now = "; ".join(f"{member.title} at step {member.step:,}" for member in running)
    if len(running) > NAMED:
        steps = [member.step for member in running]
        now = f"at step {min(steps):,}" + f" to {max(steps):,}" * (min(steps) < max(steps))
    now = f"   {now}" if now else ""
    return f"{states_of(view.members)}{now}   left {duration(view.left_s)}"


def returned(member: Member) -> str:
    if not math.isfinite(member.return_mean):
        return "-"
    return f"{member.return_mean:.1f} ± {member.return_std:.1f}"


class LiveGroupScreen(GroupScreen):
    """A table that stays in place, drawn at most twice a second.

    It is erased when all is over: the results are then printed for terminals and pipes in the same
    way.
    """

    def __init__(self, view: GroupView, stream: IO[str]) -> None:
        super().__init__(view)
        self._shown = InPlace(stream)
        print(heading(view), file=stream, flush=True)
        self.refresh()

    def refresh(self) -> None:
        now = self.view.clock()
        if self._shown.is_due(now):
            self._shown.draw(now, partial(picture, self.view))

    def activity(self, text: str) -> None:
        super().activity(text)
        self._shown.hurry()
        self.refresh()

    def close(self) -> None:
        self._shown.end(stays=False)


def make_group_screen(view: GroupView, stream: IO[str]) -> GroupScreen:
    """Return the live table where `stream` is a terminal that can show it, else plain lines."""
    return LiveGroupScreen(view, stream) if can_show(stream) else PlainGroupScreen(view, stream)


def picture(view: GroupView, width: int, height: int) -> Group:
    """Return a line for each run, as many as fit, and one for all."""
    from rich.console import Group
    from rich.text import Text

    width = min(width, WIDEST) - 1
    room = max(2, height - 4)  # beside heading, names of columns, last line
    shown, left_out = chosen(view.members, room)
    lines: list[Table | Text] = [table(shown, width)] if shown else []
    if left_out:
        text = f"and {len(left_out)} more: {states_of(left_out)}"
        lines.append(Text(f" {text}"[:width], "dim", no_wrap=True))
    lines.append(footer(view, width))
    return Group(*lines)


def chosen(members: Sequence[Member], room: int) -> tuple[list[Member], list[Member]]:
    """Return the members that are shown, in their order, and those that do not fit."""
    if len(members) <= room:
        return list(members), []
    by_state = sorted(range(len(members)), key=lambda i: SHOWN_FIRST.index(members[i].state))
    first = set(by_state[: room - 1])
    return (
        [member for index, member in enumerate(members) if index in first],
        [member for index, member in enumerate(members) if index not in first],
    )


def table(members: Sequence[Member], width: int) -> Table:
    """Return a row for each member, with the columns for which there is room."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    has_labels = any(member.label for member in members)
    label = max(MIN_LABEL, min(MAX_LABEL, width // 3)) if has_labels else 0
    has_bar = width - label >= WITH_BAR
    fitting = [column for column in COLUMNS if width - label >= column[1]]
    found = Table(box=None, padding=(0, 1), header_style="dim", width=width if has_bar else None)
    if has_labels:
        found.add_column("variant", max_width=label - 2, no_wrap=True)
    found.add_column("seed", justify="right")
    found.add_column("state", no_wrap=True)
    if has_bar:
        found.add_column(ratio=1)
    for name, _, _ in fitting:
        found.add_column(name, justify="right", no_wrap=True)
    for member in members:
        style = STYLES.get(member.state, "")
        row: list[RenderableType] = [Text(member.label)] if has_labels else []
        row += [str(member.seed), Text(member.state, style)]
        if has_bar:
            row.append(ProgressBar(1.0, member.share, complete_style=style, finished_style=style))
        found.add_row(*row, *(text_of(member) for _, _, text_of in fitting))
    return found


def length_of(steps: float | None) -> str:
    return f"{steps:,.0f}" if steps is not None and math.isfinite(steps) else "-"


def left_of(member: Member) -> str:
    return duration(member.left_s) if member.state == TRAINING else ""


def speed_of(member: Member) -> str:
    return number(member.steps_per_s) if math.isfinite(member.steps_per_s) else ""


# Name, columns of the screen beside the labels that it takes, and what it has of a member.
COLUMNS: tuple[tuple[str, int, Callable[[Member], str]], ...] = (
    ("step", 0, lambda member: f"{member.step:,}"),
    ("return", 48, returned),
    ("left", 62, left_of),
    ("steps/s", 72, speed_of),
    ("length", 82, lambda member: length_of(member.length_mean)),
)


def footer(view: GroupView, width: int) -> Text:
    """Return the states of the runs, the remaining time, and the hint on Ctrl-C."""
    from rich.text import Text

    if view.activity:
        return Text(f" {view.activity}"[:width], "cyan", no_wrap=True)
    line = f" {states_of(view.members)}   elapsed {duration(view.elapsed_s)}"
    if not any(member.is_running for member in view.members):
        return Text(line[:width], "dim", no_wrap=True)
    line += f"   left {duration(view.left_s)}"
    hint = "Ctrl-C pauses and saves"
    if len(line) + len(hint) + 2 <= width:
        line += f"{' ' * (width - len(line) - len(hint))}{hint}"
    return Text(line[:width], "dim", no_wrap=True)


def result_lines(document: Mapping[str, Any], width: int = UNLIMITED) -> list[str]:
    """Return a row for each run, of MANY for the worst ones, sentences on failures, and the
    summary."""
    runs: Sequence[Mapping[str, Any]] = document["runs"]
    are_many = len(runs) > MANY
    if are_many:
        runs = sorted(runs, key=rank_of)[:NAMED]
    labels: dict[str, str] = {e["variant"]: e["label"] for e in document["summary"]}
    has_variants = any(labels.values())
    rows: list[tuple[str, ...]] = [("variant", "seed", "state", "return", "length", "step", "time")]
    notes = []
    for each in runs:
        label, seed = labels[each["variant"]], str(each["seed"])
        train_s = math.nan if each["train_s"] is None else each["train_s"]
        returned = with_deviation(each["return_mean"], each["return_std"])
        step = f"{each['step']:,}"
        length = length_of(each.get("length_mean"))
        rows.append((label, seed, each["state"], returned, length, step, duration(train_s)))
        name = f"{label}, seed {seed}" if has_variants else f"seed {seed}"
        if each["error"]:
            notes.append(f"  {name}: {each['error']}")
        elif count := each.get("environment_faults"):
            notes.append(f"  {name}: the environment failed {times(count)}, and was made again")
        if count := each.get("observations_outside"):
            notes.append(f"  {name}: observations lay outside their range {times(count)}")
    if not has_variants:
        rows = [row[1:] for row in rows]
    if are_many:
        listed = f"{NAMED} of {len(document['runs']):,} runs are listed"
        notes.insert(0, f"  {listed}, failed ones and the worst first: group.json has all")
    notes += [""] if notes else []
    return [*indented(rows, width), "", *notes, *summary_lines(document["summary"], width)]


def rank_of(run: Mapping[str, Any]) -> tuple[bool, float]:
    """Return what failed runs, and those without a return, come first by, and then the worst."""
    mean = run["return_mean"]
    return (run["state"] != FAILED, -math.inf if mean is None else mean)


def times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def summary_lines(summary: Sequence[Mapping[str, Any]], width: int = UNLIMITED) -> list[str]:
    """Return the statistics of the final returns, a row for each variant, and how many runs failed,
    which have none."""
    known = [entry for entry in summary if entry["runs"] or entry.get("failed")]
    if not any(entry["runs"] for entry in known):
        return ["  no run has a final return yet"]
    rows: list[tuple[str, ...]] = [("return", "runs", "mean", "deviation", "worst", "median")]
    for entry in known:
        numbers = (entry[key] for key in ("mean", "std", "worst", "median"))
        label, runs = entry["label"] or "all seeds", str(entry["runs"])
        if lost := entry.get("failed"):
            runs += f" of {entry['runs'] + lost}"
        rows.append((label, runs, *map(one_decimal, numbers)))
    lines = indented(rows, width)
    if failed := sum(entry.get("failed") or 0 for entry in known):
        lines += wrapped(
            f"{plural(failed, 'run')} failed: mean, deviation, worst and median are of the others",
            width,
            INDENT,
            INDENT,
        )
    return lines


def indented(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Return the table, folded where a line would be longer."""
    return [f"{INDENT}{line}" for line in folded(rows, width - len(INDENT))]


def one_decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def with_deviation(mean: float | None, std: float | None) -> str:
    return one_decimal(mean) if mean is None or std is None else f"{mean:.1f} ± {std:.1f}"
