"""What a command of several steps shows: a table that stays in place on a terminal, plain lines
elsewhere. Of each step it says beforehand what it will do, and then what came of it and how long it
took."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from rltools_host.lines import UNLIMITED, in_columns, say
from rltools_host.ui.training_screen import (
    DRAWING_SHARE,
    REFRESH_S,
    Pace,
    add_bar,
    can_show,
    draw,
    open_live,
)

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

WAITING, RUNNING, DONE, FAILED = "waiting", "running", "done", "failed"
MARKS = {WAITING: " ", RUNNING: ">", DONE: "✓", FAILED: "✗"}
STYLES = {WAITING: "dim", RUNNING: "cyan", DONE: "green", FAILED: "red"}
WIDEST, BAR = 120, 20


@dataclass
class Step:
    """`text` is what it will do, then what it does now, then what came of it."""

    name: str
    text: str
    state: str = WAITING
    share: float | None = None  # of it that is done
    seconds: float = 0.0


class StepsScreen:
    """Plain lines: one where a step says something, one when it is done."""

    def __init__(self, heading: str, steps: Sequence[Step], stream: IO[str]) -> None:
        self.steps = {step.name: step for step in steps}
        self.stream = stream
        self._width = max(map(len, self.steps))
        self.print(heading)
        self.begin()

    def begin(self) -> None:
        self.print(*(f"  {self.label(step)}  {step.text}" for step in self.steps.values()))

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """While it is carried out. What came of it is its `text` in the end."""
        step = self.steps[name]
        step.state, step.text, step.share = RUNNING, "", None
        began = time.monotonic()
        self.changed(step)
        try:
            yield step
        except BaseException:
            step.state = FAILED
            raise
        else:
            step.state, step.share = DONE, None
        finally:
            step.seconds = time.monotonic() - began
            self.changed(step)

    def label(self, step: Step) -> str:
        return step.name.ljust(self._width)

    def print(self, *lines: str) -> None:
        say(self.stream, *lines)

    def changed(self, step: Step) -> None:
        if step.state == DONE:
            self.print(f"{self.label(step)}  {step.seconds:5.2f} s  {step.text}")

    def say(self, step: Step, text: str) -> None:
        """What the step does now."""
        step.text = text
        self.print(f"  {text}")

    def progress(self, step: Step, share: float) -> None:
        """So much of the step is done."""
        step.share = share

    def close(self) -> None:
        """Leaves the last picture."""


class LiveStepsScreen(StepsScreen):
    """The table, drawn where a step begins or ends, and a few times a second in between."""

    def begin(self) -> None:
        self._live: Live = open_live(self.stream)
        self._pace = Pace(REFRESH_S, DRAWING_SHARE)
        self._draw()

    def changed(self, step: Step) -> None:  # noqa: ARG002 - all of them are drawn
        self._draw()

    def say(self, step: Step, text: str) -> None:
        step.text = text.splitlines()[0]
        self._draw()

    def progress(self, step: Step, share: float) -> None:
        step.share = share
        if self._pace.is_due(time.monotonic()):
            self._draw()

    def close(self) -> None:
        """What came of the steps stays, whole."""
        from rich.text import Text

        width = min(self._live.console.size.width, WIDEST) - 1
        lines = (self._line(step, UNLIMITED).plain for step in self.steps.values())
        self._live.update(Text("\n".join(in_columns(lines, width))), refresh=True)
        self._live.stop()

    def _draw(self) -> None:
        draw(self._live, self._picture, self._pace, time.monotonic)

    def _picture(self, width: int, height: int) -> Group:  # noqa: ARG002 - of a few lines
        from rich.console import Group

        width = min(width, WIDEST) - 1
        return Group(*(self._line(step, width) for step in self.steps.values()))

    def _line(self, step: Step, width: int) -> Text:
        """`✓ fit     1.21 s  ...` or `> train  ━━━━━╸────  45 %  ...`."""
        from rich.text import Text

        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f" {MARKS[step.state]} {self.label(step)}  ", STYLES[step.state])
        if step.state == RUNNING and step.share is not None:
            add_bar(line, step.share, min(BAR, max(8, width // 4)), "cyan")
            line.append(f"  {100 * step.share:3.0f} %")
        elif step.state in (DONE, FAILED):
            line.append(f"{step.seconds:5.2f} s")
        if step.text:
            line.append(f"  {step.text}", "dim" if step.state == WAITING else "")
        line.truncate(max(width, 1), overflow="ellipsis")
        return line


def make_steps_screen(heading: str, steps: Sequence[Step], stream: IO[str]) -> StepsScreen:
    kind = LiveStepsScreen if can_show(stream) else StepsScreen
    return kind(heading, steps, stream)
