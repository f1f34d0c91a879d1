"""Evaluation of a policy by deterministic episodes, in the core's or Gymnasium's simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path

import numpy as np

from rltools_host.build import experiments
from rltools_host.environments.headers import subject_of_run
from rltools_host.environments.imports import playable
from rltools_host.environments.player import flat_maker
from rltools_host.errors import RltError, UsageError
from rltools_host.policies.baseline import Baseline, baseline_of, play_baseline
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
MAX_WORST = 3  # episodes that are reported
MAX_CHANNELS = 4  # of such an episode's first observation


@dataclass(frozen=True)
class Evaluation:
    """Outcomes of deterministic episodes, in Gymnasium one for each seed from `seed` on."""

    run: str
    image: PolicyImage
    simulator: str
    seed: int
    outcomes: tuple[EpisodeEnd, ...]
    success_return: float | None  # the mean from which on the environment counts as solved
    baseline: Baseline | None = None  # what the policy is compared with

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
        """Return the population standard deviation, as boards report it."""
        return float(np.std(self.returns))

    @property
    def success_rate(self) -> float | None:
        threshold = self.success_return
        if threshold is None:
            return None
        return sum(value >= threshold for value in self.returns) / self.episodes

    @property
    def is_solved(self) -> bool | None:
        """Return whether the mean reaches what the environment states; None where it states
        none."""
        return None if self.success_return is None else self.mean >= self.success_return

    @property
    def is_in_gymnasium(self) -> bool:
        return self.simulator.startswith(GYMNASIUM)

    def of_task(self, task: Task | None) -> Evaluation:
        """Return the evaluation with the return at which a Gymnasium task counts as solved."""
        return self if task is None else replace(self, success_return=task.solved_return)

    def worst(self) -> list[int]:
        """Return the indices of the episodes with the lowest returns, the lowest first."""
        return sorted(range(self.episodes), key=lambda index: self.returns[index])[:MAX_WORST]

    def unusual(self, index: int) -> list[str]:
        """Return the channels of an episode's first observation that differ most from the others.

        They are texts, such as "angle 3.1 rad". There are none where all episodes begin equally.
        """
        starts = np.array([outcome.start for outcome in self.outcomes], float)
        spread = starts.std(axis=0)
        values = starts[index]
        varies = spread > 1e-6 * np.maximum(1.0, np.abs(starts).max(axis=0))
        distance = np.abs(values - starts.mean(axis=0)) / np.where(varies, spread, 1.0)
        order = np.argsort(-np.where(varies, distance, -1.0), kind="stable")
        channels = self.image.observations
        return [
            f"{channels[number].name} {values[number]:.3g} {channels[number].unit}".removesuffix(
                " 1"
            )
            for number in sorted(order[:MAX_CHANNELS])
            if varies[number]
        ]

    def begun_from(self, index: int) -> tuple[str, str]:
        """Return the name of an episode, and what is unusual in its first observation."""
        which = f"seed {self.seed + index}" if self.is_in_gymnasium else f"episode {index}"
        return which, ", ".join(self.unusual(index)) or "where all begin"

    def worst_document(self, index: int) -> dict[str, object]:
        """Return what --json prints of one of worst()."""
        outcome = self.outcomes[index]
        names = (channel.name for channel in self.image.observations)
        return {
            **({"seed": self.seed + index} if self.is_in_gymnasium else {"episode": index}),
            "return": outcome.episode_return,
            "steps": outcome.steps,
            "terminated": outcome.terminated,
            "start": dict(zip(names, outcome.start.tolist(), strict=True)),
        }

    def document(self) -> dict[str, object]:
        """Return what --json prints."""
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
            "worst": [self.worst_document(index) for index in self.worst()],
            "solved": self.is_solved,
            "success_rate": self.success_rate,
            "success_return": self.success_return,
            **({} if self.baseline is None else {"against": self.baseline.document(self.returns)}),
        }

    def lines(self) -> list[str]:
        """Return the lines that are printed."""
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
            verdict = "yes" if self.is_solved else "no"
            lines.append(
                f"  solved   {verdict}   {self.environment} states a mean return of at least "
                f"{self.success_return:g}, which "
                f"{100 * self.success_rate:.0f} % of the episodes have"
            )
        if self.baseline is not None:
            lines.append(self.baseline.line(self.returns))
        return [*lines, *self.worst_lines()]

    def lengths(self) -> list[str]:
        """Return how many steps the episodes have, and how they end."""
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
        """Return a line for each of worst()."""
        lines: list[str] = []
        for index in self.worst() if self.episodes > MAX_WORST else ():
            which, start = self.begun_from(index)
            outcome = self.outcomes[index]
            end = ", terminated" if outcome.terminated else ""
            lines.append(
                f"  {'worst' if not lines else '     '}    {one_decimal(outcome.episode_return)} "
                f"in {outcome.steps:,} steps{end}: {which}, from {start}"
            )
        return lines


def one_decimal(value: float) -> str:
    """Return for example -149.1, and never -0.0."""
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
    """Play episodes, and return their outcomes.

    make: makes the environments in Gymnasium; None: by the image's name. hyperparameters: of the
    run, whose environment settings the core's simulator uses.
    """
    if simulator != CORE:
        return evaluation_of(image, run_name, seed, play(image, episodes, seed, simulator, make))
    check_episodes(episodes, seed, simulator)
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
    """Play the episodes of evaluate_policy(), and return every step."""
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
    """Return the evaluation of episodes that were played already."""
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
    """Return the mean return from which on the policy's environment counts as solved, as it states
    it (Gymnasium's reward_threshold); None where it states none, or this tree does not have the
    experiment."""
    name = image.experiment
    if name not in experiments.list_experiments() and experiments.sizes_of_name(name) is None:
        return None
    environment = experiments.describe(image.experiment).environment
    if environment["name"] != image.environment:
        return None
    value = environment["solved_return"]
    return None if value is None else float(value)


@dataclass(frozen=True)
class EvaluationRequest:
    """A request to evaluate a run's policy.

    simulator: CORE or GYMNASIUM; None: the core's, or Gymnasium where that plays the task. task:
    the run's, as the user names it; None: as the run does, where that may be imported. trace: a
    file that every step is written to. which: LAST or BEST. against: a baseline, as
    baseline_of() takes it.
    """

    episodes: int = USUAL_EPISODES
    seed: int = USUAL_SEED
    simulator: str | None = None
    task: str | None = None
    trace: Path | None = None
    which: str = LAST
    against: str | None = None


def evaluated(folder: RunFolder, request: EvaluationRequest) -> tuple[Evaluation, list[str]]:
    """Evaluate a run's policy, and return the notes that its figures need."""
    episodes, seed, simulator = request.episodes, request.seed, request.simulator
    named, trace = request.task, request.trace
    if trace is not None:
        check_trace_path(trace)
    image = read_run_policy(folder, request.which)
    image.verify()
    task = folder.content.gymnasium
    if folder.content.imported is not None and task is None:
        raise UsageError(
            f"run {folder.name} was imported for a contract, which says nothing of episodes: "
            "import it again with --environment to evaluate it, or fly a quadrotor's with --gate"
        )
    if simulator is None:
        simulator = CORE if task is None else GYMNASIUM
    elif simulator == CORE and task is not None:
        raise UsageError(
            f"--in core: {task.environment} is played by Gymnasium, and the core has no simulator "
            "of it: leave --in out"
        )
    if task is None and named is not None:
        raise UsageError(f"--task: run {folder.name} was not trained on a Gymnasium task")
    make = (
        flat_maker(playable(task, named)) if task is not None and simulator == GYMNASIUM else None
    )
    values = folder.content.hyperparameters
    against = request.against
    if against is not None:
        baseline_of(against, image, seed)  # what is no baseline is refused before any episode
    if trace is None:
        evaluation = evaluate_policy(
            image, str(folder.path), episodes, seed, simulator, make, values
        )
    else:
        played = play(image, episodes, seed, simulator, make, values)
        evaluation = evaluation_of(image, str(folder.path), seed, played)
        write_trace(trace, image, played)
    notes = notes_on(folder, image, simulator)
    if against is not None:
        is_in_gymnasium = simulator == GYMNASIUM
        baseline = play_baseline(against, image, episodes, seed, make, is_in_gymnasium, values)
        evaluation = replace(evaluation, baseline=baseline)
        if not is_in_gymnasium:
            notes.append(f"{against} had other episodes of seed {seed} than the policy")
    return evaluation.of_task(task), notes


def unfinished(folder: RunFolder, image: PolicyImage) -> list[str]:
    """Return a note on a policy from before the end of its training."""
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
    """Return notes that the figures need: an unfinished training, or other sources."""
    notes = unfinished(folder, image)
    if folder.content.imported is not None:  # no experiment of this tree trained it
        return notes
    try:
        present = experiments.describe(subject_of_run(folder.content))
    except RltError:  # only the core's simulator needs it, and has reported it
        return notes
    if present.fingerprint != image.fingerprint:
        what = learning_difference(folder.content.learning, present.learning)
        what = what or f"fingerprint {image.fingerprint:08x}, here {present.fingerprint:08x}"
        where = ", and so does the simulator" if simulator == CORE else ""
        notes.append(f"the run's {image.experiment} differs from this tree's{where}: {what}")
    return notes
