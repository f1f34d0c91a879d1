"""What `rlt train` shows: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rltools_host.session import Evaluation, StatusText, TrainingProgress

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

REFRESH_S = 0.5
DRAWING_SHARE = 0.02  # of the time at most: a board on this machine may share the core
LOADING_S = 0.02  # of processor time, about what importing rich takes
NARROWEST = 40
PLAIN_LINE_S = 10.0  # between plain lines when no evaluation comes
RATE_WINDOW_S = 5.0
CHART_ROWS = (5, 14)  # fewest and most
BRAILLE = 0x2800
# The bit of a braille character for the dot in row 0..3 and column 0..1 of its cell.
BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))

Point = tuple[float, float]


@dataclass
class TrainingView:
    """Everything that the screen shows of a run."""

    experiment: str
    board: str
    seed: int
    steps: int
    run: Path
    first_step: int = 0
    clock: Callable[[], float] = time.monotonic
    step: int = 0
    updates: int = 0
    episodes: int = 0
    last_return: float = math.nan
    best_return: float = math.nan
    critic_1_loss: float = math.nan
    critic_2_loss: float = math.nan
    actor_loss: float = math.nan
    evaluation: Evaluation | None = None
    evaluation_points: list[Point] = field(default_factory=list)
    episode_points: list[Point] = field(default_factory=list)
    texts: deque[str] = field(default_factory=lambda: deque(maxlen=2))
    activity: str = ""
    activity_share: float | None = None
    ended: float | None = None

    def __post_init__(self) -> None:
        self.step = self.first_step
        self.began: float | None = None
        self._history: deque[tuple[float, int]] = deque([(self.clock(), self.first_step)])

    def begin(self) -> None:
        """Training starts now; the time before does not count."""
        self.began = self.clock()
        self._history = deque([(self.began, self.first_step)])

    def end(self) -> None:
        """Training is at rest; what follows does not count."""
        self.ended = self.clock()

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        """Takes in what the board reports."""
        if isinstance(event, StatusText):
            self.texts.append(printable(event.text))
            return
        self.reach(event.step)
        if isinstance(event, Evaluation):
            self._take_evaluation(event)
        else:
            self._take_progress(event)

    def _take_evaluation(self, event: Evaluation) -> None:
        self.evaluation = event
        self.evaluation_points.append((event.step, event.return_mean))

    def _take_progress(self, event: TrainingProgress) -> None:
        if event.episodes > self.episodes and math.isfinite(event.last_return):
            self.episode_points.append((event.step, event.last_return))
        self.updates, self.episodes = event.updates, event.episodes
        self.last_return, self.best_return = event.last_return, event.best_return
        if math.isfinite(event.critic_1_loss):
            self.critic_1_loss, self.critic_2_loss = event.critic_1_loss, event.critic_2_loss
        if math.isfinite(event.actor_loss):
            self.actor_loss = event.actor_loss

    def take_row(self, row: Mapping[str, Any]) -> None:
        """Takes in a row of metrics.jsonl, of the part of the run before this session."""
        known: dict[str, Any] = {
            name: math.nan if value is None else value for name, value in row.items()
        }
        if row.get("kind") == "evaluation":
            fields = Evaluation.__dataclass_fields__
            self._take_evaluation(Evaluation(**{name: known[name] for name in fields}))
        elif row.get("kind") == "progress":
            fields = TrainingProgress.__dataclass_fields__
            self._take_progress(TrainingProgress(**{name: known[name] for name in fields}))

    def reach(self, step: int) -> None:
        """So many steps are done now."""
        now = self.clock()
        self.step = step
        self._history.append((now, step))
        while len(self._history) > 2 and now - self._history[1][0] > RATE_WINDOW_S:
            self._history.popleft()

    @property
    def elapsed_s(self) -> float:
        if self.began is None:
            return 0.0
        return (self.clock() if self.ended is None else self.ended) - self.began

    @property
    def steps_per_s(self) -> float:
        """Of the last seconds."""
        (then, first), (now, last) = self._history[0], self._history[-1]
        return (last - first) / (now - then) if now > then else math.nan

    @property
    def left_s(self) -> float:
        rate = self.steps_per_s
        return (self.steps - self.step) / rate if rate > 0 else math.nan

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 1.0


class Screen:
    """Shows a view; this base class shows nothing."""

    def __init__(self, view: TrainingView) -> None:
        self.view = view

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        self.view.take(event)

    def refresh(self) -> None:
        """Called often; draws as often as is good."""

    def activity(self, text: str, share: float | None = None) -> None:
        """Shows what goes on besides training; an empty text: nothing."""
        self.view.activity, self.view.activity_share = text, share

    def close(self) -> None:
        """Leaves the last picture."""


class PlainScreen(Screen):
    """A line for each evaluation, and one now and then between them."""

    def __init__(self, view: TrainingView, stream: IO[str]) -> None:
        super().__init__(view)
        self._stream = stream
        self._line_at = view.clock()
        self._print(heading(view))

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        super().take(event)
        if isinstance(event, StatusText):
            self._print(f"  the board says: {printable(event.text)}")
        elif isinstance(event, Evaluation) or self.view.clock() - self._line_at > PLAIN_LINE_S:
            self._line_at = self.view.clock()
            self._print(f"  {plain_line(self.view, isinstance(event, Evaluation))}")

    def activity(self, text: str, share: float | None = None) -> None:
        if text and text != self.view.activity:
            self._print(f"  {text}")
        super().activity(text, share)

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def heading(view: TrainingView) -> str:
    """`pendulum-td3 on host, seed 1: steps 0 to 10,000, run runs/x`."""
    return (
        f"{view.experiment} on {view.board}, seed {view.seed}: "
        f"steps {view.first_step:,} to {view.steps:,}, run {view.run}"
    )


def printable(text: str) -> str:
    """Without characters that would move a terminal's cursor."""
    return "".join(character if character.isprintable() else "?" for character in text)


def plain_line(view: TrainingView, with_evaluation: bool) -> str:
    """`step 3,000 of 10,000  52.3 steps/s  left 2:14  return -993.5 ± 174.5  critic loss 0.08`."""
    width = len(f"{view.steps:,}")
    parts = [f"step {view.step:>{width},} of {view.steps:,}"]
    parts.append(f"{number(view.steps_per_s)} steps/s")
    parts.append(f"left {duration(view.left_s)}")
    if with_evaluation and view.evaluation is not None:
        evaluation = view.evaluation
        parts.append(f"return {evaluation.return_mean:.1f} ± {evaluation.return_std:.1f}")
    elif math.isfinite(view.last_return):
        parts.append(f"last return {view.last_return:.1f}")
    if math.isfinite(view.critic_1_loss):
        parts.append(f"critic loss {number(view.critic_1_loss)}")
    return "   ".join(parts)


class Pace:
    """When to do again what costs time: not before a while, and not for more than a share of it."""

    def __init__(self, interval_s: float, share: float) -> None:
        self._interval_s = interval_s
        self._share = share
        self._due_at = -math.inf

    def is_due(self, now: float) -> bool:
        return now >= self._due_at

    def done(self, now: float, cost_s: float) -> None:
        """It was done just now, and cost this much."""
        self._due_at = now + max(self._interval_s, cost_s / self._share)

    def hurry(self) -> None:
        """It is due at once."""
        self._due_at = -math.inf


class LiveScreen(Screen):
    """A picture that stays in place, drawn at most twice a second.

    It begins when the run is so long that importing rich is a small share of it; a shorter run
    shows its last picture only.
    """

    def __init__(self, view: TrainingView, stream: IO[str]) -> None:
        super().__init__(view)
        self._stream = stream
        self._live: Live | None = None
        self._pace = Pace(REFRESH_S, DRAWING_SHARE)
        self._pace.done(view.clock(), LOADING_S)
        print(heading(view), file=stream, flush=True)

    def refresh(self) -> None:
        if self._pace.is_due(self.view.clock()):
            self._draw()

    def activity(self, text: str, share: float | None = None) -> None:
        changed = text != self.view.activity
        super().activity(text, share)
        if changed and self._live is not None:
            self._pace.hurry()
        self.refresh()

    def close(self) -> None:
        self.view.activity, self.view.activity_share = "", None
        if self._live is None and self.view.began is None:
            return  # nothing has been shown, and there is nothing to show
        self._draw()
        if self._live is not None:
            self._live.stop()

    def _draw(self) -> None:
        if self._live is None:
            self._live = open_live(self._stream)
        began = time.thread_time()
        width, height = self._live.console.size
        self._live.update(picture(self.view, width, height), refresh=True)
        self._pace.done(self.view.clock(), time.thread_time() - began)


def open_live(stream: IO[str]) -> Live:
    """rich's picture in place. It draws when it is told to, and has no thread."""
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(file=stream), auto_refresh=False, vertical_overflow="crop")
    live.start()
    return live


def make_screen(view: TrainingView, stream: IO[str]) -> Screen:
    """The live screen where `stream` is a terminal that can show it, else plain lines."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return PlainScreen(view, stream)
    with contextlib.suppress(OSError):
        if 0 < os.get_terminal_size(stream.fileno()).columns < NARROWEST:
            return PlainScreen(view, stream)
    return LiveScreen(view, stream)


def picture(view: TrainingView, width: int, height: int) -> Group:
    """The live screen's picture."""
    from rich.console import Group
    from rich.rule import Rule
    from rich.text import Text

    width = min(width, 160) - 2
    title = Text.assemble((view.experiment, "bold"), " on ", (view.board, "bold"))
    title.append(f"   seed {view.seed}", "dim")
    rows = max(CHART_ROWS[0], min(CHART_ROWS[1], height - 14))
    lines: list[Text | Rule] = [Rule(title, align="left", style="dim"), bar(view, width)]
    lines += [Text(""), *figures(view), Text(""), *chart(view, width, rows), Text("")]
    lines += [Text(f" the board says: {text}", "yellow") for text in view.texts]
    lines.append(footer(view, width))
    return Group(*lines)


def bar(view: TrainingView, width: int) -> Text:
    """` ━━━━━━━━╸────────   62 %   6,240 of 10,000 steps`."""
    from rich.text import Text

    told = f"{100 * view.share:3.0f} %   {view.step:,} of {view.steps:,} steps"
    room = max(10, width - len(told) - 4)
    full = int(2 * room * view.share)
    text = Text(" ")
    text.append("━" * (full // 2) + "╸" * (full % 2), "green" if full == 2 * room else "cyan")
    text.append("─" * (room - full // 2 - full % 2), "dim")
    text.append(f"   {told}")
    return text


def figures(view: TrainingView) -> list[Text]:
    """Speed, returns and losses, a line each."""
    evaluation = view.evaluation
    evaluated = f"{evaluation.return_mean:.1f} ± {evaluation.return_std:.1f}" if evaluation else "-"
    left = duration(view.left_s) if view.step < view.steps else "none"
    return [
        figure_line(
            ("speed", f"{number(view.steps_per_s)} steps/s"),
            ("elapsed", duration(view.elapsed_s)),
            ("left", left),
            ("episodes", f"{view.episodes:,}"),
            ("updates", f"{view.updates:,}"),
        ),
        figure_line(
            ("return in evaluation", evaluated),
            ("last episode", number(view.last_return)),
            ("best", number(view.best_return)),
        ),
        figure_line(
            ("losses of critics", f"{number(view.critic_1_loss)}, {number(view.critic_2_loss)}"),
            ("actor", number(view.actor_loss)),
        ),
    ]


def figure_line(*pairs: tuple[str, str]) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True)
    for name, value in pairs:
        text.append(f" {name} ", "dim")
        text.append(f"{value}  ", "bold")
    return text


def footer(view: TrainingView, width: int) -> Text:
    from rich.text import Text

    if view.activity:
        text = Text(f" {view.activity}", "cyan")
        if view.activity_share is not None:
            text.append(f"  {100 * view.activity_share:.0f} %")
        return text
    if view.step >= view.steps:
        return Text("")
    hint = "Ctrl-C pauses and saves"
    run = f" {view.run}"
    if len(run) + len(hint) + 2 > width:
        run = f" …{run[-(width - len(hint) - 4) :]}"
    return Text(f"{run}{' ' * (width - len(run) - len(hint))}{hint}", "dim", no_wrap=True)


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
    return [*result, *step_axis(view.steps, columns, margin), legend(view)]


def style_of(cell: tuple[int, int]) -> str:
    """Of a cell with the dots of the line and those of the episodes."""
    on_line, on_dots = cell
    return "bold cyan" if on_line else "yellow" if on_dots else ""


def step_axis(steps: int, columns: int, margin: int) -> list[Text]:
    from rich.text import Text

    middle, last = f"{steps // 2:,}", f"{steps:,} steps"
    axis = "0" + middle.rjust(columns // 2 + len(middle) // 2 - 1)
    return [Text(f"{'':>{margin}} └{axis}{last:>{max(0, columns - len(axis))}}", "dim")]


def legend(view: TrainingView) -> Text:
    from rich.text import Text

    count = view.evaluation.episodes if view.evaluation else 0
    episodes = f", mean of {count} episodes" if count else ""
    text = Text.assemble((" return:  ", "dim"))
    text.append("⣀⠤⠒ ", "bold cyan")
    text.append(f"evaluation{episodes}   ", "dim")
    text.append("⠂ ", "yellow")
    text.append("training episode", "dim")
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
    if high == low:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / 4))
    tick = next(f * power for f in (1, 2, 5, 10) if f * power >= span / 4 * 0.999)
    return math.floor(low / tick) * tick, math.ceil(high / tick) * tick or 0.0, tick


def tick_labels(low: float, high: float, tick: float, rows: int) -> dict[int, str]:
    """Row of the chart -> label of the tick that lies in it."""
    labels = {}
    count = round((high - low) / tick) or 1
    for i in range(count + 1):
        value = low + i * tick
        row = round((high - value) / (high - low or 1.0) * (4 * rows - 1)) // 4
        labels[row] = f"{value:,.{max(0, -math.floor(math.log10(tick)))}f}"
    return labels


def number(value: float) -> str:
    """Three or four digits that matter; a dash for what is not known."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """`0:07`, `12:40`, `2:03:00`."""
    if not math.isfinite(seconds):
        return "-"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    if hours:
        return f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{rest // 60}:{rest % 60:02}"
