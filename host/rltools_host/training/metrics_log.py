"""What a run reports, as rows of metrics.jsonl and as TensorBoard's scalars: the board's messages,
and faults of environments that play its episodes in Python.

A message has the algorithm's metrics by place. `names`, of the experiment's description, are what
they are called wherever a person or another program reads them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from rltools_host.boards.framing import SEVERITY_NOTICE, SEVERITY_WARNING
from rltools_host.boards.messages import Evaluation, Report, StatusText, TrainingProgress
from rltools_host.environments.environment_server import FAULT, OUTSIDE, EnvironmentServer
from rltools_host.errors import DiskError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.scalar_logs import TensorBoardLog, WandbLog

RECENT = 100  # episodes, as Stable-Baselines3 has them; of those that reports tell
SAME_METRICS = {"kl": "approx_kl"}
NEW_EPISODES = (
    "new episodes begin, as a checkpoint cannot hold those of Gymnasium's: the run goes on, but "
    "not with the bits of one that was never stopped"
)


def words(name: str) -> str:
    """A metric's name in a sentence: `critic 1 loss`."""
    return name.replace("_", " ")


def row_of(report: Report, names: Sequence[str]) -> dict[str, Any]:
    """A row, without the time: flat, each metric by its name."""
    if isinstance(report, Evaluation):
        return {"kind": "evaluation", **vars(report)}
    row = {"kind": "progress", **vars(report)}
    del row["metrics"]
    return row | named(report, names)


def named(report: TrainingProgress, names: Sequence[str]) -> dict[str, float]:
    """The report's metrics; a message has more places than an algorithm has metrics."""
    return dict(zip(names, report.metrics, strict=False))


def progress_of(row: Mapping[str, Any], names: Sequence[str]) -> TrainingProgress:
    """The report that a row was made of. A metric that the row does not have is not known."""
    known = without_null(row)
    fields = [name for name in TrainingProgress.__dataclass_fields__ if name != "metrics"]
    metrics = tuple(known.get(name, math.nan) for name in names)
    return TrainingProgress(**{name: known[name] for name in fields}, metrics=metrics)


def evaluation_of(row: Mapping[str, Any]) -> Evaluation:
    """Older rows state no length."""
    known = {"length_mean": math.nan, **without_null(row)}
    return Evaluation(**{name: known[name] for name in Evaluation.__dataclass_fields__})


def last_evaluation(rows: Sequence[Mapping[str, Any]]) -> Evaluation | None:
    for row in reversed(rows):
        if row.get("kind") == "evaluation":
            return evaluation_of(row)
    return None


def without_null(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.nan if value is None else value for name, value in row.items()}


class EpisodeLengths:
    """The mean length of the episodes that ended within the last reports: steps between two reports
    over episodes that ended between them, of all environments."""

    def __init__(self, first_step: int = 0) -> None:
        self._ends: deque[tuple[int, int]] = deque(maxlen=RECENT + 1)  # steps, episodes
        if first_step == 0:
            self._ends.append((0, 0))

    def take(self, report: TrainingProgress) -> float:
        """Of the reports up to this one; not a number before an episode has ended."""
        if not self._ends or report.episodes > self._ends[-1][1]:
            self._ends.append((report.step, report.episodes))
        (first, before), (last, ended) = self._ends[0], self._ends[-1]
        return (last - first) / (ended - before) if ended > before else math.nan


class Scalars:
    """What TensorBoard plots, by the tags of Stable-Baselines3."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._episodes = 0
        self._returns: deque[float] = deque(maxlen=RECENT)

    def of(self, report: Report, length: float, time_s: float) -> dict[str, float]:
        """length: of episodes; time_s: in training."""
        if isinstance(report, Evaluation):
            return {
                "eval/mean_reward": report.return_mean,
                "eval/std_reward": report.return_std,
                "eval/mean_ep_length": report.length_mean,
            }
        if report.episodes > self._episodes and math.isfinite(report.last_return):
            self._returns.append(report.last_return)
        self._episodes = report.episodes
        mean = sum(self._returns) / len(self._returns) if self._returns else math.nan
        return {
            "rollout/ep_rew_mean": mean,
            "rollout/ep_len_mean": length,
            "time/fps": report.step / time_s if time_s > 0 else math.nan,
            "train/n_updates": report.updates,
            **{tag(name): value for name, value in named(report, self._names).items()},
        }


def tag(name: str) -> str:
    """Of a metric: `train/actor_loss`; by the name that Stable-Baselines3 has for it."""
    return f"train/{SAME_METRICS.get(name, name)}"


class ReportLog:
    """Takes reports in, and writes them by whole rows.

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
    ) -> None:
        """`wandb` is a project of Weights & Biases that gets the same scalars."""
        self.disk_error: DiskError | None = None  # the first one
        self._folder = folder
        self._metric_names = metric_names
        self._lengths = EpisodeLengths(first_step or 0)
        self._scalars = Scalars(metric_names)
        self._rows: list[dict[str, Any]] = []
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
        """Whether all rows are in metrics.jsonl."""
        return not self._rows

    def take(
        self, event: TrainingProgress | Evaluation | StatusText, step: int, time_s: float
    ) -> None:
        """`step` is how far training has come; a report of it says that itself."""
        row: dict[str, Any] = {"time_s": round(time_s, 6)}
        if isinstance(event, StatusText):
            row |= {"kind": "event", "step": step, "severity": event.severity, "text": event.text}
        else:
            row |= row_of(event, self._metric_names)
            length = math.nan
            if isinstance(event, TrainingProgress):
                row["episode_length"] = length = self._lengths.take(event)
            scalars = self._scalars.of(event, length, time_s) if self._logs else {}
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
    """What a run says of environments in Python; nothing where the core plays the episodes."""

    def __init__(self, server: EnvironmentServer | None) -> None:
        self._server = server
        self._said: set[str] = set()

    def of_resumption(self, note: str = "") -> list[StatusText]:
        """A note, and what a checkpoint lacks of a run whose episodes are played in Python."""
        texts = [note, NEW_EPISODES if self._server is not None else ""]
        return [StatusText(SEVERITY_NOTICE, text) for text in texts if text]

    def new(self) -> list[StatusText]:
        """The first fault of each kind is an event of the run, like what a board says."""
        if self._server is None:
            return []
        faults = self._server.faults()
        said = {FAULT: faults.first, OUTSIDE: faults.first_outside}
        fresh = {kind: text for kind, text in said.items() if text and kind not in self._said}
        self._said |= fresh.keys()
        return [StatusText(SEVERITY_WARNING, kind + text) for kind, text in fresh.items()]

    @property
    def outside(self) -> str:
        """The first observation beyond its range, and when; empty where all were within."""
        return self._server.faults().first_outside if self._server is not None else ""

    def failure(self) -> str:
        """Why nobody plays any more; empty as long as somebody does."""
        return self._server.failure() if self._server is not None else ""

    def of_session(self) -> dict[str, int]:
        """For run.json."""
        if self._server is None:
            return {}
        faults = self._server.faults()
        counts = {"environment_faults": faults.count}
        return counts | ({"observations_outside": faults.outside} if faults.outside else {})

    def document(self) -> dict[str, str | int]:
        """For `rlt train --json`."""
        if self._server is None:
            return {}
        faults = self._server.faults()
        return {
            "task": self._server.task.source,
            "environment_faults": faults.count,
            "environment_fault": faults.first,
            "observations_outside": faults.outside,
            "observation_outside": faults.first_outside,
        }
