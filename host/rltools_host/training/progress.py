"""The progress of a run, from the reports of its board, and of a group, from the folders and
processes of its runs, for screens to show."""

from __future__ import annotations

import math
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from rltools_host.boards.messages import Evaluation, StatusText, TrainingProgress
from rltools_host.documents import printable
from rltools_host.errors import DamagedFileError, RltError
from rltools_host.runs.contents import Figures, Row
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import RunName
from rltools_host.runs.names import RUN_FILE, is_run
from rltools_host.runs.saves import CHECKPOINT_FILE, holds_save, is_whole, saves_to_resume
from rltools_host.training.metrics_log import RecentEpisodes, evaluation_of, named, progress_of

RATE_WINDOW_S = 5.0
Point = tuple[float, float]
WAITING = "waiting"
STARTING = "starting"
COMPILING = "compiling"  # its program, which no other run has
TRAINING = "training"
FINISHED = "finished"
PAUSED = "paused"
PRUNED = "pruned"  # of a tuning: paused for good
FAILED = "failed"
RUNNING = (STARTING, COMPILING, TRAINING)
STATES = (FINISHED, TRAINING, COMPILING, STARTING, PAUSED, WAITING, PRUNED, FAILED)
# NaN: not known.
FIGURES = ("steps_per_s", "left_s", "return_mean", "return_std", "length_mean", "train_s")
OF_TASKS = ("environment_faults", "observations_outside")  # of Gymnasium tasks alone


@dataclass
class TrainingView:
    """All that a screen shows of a run."""

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
        self._recent = RecentEpisodes()
        self.began: float | None = None
        self._history: deque[tuple[float, int]] = deque([(self.clock(), self.first_step)])

    def begin(self) -> None:
        """Start the clock of training, or continue it after a rest, which does not count."""
        now = self.clock()
        self.began = now - self.elapsed_s
        if self.ended is None:
            self._history = deque([(now, self.step)])
        else:
            rest_s = now - self.ended
            self._history = deque((at + rest_s, step) for at, step in self._history)
        self.ended = None

    def end(self) -> None:
        """Stop the clock of training."""
        self.ended = self.clock()

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        """Take an event that the board reports."""
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
        self._recent.take(event)
        self.episode_length = self._recent.length_mean
        self.last_return = event.last_return
        metrics = named(event, self.metric_names)
        self.metrics |= {name: value for name, value in metrics.items() if math.isfinite(value)}

    def take_row(self, row: Row) -> None:
        """Take a row of metrics.jsonl from before this session."""
        if row.get("kind") == "evaluation":
            self._take_evaluation(evaluation_of(row))
        elif row.get("kind") == "progress":
            self._take_progress(progress_of(row, self.metric_names))

    def reach(self, step: int) -> None:
        """Set the number of steps that are done."""
        now = self.clock()
        self.step = step
        self._history.append((now, step))
        while len(self._history) > 2 and now - self._history[1][0] > RATE_WINDOW_S:
            self._history.popleft()

    @property
    def best_return(self) -> float:
        """Return the best mean return of the evaluations."""
        means = (mean for _, mean in self.evaluation_points)
        return max(filter(math.isfinite, means), default=math.nan)

    @property
    def elapsed_s(self) -> float:
        if self.began is None:
            return 0.0
        return (self.clock() if self.ended is None else self.ended) - self.began

    @property
    def steps_per_s(self) -> float:
        """Return the rate of the last seconds."""
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
    """A screen of a run; this base class shows nothing."""

    def __init__(self, view: TrainingView) -> None:
        self.view = view

    def take(self, event: TrainingProgress | Evaluation | StatusText) -> None:
        self.view.take(event)

    def refresh(self) -> None:
        """Draw if it is time to; called often."""

    def activity(self, text: str, share: float | None = None) -> None:
        """Show what happens besides training; an empty text ends it."""
        self.view.activity, self.view.activity_share = text, share

    def close(self) -> None:
        """Leave the last picture."""


class PausingScreen(Screen):
    """A screen that pauses the run at a step, by a signal, as a user does."""

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


class RunReport(TypedDict, total=False):
    """The progress of a run in a group, as its process reports it; None is not known."""

    step: int
    steps: int
    steps_per_s: float | None
    left_s: float | None
    activity: str
    evaluations: Sequence[Point]
    return_mean: float | None
    return_std: float | None
    length_mean: float | None


@dataclass(frozen=True)
class RunEnd:
    """The end of a run in a group, the last report of its process."""

    state: str
    exit_code: int = 0
    error: str = ""


@dataclass
class Member:
    """One run of a group."""

    name: RunName
    label: str  # of its variant; empty where there is but one
    path: Path
    steps: int
    state: str = WAITING
    step: int = 0
    steps_per_s: float = math.nan
    left_s: float = math.nan
    return_mean: float = math.nan
    return_std: float = math.nan
    length_mean: float = math.nan  # steps of an episode of the last evaluation
    train_s: float = math.nan
    state_sha256: str = ""
    activity: str = ""
    error: str = ""
    exit_code: int = 0
    environment_faults: int | None = None
    observations_outside: int | None = None
    was_killed: bool = False  # its process, which gave no result
    compiling_s: float = 0.0
    _compiles_since: float = 0.0
    evaluations: dict[int, float] = field(default_factory=dict)  # mean return by step

    @property
    def seed(self) -> int:
        return self.name.seed

    @property
    def title(self) -> str:
        """Return `seed 3`, with the label of its variant if there are several."""
        return f"{self.label}, seed {self.seed}" if self.label else f"seed {self.seed}"

    @property
    def is_running(self) -> bool:
        return self.state in RUNNING

    @property
    def share(self) -> float:
        return min(1.0, self.step / self.steps) if self.steps else 1.0

    def fail(self, error: RltError) -> None:
        self.take_end(RunEnd(FAILED, error.exit_code, str(error)))

    def _end_compiling(self) -> None:
        if self.state == COMPILING:
            self.state = STARTING
            self.compiling_s += time.monotonic() - self._compiles_since

    def take_end(self, end: RunEnd) -> None:
        self._end_compiling()
        self.state = end.state
        if end.state == FAILED:
            self.error, self.exit_code = end.error, end.exit_code

    def take(self, values: Mapping[str, Any]) -> None:
        """Take the values of a report or of run.json; None is an unknown one."""
        if values.get("activity") == COMPILING and self.state in RUNNING:
            self.state, self._compiles_since = COMPILING, time.monotonic()
            return
        self._end_compiling()
        if self.state == STARTING and values["steps_per_s"] is not None:
            self.state = TRAINING
        self.step, self.steps = int(values["step"]), int(values["steps"])
        self.activity = values.get("activity", "")
        self.evaluations |= {
            int(step): float(mean)
            for step, mean in values.get("evaluations", ())
            if mean is not None
        }
        for name in FIGURES:
            if name in values:
                value = values[name]
                setattr(self, name, math.nan if value is None else float(value))

    def look(self, steps: int | None) -> None:
        """Set the state from the run's folder. A run without a checkpoint starts over, and has the
        same bits.

        `steps` is the total that was asked for, if any: a finished run may have to continue.
        """
        self.state = WAITING
        if not is_run(self.path):
            if holds_save(self.path):
                missing = f"{self.path} holds a save and no {RUN_FILE}"
                self.fail(DamagedFileError(f"{missing}: restore that, or move the save away"))
            return
        try:
            folder = RunFolder.open(self.path)
        except DamagedFileError as error:
            self.fail(error)
            return
        run = folder.content
        saves = saves_to_resume(folder.path, run)
        if not any((save / CHECKPOINT_FILE).is_file() for save in saves):
            return
        whole = is_whole(folder.save_path, run.state_sha256)
        of_run = {name: getattr(run, name) for name in FIGURES if hasattr(run, name)}
        self.take({"step": run.step, "steps": run.steps or self.steps, **of_run})
        finished = run.state == "finished" and whole and self.step >= (steps or 0)
        self.state = FINISHED if finished else PAUSED
        self.steps = max(self.steps, steps or 0)
        self.state_sha256 = run.state_sha256 or ""
        self.environment_faults = run.environment_faults
        self.observations_outside = run.observations_outside

    def figures(self) -> Figures:
        """Return the entry of group.json."""
        same = ["state", "step", "steps", "train_s", "steps_per_s", "return_mean", "return_std"]
        if math.isfinite(self.length_mean):
            same.append("length_mean")
        of_task = {name: getattr(self, name) for name in OF_TASKS}
        return {
            "folder": str(self.name.folder),
            "variant": self.name.variant,
            "seed": self.seed,
            **{name: getattr(self, name) for name in same},
            "state_sha256": self.state_sha256 or None,
            "error": self.error or None,
            **{name: count for name, count in of_task.items() if count is not None},
        }


def counted(states: Sequence[str]) -> str:
    """Return `paused: 3 of 10 runs have finished, 2 saved on the way, 5 not begun`."""
    parts = [f"paused: {states.count(FINISHED)} of {len(states)} runs have finished"]
    words = {PAUSED: "saved on the way", WAITING: "not begun", FAILED: "failed"}
    counts = {state: states.count(state) for state in words}
    return ", ".join([*parts, *(f"{counts[s]} {word}" for s, word in words.items() if counts[s])])


@dataclass
class GroupView:
    """All that a screen shows of a group."""

    title: str
    board: str
    path: Path
    members: Sequence[Member]
    jobs: int
    activity: str = ""
    clock: Callable[[], float] = time.monotonic
    total: int = 0  # of the runs, where they are not all known yet

    def __post_init__(self) -> None:
        self.began = self.clock()

    @property
    def count(self) -> int:
        return self.total or len(self.members)

    @property
    def elapsed_s(self) -> float:
        return self.clock() - self.began

    @property
    def left_s(self) -> float:
        """Return the time left, as if waiting runs were as fast as those in training."""
        rate = sum(member.steps_per_s for member in self.members if member.state == TRAINING)
        missing = sum(
            member.steps - member.step
            for member in self.members
            if member.state not in (FINISHED, FAILED, PRUNED)
        )
        each = max((member.steps for member in self.members), default=0)
        missing += each * (self.count - len(self.members))
        return max(0, missing) / rate if rate > 0 else math.nan


def states_of(members: Sequence[Member]) -> str:
    """Return `3 finished, 2 training, 5 waiting`."""
    counts = Counter(member.state for member in members)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


class GroupScreen:
    """A screen of a group; this base class shows nothing."""

    def __init__(self, view: GroupView) -> None:
        self.view = view

    def changed(self, member: Member) -> None:
        """Show that a run of the group has changed its state."""

    def refresh(self) -> None:
        """Draw if it is time to; called often."""

    def activity(self, text: str) -> None:
        """Show what happens besides training; an empty text ends it."""
        self.view.activity = text

    def close(self) -> None:
        """Leave the last picture."""
