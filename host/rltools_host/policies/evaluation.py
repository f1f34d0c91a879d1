"""What deterministic episodes of a policy come to, in the core's or gymnasium's simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from rltools_host.build import experiments
from rltools_host.environments.headers import subject_of_run
from rltools_host.environments.imports import playable
from rltools_host.environments.player import flat_maker
from rltools_host.errors import RltError, UsageError
from rltools_host.policies.episodes import (
    Episode,
    EpisodeEnd,
    MakeEnvironment,
    check_trace_path,
    core_episodes,
    core_outcomes,
    gymnasium_episodes,
    write_trace,
)
from rltools_host.policies.image import PolicyImage, read_run_policy
from rltools_host.runs.checkpoint import learning_difference
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import LAST
from rltools_host.runs.task import Task

CORE = "core"
GYMNASIUM = "gymnasium"
SIMULATORS = (CORE, GYMNASIUM)
USUAL_EPISODES, USUAL_SEED = 100, 0
MOST_WORST = 3  # episodes that are told
MOST_CHANNELS = 4  # of what such an episode began from


@dataclass(frozen=True)
class Evaluation:
    """Outcomes of deterministic episodes, one per seed from `seed` on in gymnasium."""

    run: str
    image: PolicyImage
    simulator: str
    seed: int
    outcomes: tuple[EpisodeEnd, ...]
    success_return: float | None  # from which on an episode counts as solved, where that is known

    @cached_property
    def returns(self) -> tuple[float, ...]:
        return tuple(outcome.episode_return for outcome in self.outcomes)

    @property
    def experiment(self) -> str:
        return self.image.experiment

    @property
    def environment(self) -> str:
        return self.image.environment

    @property
    def episodes(self) -> int:
        return len(self.outcomes)

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Population standard deviation, as boards report it."""
        return float(np.std(self.returns))

    @property
    def success_rate(self) -> float | None:
        threshold = self.success_return
        if threshold is None:
            return None
        return sum(value >= threshold for value in self.returns) / self.episodes

    @property
    def is_in_gymnasium(self) -> bool:
        return self.simulator.startswith(GYMNASIUM)

    def of_task(self, task: Task | None) -> Evaluation:
        """The same, with what a task of Gymnasium's calls solved; None: it is of no such task."""
        return self if task is None else replace(self, success_return=task.solved_return)

    def worst(self) -> list[dict[str, Any]]:
        """The episodes with the least returns, the worst first, and what they began from."""
        order = sorted(range(self.episodes), key=lambda index: self.returns[index])
        return [
            {
                **({"seed": self.seed + index} if self.is_in_gymnasium else {"episode": index}),
                "return": self.outcomes[index].episode_return,
                "steps": self.outcomes[index].steps,
                "terminated": self.outcomes[index].terminated,
                "start": dict(
                    zip(
                        (channel.name for channel in self.image.observations),
                        self.outcomes[index].start.tolist(),
                        strict=True,
                    )
                ),
            }
            for index in order[:MOST_WORST]
        ]

    def unusual(self, start: Mapping[str, float]) -> list[str]:
        """Of a first observation what differs most from the other episodes' ones, as text; nothing
        where all episodes begin alike."""
        starts = np.array([outcome.start for outcome in self.outcomes], float)
        spread = starts.std(axis=0)
        values = np.array(list(start.values()), float)
        varies = spread > 1e-6 * np.maximum(1.0, np.abs(starts).max(axis=0))
        distance = np.abs(values - starts.mean(axis=0)) / np.where(varies, spread, 1.0)
        order = np.argsort(-np.where(varies, distance, -1.0), kind="stable")
        channels = self.image.observations
        return [
            f"{channels[index].name} {values[index]:.3g} {channels[index].unit}".removesuffix(" 1")
            for index in sorted(order[:MOST_CHANNELS])
            if varies[index]
        ]

    def begun_from(self, worst: Mapping[str, Any]) -> tuple[str, str]:
        """Which one of worst() it is, and what is unusual in its beginning."""
        which = f"seed {worst['seed']}" if "seed" in worst else f"episode {worst['episode']}"
        return which, ", ".join(self.unusual(worst["start"])) or "where all begin"

    def document(self) -> dict[str, Any]:
        """What --json prints."""
        lengths = [outcome.steps for outcome in self.outcomes]
        return {
            "run": self.run,
            "experiment": self.experiment,
            "environment": self.environment,
            "simulator": self.simulator,
            "seed": self.seed,
            "episodes": self.episodes,
            "return_mean": self.mean,
            "return_std": self.std,
            "returns": list(self.returns),
            "length_mean": float(np.mean(lengths)),
            "lengths": lengths,
            "terminated": [outcome.terminated for outcome in self.outcomes],
            "worst": self.worst(),
            "success_rate": self.success_rate,
            "success_return": self.success_return,
        }

    def lines(self) -> list[str]:
        """What a person reads."""
        where = self.simulator
        starts = f"seed {self.seed}"
        if self.is_in_gymnasium:
            starts = f"seeds {self.seed} to {self.seed + self.episodes - 1}"
        lines = [
            f"{self.episodes} deterministic episodes of {self.experiment} in {self.environment} "
            f"({where}, {starts})",
            f"  return   {one_decimal(self.mean)} ± {self.std:.1f}   "
            f"worst {one_decimal(min(self.returns))}   "
            f"median {one_decimal(float(np.median(self.returns)))}   "
            f"best {one_decimal(max(self.returns))}",
            f"  length   {'   '.join(self.lengths())}",
        ]
        if self.success_rate is not None:
            lines.append(
                f"  success  {100 * self.success_rate:.0f} %   episodes with a return of at least "
                f"{self.success_return:.0f}, which counts as solved"
            )
        return [*lines, *self.worst_lines()]

    def lengths(self) -> list[str]:
        """How many steps the episodes have, and how they end."""
        steps = [outcome.steps for outcome in self.outcomes]
        terminated = sum(outcome.terminated for outcome in self.outcomes)
        if min(steps) == max(steps):
            parts = [f"{steps[0]:,} steps"]
        else:
            parts = [
                f"{np.mean(steps):,.0f} steps",
                f"shortest {min(steps):,}",
                f"longest {max(steps):,}",
            ]
        return [*parts, f"{terminated} of {self.episodes} terminated"]

    def worst_lines(self) -> list[str]:
        """A line each; what differs from the others' beginnings is told."""
        lines: list[str] = []
        for worst in self.worst() if self.episodes > MOST_WORST else ():
            which, start = self.begun_from(worst)
            end = ", terminated" if worst["terminated"] else ""
            lines.append(
                f"  {'worst' if not lines else '     '}    {one_decimal(worst['return'])} "
                f"in {worst['steps']:,} steps{end}: {which}, from {start}"
            )
        return lines


def one_decimal(value: float) -> str:
    """For example -149.1; never -0.0."""
    return f"{round(value, 1) + 0.0:.1f}"


def evaluate_policy(
    image: PolicyImage,
    run_name: str,
    episodes: int,
    seed: int,
    simulator: str,
    make: MakeEnvironment | None = None,
    hyperparameters: Mapping[str, float] | None = None,
) -> Evaluation:
    """`make` makes the environments in gymnasium, where they are not those of the image's name.

    hyperparameters: of the run, for the core's simulator; settings of its environment are used.
    """
    check_episodes(episodes, seed, simulator)
    if simulator == GYMNASIUM:
        played = gymnasium_episodes(image, episodes, seed, make)
        return evaluation_of(image, run_name, seed, played)
    outcomes = core_outcomes(image, episodes, seed, hyperparameters or {})
    return evaluation_of_outcomes(image, run_name, CORE, seed, outcomes)


def play(
    image: PolicyImage,
    episodes: int,
    seed: int,
    simulator: str,
    make: MakeEnvironment | None = None,
    hyperparameters: Mapping[str, float] | None = None,
) -> list[Episode]:
    """The episodes of evaluate_policy(), step by step."""
    check_episodes(episodes, seed, simulator)
    if simulator == GYMNASIUM:
        return gymnasium_episodes(image, episodes, seed, make)
    return core_episodes(image, episodes, seed, hyperparameters or {})


def check_episodes(episodes: int, seed: int, simulator: str) -> None:
    if episodes < 1:
        raise UsageError(f"--episodes {episodes}: at least one episode is needed")
    if not 0 <= seed < 2**32:
        raise UsageError(f"--seed {seed}: a seed lies between 0 and 4294967295")
    if simulator not in SIMULATORS:
        raise UsageError(f'unknown simulator "{simulator}": known are {" and ".join(SIMULATORS)}')


def evaluation_of(
    image: PolicyImage, run_name: str, seed: int, episodes: Sequence[Episode]
) -> Evaluation:
    """The outcome of episodes that were played already."""
    simulator = GYMNASIUM if episodes[0].number is None else CORE
    outcomes = [episode.end for episode in episodes]
    return evaluation_of_outcomes(image, run_name, simulator, seed, outcomes)


def evaluation_of_outcomes(
    image: PolicyImage, run_name: str, simulator: str, seed: int, outcomes: Sequence[EpisodeEnd]
) -> Evaluation:
    return Evaluation(
        run=run_name,
        image=image,
        simulator=(
            f"gymnasium {metadata.version('gymnasium')}"
            if simulator == GYMNASIUM
            else "the core's simulator"
        ),
        seed=seed,
        outcomes=tuple(outcomes),
        success_return=solved_return(image),
    )


def solved_return(image: PolicyImage) -> float | None:
    """What the policy's environment calls solved; None where its experiment is not in this tree."""
    if image.experiment not in experiments.list_experiments():
        return None
    environment = experiments.describe(image.experiment).environment
    if environment["name"] != image.environment:
        return None
    value = environment["solved_return"]
    return None if value is None else float(value)


@dataclass(frozen=True)
class EvaluationRequest:
    """simulator: CORE or GYMNASIUM; None: the core's, or Gymnasium where that plays the task.
    task: the run's, as the user names it; None: as the run does, where that may be imported.
    trace: a file that every step is written to. which: LAST or BEST."""

    episodes: int = USUAL_EPISODES
    seed: int = USUAL_SEED
    simulator: str | None = None
    task: str | None = None
    trace: Path | None = None
    which: str = LAST


def evaluated(folder: RunFolder, request: EvaluationRequest) -> tuple[Evaluation, list[str]]:
    """The evaluation of a run's policy, and what must be known to read it."""
    episodes, seed, simulator = request.episodes, request.seed, request.simulator
    named, trace = request.task, request.trace
    if trace is not None:
        check_trace_path(trace)
    image = read_run_policy(folder, request.which)
    image.verify()
    task = folder.content.gymnasium
    if folder.content.imported is not None and task is None:
        raise UsageError(without_environment(folder))
    if simulator is None:
        simulator = CORE if task is None else GYMNASIUM
    elif simulator == CORE and task is not None:
        raise UsageError(
            f"--in core: {task.environment} is played by Gymnasium, and the core has no simulator "
            "of it: leave --in out"
        )
    if task is None and named is not None:
        raise UsageError(f"--task: run {folder.name} was not trained on a task of Gymnasium's")
    make = (
        flat_maker(playable(task, named)) if task is not None and simulator == GYMNASIUM else None
    )
    values = folder.content.hyperparameters
    if trace is None:
        evaluation = evaluate_policy(
            image, str(folder.path), episodes, seed, simulator, make, values
        )
    else:
        played = play(image, episodes, seed, simulator, make, values)
        evaluation = evaluation_of(image, str(folder.path), seed, played)
        write_trace(trace, image, played)
    return evaluation.of_task(task), notes_on(folder, image, simulator)


def without_environment(folder: RunFolder) -> str:
    """Why an imported policy has no episodes."""
    return (
        f"run {folder.name} was imported for a contract, which says nothing of episodes: import it "
        "again with --environment to evaluate it, or fly a quadrotor's with --gate"
    )


def unfinished(folder: RunFolder, image: PolicyImage) -> list[str]:
    """A note on a policy from before the end of its training."""
    run = folder.content
    steps = run.steps
    if run.best is not None and (image.step, image.state_sha256) != (
        run.checkpoint_step,
        run.state_sha256,
    ):
        return [f"the policy is of step {image.step:,} of {steps:,}, evaluated best in training"]
    if image.step >= steps:
        return []
    return [f"the policy is of step {image.step:,} of {steps:,}, at which the run was last saved"]


def notes_on(folder: RunFolder, image: PolicyImage, simulator: str) -> list[str]:
    """What must be known of the policy to read the figures: unfinished, or of other sources."""
    notes = unfinished(folder, image)
    try:
        present = experiments.describe(subject_of_run(folder.content))
    except RltError:  # which matters to the core's simulator only, and that has said so
        return notes
    if present.fingerprint != image.fingerprint:
        what = learning_difference(folder.content.learning, present.learning)
        what = what or f"fingerprint {image.fingerprint:08x}, here {present.fingerprint:08x}"
        where = ", and so does the simulator" if simulator == CORE else ""
        notes.append(f"the run's {image.experiment} differs from this tree's{where}: {what}")
    return notes
