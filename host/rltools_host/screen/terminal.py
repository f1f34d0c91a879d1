"""The parts of a terminal's screen: a picture that stays in place, a bar, a curve in a line, and
the steps of a command."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from rltools_host.lines import ProgressLine, say
from rltools_host.training.progress import Point

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

REFRESH_S = 0.5
DRAWING_SHARE = 0.02  # of the time at most: a board on this machine may share the core
NARROWEST = 40


class InPlace:
    """A picture that stays in place on a terminal, drawn after an interval at least, and with a
    limited share of the time. It begins with the first one that is drawn, as importing rich takes a
    while."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._live: Live | None = None
        self._due_at = -math.inf

    @property
    def has_begun(self) -> bool:
        return self._live is not None

    def is_due(self, now: float) -> bool:
        return now >= self._due_at

    def rest(self, now: float, cost_s: float) -> None:
        """Wait until drawing is due again, after what it has cost."""
        self._due_at = now + max(REFRESH_S, cost_s / DRAWING_SHARE)

    def hurry(self) -> None:
        """Make it due at once."""
        self._due_at = -math.inf

    def draw(self, now: float, picture: Callable[[int, int], RenderableType]) -> None:
        """Draw what `picture` returns for a width and a height."""
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            # It draws on demand, without a thread.
            console = Console(file=self._stream)
            self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()
        began = time.thread_time()
        self._live.update(picture(*self._live.console.size), refresh=True)
        self.rest(now, time.thread_time() - began)

    def end(self, *, stays: bool = True) -> None:
        """Leave the last picture, or erase it."""
        if self._live is not None:
            self._live.transient = not stays
            self._live.stop()


def can_show(stream: IO[str]) -> bool:
    """Return whether it is a terminal on which a picture can stay in place."""
    if not stream.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return False
    with contextlib.suppress(OSError):
        return not 0 < os.get_terminal_size(stream.fileno()).columns < NARROWEST
    return True


def number(value: float) -> str:
    """Format three or four significant digits; a dash for what is not known."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """Format a duration such as `0:07`, `12:40`, `2:03:00`."""
    if not math.isfinite(seconds):
        return "-"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    if hours:
        return f"{hours}:{rest // 60:02}:{rest % 60:02}"
    return f"{rest // 60}:{rest % 60:02}"


BLOCKS = "▁▂▃▄▅▆▇█"
RANGE = 22  # characters, beside a curve


def curve(name: str, points: Sequence[Point], end: float, width: int, style: str) -> Text:
    """Return ` name ▁▂▅▇█        -1,230 to -151`: means of y over x from 0 to `end`."""
    from rich.text import Text

    cells: list[list[float]] = [[] for _ in range(max(1, width - len(name) - RANGE))]
    for x, y in points:
        if math.isfinite(y):
            cells[min(int(x / end * len(cells)), len(cells) - 1)].append(y)
    means = {index: sum(cell) / len(cell) for index, cell in enumerate(cells) if cell}
    text = Text.assemble((f" {name} ", "dim"), no_wrap=True, overflow="ellipsis")
    if not means:
        return text
    low, high = min(means.values()), max(means.values())
    line, block = "", " "
    for index in range(max(means) + 1):
        if index in means:
            share = (means[index] - low) / (high - low or 1.0)
            block = BLOCKS[round(share * (len(BLOCKS) - 1))]
        line += block  # else that of the cell before
    text.append(line.ljust(len(cells)), style)
    text.append(f"  {number(low)} to {number(high)}", "dim")
    return text


# -- steps of a command ----------------------------------------------------------------------------


@dataclass
class Step:
    """One step of a command; `text` is first its purpose, then its result."""

    name: str
    text: str
    seconds: float = 0.0


class StepsScreen:
    """The steps of a command: what each is for, then what it reports and its result, as lines; on a
    terminal also the share that is done."""

    def __init__(self, heading: str, steps: Sequence[Step], stream: IO[str]) -> None:
        self.steps = {step.name: step for step in steps}
        self._stream = stream
        self._width = max(map(len, self.steps))
        self._line = ProgressLine()
        self._print(heading, *(f"  {self._label(step)}  {step.text}" for step in steps))

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Yield the step while it is carried out; its `text` is then its result."""
        step = self.steps[name]
        step.text = ""
        began = time.monotonic()
        try:
            yield step
        finally:
            step.seconds = time.monotonic() - began
            self._line.clear()
        self._print(f"{self._label(step)}  {step.seconds:5.2f} s  {step.text}")

    def say(self, text: str) -> None:
        """Report what the step does."""
        self._print(f"  {text}")

    def progress(self, step: Step, share: float) -> None:
        """Show the share of the step that is done."""
        self._line.write(f"{self._label(step)}  {100 * share:3.0f} %")

    def _label(self, step: Step) -> str:
        return step.name.ljust(self._width)

    def _print(self, *lines: str) -> None:
        self._line.clear()
        say(self._stream, *lines)
