"""The progress of `rlt train`: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
from typing import IO, TYPE_CHECKING

from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.documents import printable
from rltools_host.lines import columns, in_columns
from rltools_host.screen.terminal import InPlace, can_show, curve, duration, number
from rltools_host.training.metrics_log import words
from rltools_host.training.progress import Screen, TrainingView

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

LOADING_S = 0.02  # of processor time, about what importing rich takes
PLAIN_LINE_S = 10.0  # between plain lines when no evaluation comes
METRIC_WIDTH = 7  # room for a number at least: its digits are seldom what decides how many fit


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
    """Return a line such as `pendulum-td3 on host, seed 1: steps 0 to 10,000, run runs/x`."""
    return (
        f"{view.experiment} on {view.board}, seed {view.seed}: "
        f"steps {view.first_step:,} to {view.steps:,}, run {view.run}"
    )


def plain_line(view: TrainingView, with_evaluation: bool) -> str:
    """Return a line such as `step 3,000 of 10,000 52.3 steps/s left 2:14 return -993.5 ± 174.5
    critic 1 loss 0.08`, with the first of the algorithm's metrics."""
    width = len(f"{view.steps:,}")
    parts = [f"step {view.step:>{width},} of {view.steps:,}"]
    parts.append(f"{number(view.steps_per_s)} steps/s")
    parts.append(f"left {duration(view.left_s)}")
    if with_evaluation and view.evaluation is not None:
        evaluation = view.evaluation
        parts.append(f"return {evaluation.return_mean:.1f} ± {evaluation.return_std:.1f}")
    elif math.isfinite(view.last_return):
        parts.append(f"last return {view.last_return:.1f}")
    if math.isfinite(view.episode_length):
        parts.append(f"length {number(view.episode_length)}")
    name, value = next(iter(view.metrics.items()), ("", math.nan))
    if math.isfinite(value):
        parts.append(f"{words(name)} {number(value)}")
    return "   ".join(parts)


class LiveScreen(Screen):
    """A picture that stays in place, drawn at most twice a second.

    It begins when the run is so long that importing rich is a small share of it; a shorter run
    shows its last picture only.
    """

    def __init__(self, view: TrainingView, stream: IO[str]) -> None:
        super().__init__(view)
        self._shown = InPlace(stream)
        self._shown.rest(view.clock(), LOADING_S)
        lines = in_columns([heading(view)], columns(stream))
        print("\n".join(lines), file=stream, flush=True)

    def refresh(self) -> None:
        if self._shown.is_due(self.view.clock()):
            self._draw()

    def activity(self, text: str, share: float | None = None) -> None:
        changed = text != self.view.activity
        super().activity(text, share)
        if changed and self._shown.has_begun:
            self._shown.hurry()
        self.refresh()

    def close(self) -> None:
        self.view.activity, self.view.activity_share = "", None
        if not self._shown.has_begun and self.view.began is None:
            return  # nothing has been shown, and there is nothing to show
        self._draw()
        self._shown.end()

    def _draw(self) -> None:
        self._shown.draw(self.view.clock(), lambda width, _: picture(self.view, width))


def make_screen(view: TrainingView, stream: IO[str]) -> Screen:
    """Return the live screen where `stream` is a terminal that can show it, else plain lines."""
    return LiveScreen(view, stream) if can_show(stream) else PlainScreen(view, stream)


def picture(view: TrainingView, width: int) -> Group:
    """Return the live screen's picture."""
    from rich.console import Group
    from rich.rule import Rule
    from rich.text import Text

    width = min(width, 160) - 2
    title = Text.assemble((view.experiment, "bold"), " on ", (view.board, "bold"))
    title.append(f"   seed {view.seed}", "dim")
    lines: list[Text | Rule] = [Rule(title, align="left", style="dim"), bar(view, width)]
    lines += [Text(""), *figures(view, width), Text(""), *curves(view, width), Text("")]
    lines += [Text(f" the board says: {text}", "yellow") for text in view.texts]
    lines.append(footer(view, width))
    return Group(*lines)


def curves(view: TrainingView, width: int) -> list[Text]:
    """Return the learning curve: evaluations, and training episodes."""
    from rich.text import Text

    found = [
        curve(name, points, view.steps, width, style)
        for name, points, style in (
            ("evaluations", view.evaluation_points, "bold cyan"),
            ("episodes   ", view.episode_points, "yellow"),
        )
        if points
    ]
    return found or [Text(" the learning curve begins with the first episode", "dim")]


def bar(view: TrainingView, width: int) -> Text:
    """Return a bar such as ` ━━━━━━━━╸──────── 62 % 6,240 of 10,000 steps`."""
    from rich.text import Text

    label = f"{100 * view.share:3.0f} %   {view.step:,} of {view.steps:,} steps"
    room = max(10, width - len(label) - 4)
    text = Text(" ")
    full = int(2 * room * view.share)  # halves of a character
    text.append("━" * (full // 2) + "╸" * (full % 2), "green" if full == 2 * room else "cyan")
    text.append("─" * (room - full // 2 - full % 2), "dim")
    text.append(f"   {label}")
    return text


def figures(view: TrainingView, width: int) -> list[Text]:
    """Return speed, returns and metrics, a line each."""
    evaluation = view.evaluation
    evaluated = f"{evaluation.return_mean:.1f} ± {evaluation.return_std:.1f}" if evaluation else "-"
    left = duration(view.left_s) if view.step < view.steps else "none"
    metrics = [(words(name), number(value)) for name, value in view.metrics.items()]
    return [
        figure_line(
            width,
            ("speed", f"{number(view.steps_per_s)} steps/s"),
            ("elapsed", duration(view.elapsed_s)),
            ("left", left),
            ("episodes", f"{view.episodes:,}"),
            ("updates", f"{view.updates:,}"),
        ),
        figure_line(
            width,
            ("return in evaluation", evaluated),
            ("best", number(view.best_return)),
            ("last episode", number(view.last_return)),
            ("episode length", number(view.episode_length)),
        ),
        figure_line(width, *metrics, room=METRIC_WIDTH),
    ]


def figure_line(width: int, *pairs: tuple[str, str], room: int = 0) -> Text:
    """Return the first pairs that fit into a line, with at least `room` for a value: none is
    cut."""
    from rich.text import Text

    text = Text(no_wrap=True)
    for name, value in pairs:
        width -= len(f" {name} {value:<{room}}  ")
        if width >= -2:  # the last one's spaces
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
        run = ""  # the heading above has it
    return Text(f"{run}{' ' * (width - len(run) - len(hint))}{hint}", "dim", no_wrap=True)
