"""What a run looks like while it trains, for whatever shows it."""

from __future__ import annotations

import math
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rltools_host.clients.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.link.framing import printable
from rltools_host.training.metrics_log import EpisodeLengths, evaluation_of, named, progress_of

RATE_WINDOW_S = 5.0


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
    metric_names: Sequence[str] = ()  # of the experiment's description
    step: int = 0
    updates: int = 0
    episodes: int = 0
    last_return: float = math.nan
    best_return: float = math.nan
    episode_length: float = math.nan  # mean of the last ones
    metrics: dict[str, float] = field(default_factory=dict)  # the newest that is known of each
    evaluation: Evaluation | None = None
    evaluation_points: list[Point] = field(default_factory=list)
    episode_points: list[Point] = field(default_factory=list)
    texts: deque[str] = field(default_factory=lambda: deque(maxlen=2))
    activity: str = ""
    activity_share: float | None = None
    ended: float | None = None

    def __post_init__(self) -> None:
        self.step = self.first_step
        self.metrics = dict.fromkeys(self.metric_names, math.nan)
        self._lengths = EpisodeLengths()
        self.began: float | None = None
        self._history: deque[tuple[float, int]] = deque([(self.clock(), self.first_step)])

    def begin(self) -> None:
        """Training starts now, or goes on after a rest; the time before does not count."""
        now = self.clock()
        self.began = now - self.elapsed_s
        self.ended = None
        self._history = deque([(now, self.step)])

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
        self.episode_length = self._lengths.take(event)
        self.last_return, self.best_return = event.last_return, event.best_return
        metrics = named(event, self.metric_names)
        self.metrics |= {name: value for name, value in metrics.items() if math.isfinite(value)}

    def take_row(self, row: Mapping[str, Any]) -> None:
        """Takes in a row of metrics.jsonl, of the part of the run before this session."""
        if row.get("kind") == "evaluation":
            self._take_evaluation(evaluation_of(row))
        elif row.get("kind") == "progress":
            self._take_progress(progress_of(row, self.metric_names))

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
        return max(0, self.steps - self.step) / rate if rate > 0 else math.nan

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


class PausingScreen(Screen):
    """Asks for a pause at a step, by a signal, as a user does."""

    def __init__(self, shown: Screen, step: int) -> None:
        super().__init__(shown.view)
        self._shown, self._step = shown, step
        self.has_asked = False

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        self._shown.take(event)
        if self.view.step >= self._step and not self.has_asked:
            self.has_asked = True
            signal.raise_signal(signal.SIGTERM)

    def refresh(self) -> None:
        self._shown.refresh()

    def activity(self, text: str, share: float | None = None) -> None:
        self._shown.activity(text.partition(";")[0], share)

    def close(self) -> None:
        self._shown.close()
