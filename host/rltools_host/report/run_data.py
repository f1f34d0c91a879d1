"""The data of a report: a run's folder, episodes of its policy, its experiment's description."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rltools_host.build import experiments
from rltools_host.build.boards import Board, load_board
from rltools_host.build.description import ExperimentDescription, Metric, Parameter, Shape, shapes
from rltools_host.environments.headers import subject_of_run
from rltools_host.environments.player import flat_maker
from rltools_host.environments.task import MakeEnvironment
from rltools_host.errors import RltError
from rltools_host.lines import aside
from rltools_host.policies import evaluation
from rltools_host.policies.episodes import Episode, gymnasium_has, name_in_gymnasium
from rltools_host.policies.evaluation import CORE, GYMNASIUM, Evaluation
from rltools_host.policies.image import PolicyImage, read_run_policy
from rltools_host.report.markup import Values
from rltools_host.runs.contents import Run
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import LAST
from rltools_host.runs.task import Task

MAX_EPISODES = 100
MIN_EPISODES = 10
EVALUATION_STEPS = 20_000  # of all episodes together; those of Ant-v4 take some 7 s


@dataclass(frozen=True)
class RunData:
    """All data that the page shows."""

    folder: RunFolder
    metrics: Sequence[Mapping[str, Any]]
    image: PolicyImage | None
    evaluation: Evaluation | None
    episode: Episode | None  # that of the evaluation with the median return
    board: Board | None  # as it is described here now
    hyperparameters: Sequence[Parameter]  # as the experiment has them here now
    metrics_described: Sequence[Metric]  # likewise
    which: str = LAST  # of the run's policies
    shapes: Sequence[Shape] = ()  # of the environment's picture, likewise

    @cached_property
    def run(self) -> Run:
        return self.folder.content

    @property
    def goal(self) -> float | None:
        return self.evaluation.success_return if self.evaluation else None

    def rows(self, kind: str) -> list[Mapping[str, Any]]:
        return [row for row in self.metrics if row.get("kind") == kind]

    @property
    def steps_done(self) -> int:
        rows = self.rows("progress")
        done = self.image.step if self.image else 0
        return max([done, *(int(row.get("step") or 0) for row in rows)])

    @property
    def seed(self) -> Any:
        if self.run.seed is not None:
            return self.run.seed
        return self.image.seed if self.image else "\N{EN DASH}"

    @property
    def board_title(self) -> str:
        return self.board.title if self.board else self.run.board

    @property
    def is_emulated(self) -> bool:
        return self.run.identity.counts_instructions


def collect(folder: RunFolder, which: str = LAST) -> RunData:
    """Read the folder and run the evaluation episodes."""
    is_there = which != LAST or folder.policy_path.exists()
    image = read_run_policy(folder, which) if is_there else None
    evaluation, episode = None, None
    if image is not None:
        image.verify()
        evaluation, episode = evaluate_here(image, folder)
    description = experiment_here(folder)
    return RunData(
        folder=folder,
        metrics=folder.read_metrics(),
        image=image,
        evaluation=evaluation,
        episode=episode,
        board=known_board(folder.content),
        hyperparameters=described_hyperparameters(folder, description),
        metrics_described=described_metrics(folder, description),
        which=which,
        shapes=shapes_of(folder, description),
    )


def shapes_of(folder: RunFolder, description: ExperimentDescription | None) -> Sequence[Shape]:
    """Return the shapes of the task, or of the experiment as it is here now."""
    if folder.content.gymnasium is not None:
        return folder.content.gymnasium.picture
    return () if description is None else shapes(description.environment["picture"])


def evaluate_here(
    image: PolicyImage, folder: RunFolder
) -> tuple[Evaluation | None, Episode | None]:
    """Evaluate in Gymnasium where it has the environment, else in the core's simulator. Return
    None where only a Python program of the user's makes the environment, or where it cannot, or
    must not, be imported here."""
    task = folder.content.gymnasium
    if folder.content.imported is not None and task is None:
        return None, None
    if task is not None:
        if not task.is_named:
            return None, None
        try:
            return evaluate_in_gymnasium(image, folder, task, flat_maker(task))
        except RltError as error:
            aside(f"note: the report is without episodes: {error}")
            return None, None
    if not gymnasium_has(image.environment):
        values = folder.content.hyperparameters
        played = evaluation.play(image, MAX_EPISODES, 0, CORE, hyperparameters=values)
        return evaluation.evaluation_of(image, str(folder.path), 0, played), typical(played)
    return evaluate_in_gymnasium(image, folder)


def evaluate_in_gymnasium(
    image: PolicyImage,
    folder: RunFolder,
    task: Task | None = None,
    make: MakeEnvironment | None = None,
) -> tuple[Evaluation, Episode]:
    count = episodes_of(image.environment, task)
    played = evaluation.play(image, count, 0, GYMNASIUM, make)
    outcome = evaluation.evaluation_of(image, str(folder.path), 0, played)
    return outcome.of_task(task), typical(played)


def episodes_of(environment: str, task: Task | None = None) -> int:
    """Return the number of episodes, which is smaller for an environment with long ones."""
    import gymnasium

    longest = (
        task.episode_steps
        if task is not None
        else gymnasium.registry[name_in_gymnasium(environment)].max_episode_steps
        or EVALUATION_STEPS
    )
    return min(MAX_EPISODES, max(MIN_EPISODES, EVALUATION_STEPS // longest))


def typical(episodes: Sequence[Episode]) -> Episode:
    """Return the episode with the median return; of an even number, with the lower of the two."""
    by_return = sorted(episodes, key=lambda episode: episode.episode_return)
    return by_return[(len(episodes) - 1) // 2]


def experiment_here(folder: RunFolder) -> ExperimentDescription | None:
    """Return the run's experiment as it is here now; None where it is not here."""
    try:
        return experiments.describe(subject_of_run(folder.content))
    except RltError:
        return None


def described_hyperparameters(
    folder: RunFolder, description: ExperimentDescription | None
) -> Sequence[Parameter]:
    """Return the experiment's hyperparameters as they are here now; none where they are not the
    run's."""
    if description is None:
        return ()
    values = folder.content.hyperparameters
    known = [entry for entry in description.hyperparameters if entry.name in values]
    return known if len(known) == len(values) else ()


def described_metrics(
    folder: RunFolder, description: ExperimentDescription | None
) -> Sequence[Metric]:
    """Return the experiment's metrics as they are here now; none where its algorithm is not the
    run's."""
    if description is None or description.algorithm != folder.content.algorithm:
        return ()
    return description.metrics


def known_board(run: Run) -> Board | None:
    try:
        return load_board(run.board)
    except RltError:
        return None


def values_of(rows: Sequence[Mapping[str, Any]], key: str) -> Values:
    """Return a column of the metrics; null and missing values become NaN."""
    return np.array([math.nan if row.get(key) is None else float(row[key]) for row in rows], float)
