"""The reports of a run as rows of metrics.jsonl and scalars of TensorBoard: messages of the board,
and faults of environments in Python.

A message has the algorithm's metrics by index; the experiment's description has their `names`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

from msgspec import structs

from rltools_host.boards.framing import SEVERITY_NOTICE, SEVERITY_WARNING
from rltools_host.boards.messages import Evaluation, Report, StatusText, TrainingProgress
from rltools_host.environments.environment_server import (
    FAULT,
    OUTSIDE,
    EnvironmentServer,
    Faults,
)
from rltools_host.errors import DiskError
from rltools_host.runs.contents import Row, RunDocument, Session
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.scalar_logs import TensorBoardLog, WandbLog

RECENT = 100  # episodes, as Stable-Baselines3 has them; those in the reports
SAME_METRICS = {"kl": "approx_kl"}
NEW_EPISODES = (
    "new episodes begin, as a checkpoint cannot hold those of Gymnasium's: the run goes on, but "
    "not with the bits of one that was never stopped"
)


def words(name: str) -> str:
    """Return a metric's name as words: `critic 1 loss`."""
    return name.replace("_", " ")


def row_of(report: Report, names: Sequence[str]) -> Row:
    """Return a flat row without the time, with each metric by its name."""
    if isinstance(report, Evaluation):
        return {"kind": "evaluation", **vars(report)}
    row = {"kind": "progress", **vars(report)}
    del row["metrics"]
    return row | named(report, names)


def named(report: TrainingProgress, names: Sequence[str]) -> dict[str, float]:
    """Return the report's metrics by name; a message has more slots than an algorithm has
    metrics."""
    return dict(zip(names, report.metrics, strict=False))


def progress_of(row: Row, names: Sequence[str]) -> TrainingProgress:
    """Return the report of a row; a metric that the row does not have is NaN."""
    known = without_null(row)
    fields = [name for name in TrainingProgress.__dataclass_fields__ if name in known]
    metrics = tuple(known.get(name, math.nan) for name in names)
    return TrainingProgress(**{name: known[name] for name in fields}, metrics=metrics)


def evaluation_of(row: Row) -> Evaluation:
    """Return the evaluation of a row; older rows have no length."""
    known = {"length_mean": math.nan, **without_null(row)}
    return Evaluation(**{name: known[name] for name in Evaluation.__dataclass_fields__})


def last_evaluation(rows: Sequence[Row]) -> Evaluation | None:
    for row in reversed(rows):
        if row.get("kind") == "evaluation":
            return evaluation_of(row)
    return None


def without_null(row: Row) -> Row:
    return {name: math.nan if value is None else value for name, value in row.items()}


class RecentEpisodes:
    """The training episodes that ended last: RECENT of them, and what else ended with those."""

    def __init__(self) -> None:
        self._ended: deque[tuple[int, float, float]] = deque()  # episodes, their return and length

    def take(self, report: TrainingProgress) -> None:
        if not report.episodes_ended:
            return
        self._ended.append((report.episodes_ended, report.episode_return, report.episode_length))
        while self._count - self._ended[0][0] >= RECENT:
            self._ended.popleft()

    @property
    def _count(self) -> int:
        return sum(count for count, _, _ in self._ended)

    def _mean(self, index: int) -> float:
        total = math.fsum(each[0] * each[index] for each in self._ended)
        return total / self._count if self._ended else math.nan

    @property
    def return_mean(self) -> float:
        """Return their mean return; NaN before an episode has ended."""
        return self._mean(1)

    @property
    def length_mean(self) -> float:
        """Return their mean number of steps; NaN before an episode has ended."""
        return self._mean(2)


class Scalars:
    """The scalars of TensorBoard, by the tags of Stable-Baselines3."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.recent = RecentEpisodes()

    def of(self, report: Report, time_s: float) -> dict[str, float]:
        """Return the scalars of a report. `time_s`: in training."""
        if isinstance(report, Evaluation):
            return {
                "eval/mean_reward": report.return_mean,
                "eval/std_reward": report.return_std,
                "eval/mean_ep_length": report.length_mean,
            }
        self.recent.take(report)
        return {
            "rollout/ep_rew_mean": self.recent.return_mean,
            "rollout/ep_len_mean": self.recent.length_mean,
            "time/fps": report.step / time_s if time_s > 0 else math.nan,
            "train/n_updates": report.updates,
            **{tag(name): value for name, value in named(report, self._names).items()},
        }


def tag(name: str) -> str:
    """Return the tag of a metric, such as `train/actor_loss`, by the name of Stable-Baselines3."""
    return f"train/{SAME_METRICS.get(name, name)}"


class ReportLog:
    """A log that takes reports and writes them as whole rows.

    On a full disk the rows are kept, and `disk_error` says what happened: the run pauses then.
    """

    def __init__(
        self,
        folder: RunFolder,
        metric_names: Sequence[str],
        tensorboard: bool,
        first_step: int | None,
        hyperparameters: Mapping[str, float | int | str],
        wandb: str | None = None,
        earlier: Sequence[Row] = (),
    ) -> None:
        """Open the logs; `wandb` is a project of Weights & Biases that gets the same scalars.

        `earlier` are the rows from before a resumption: means of episodes go on from there.
        """
        self.disk_error: DiskError | None = None  # the first one
        self._folder = folder
        self._metric_names = metric_names
        self._scalars = Scalars(metric_names)
        for row in earlier:
            if row["kind"] == "progress":
                self._scalars.recent.take(progress_of(row, metric_names))
        self._rows: list[Row] = []
        self._logs: list[TensorBoardLog | WandbLog] = []
        if wandb is not None:
            begun = str(folder.content.begun_us)
            self._logs.append(WandbLog(wandb, folder.path, begun, hyperparameters))
        if tensorboard:
            log = TensorBoardLog(folder.path, first_step)
            log.add_hyperparameters(hyperparameters)
            self._logs.append(log)

    @property
    def is_written(self) -> bool:
        """Return True if all rows are in metrics.jsonl."""
        return not self._rows

    def take(
        self, event: TrainingProgress | Evaluation | StatusText, step: int, time_s: float
    ) -> None:
        """Take an event; `step` is the present step of training, for events without one."""
        time = {"time_s": round(time_s, 6)}
        row: Row
        if isinstance(event, StatusText):
            about = {"kind": "event", "step": step, "severity": event.severity}
            row = {**time, **about, "text": event.text}
        else:
            row = {**time, **row_of(event, self._metric_names)}
            scalars = self._scalars.of(event, time_s) if self._logs else {}
            for log in self._logs:
                log.add(event.step, scalars)
        self._rows.append(row)

    def flush(self) -> None:
        try:
            self._folder.append_metrics(self._rows)
            self._rows = []
            for log in self._logs:
                log.flush()
        except DiskError as error:
            self.disk_error = self.disk_error or error

    def close(self) -> None:
        for log in self._logs:
            log.close()


class EpisodeNotes:
    """Events on environments in Python; none if the core steps the environments."""

    def __init__(self, server: EnvironmentServer | None) -> None:
        self._server = server
        self._noted: set[str] = set()

    @property
    def _faults(self) -> Faults:
        return Faults() if self._server is None else self._server.faults()

    def of_resumption(self, *notes: str) -> list[StatusText]:
        """Return each of `notes` that is not empty as an event, and another event if new episodes
        begin in Python."""
        texts = [*notes, NEW_EPISODES if self._server is not None else ""]
        return [StatusText(SEVERITY_NOTICE, text) for text in texts if text]

    def new(self) -> list[StatusText]:
        """Return an event for the first fault of each kind."""
        faults = self._faults
        first = {FAULT: faults.first, OUTSIDE: faults.first_outside}
        fresh = {kind: text for kind, text in first.items() if text and kind not in self._noted}
        self._noted |= fresh.keys()
        return [StatusText(SEVERITY_WARNING, kind + text) for kind, text in fresh.items()]

    @property
    def outside(self) -> str:
        """Return the first observation outside its range; empty if there was none."""
        return self._faults.first_outside

    def failure(self) -> str:
        """Return why the environment does not step any more; empty as long as it does."""
        return self._server.failure() if self._server is not None else ""

    def add_to(self, session: Session) -> Session:
        """Return the session with the counts of faults."""
        faults = self._faults
        return structs.replace(
            session, environment_faults=faults.count, observations_outside=faults.outside
        )

    def describe(self, document: RunDocument) -> None:
        """Add the task and its faults to what `rlt train --json` prints."""
        if self._server is None:
            return
        faults = self._faults
        document["task"] = self._server.task.source
        document["environment_faults"] = faults.count
        document["environment_fault"] = faults.first
        document["observations_outside"] = faults.outside
        document["observation_outside"] = faults.first_outside
