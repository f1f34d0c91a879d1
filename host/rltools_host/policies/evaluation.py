"""Deterministic episodes of a policy, in the core's or gymnasium's simulator.

The policy runs through the code that boards run (policies/image.py): its actions are the board's.
"""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build import cmake, experiments
from rltools_host.errors import (
    BoardMismatchError,
    BuildError,
    RltError,
    UnknownNameError,
    UsageError,
    VerificationError,
)
from rltools_host.gymnasium_tasks.headers import subject_of_run
from rltools_host.gymnasium_tasks.imports import playable, silence_mujoco
from rltools_host.gymnasium_tasks.player import flat_maker
from rltools_host.policies.history import History
from rltools_host.policies.image import Float32Array, PolicyImage, read_run_policy
from rltools_host.project import PROJECT
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.learning import difference
from rltools_host.runs.task import Task

MakeEnvironment = Callable[[], Any]
CORE = "core"


GYMNASIUM = "gymnasium"


SIMULATORS = (CORE, GYMNASIUM)


@dataclass(frozen=True)
class Evaluation:
    """Returns of deterministic episodes, one per seed from `seed` on in gymnasium."""

    run: str
    experiment: str
    environment: str
    simulator: str
    seed: int
    returns: tuple[float, ...]
    success_return: float | None  # from which on an episode counts as solved, where that is known

    @property
    def episodes(self) -> int:
        return len(self.returns)

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

    def of_task(self, task: Task | None) -> Evaluation:
        """The same, with what a task of Gymnasium's calls solved; None: it is of no such task."""
        return self if task is None else replace(self, success_return=task.solved_return)

    def document(self) -> dict[str, Any]:
        """What --json prints."""
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
            "success_rate": self.success_rate,
            "success_return": self.success_return,
        }

    def lines(self) -> list[str]:
        """What a person reads."""
        where = self.simulator
        starts = f"seed {self.seed}"
        if where.startswith(GYMNASIUM):
            starts = f"seeds {self.seed} to {self.seed + self.episodes - 1}"
        lines = [
            f"{self.episodes} deterministic episodes of {self.experiment} in {self.environment} "
            f"({where}, {starts})",
            f"  return   {one_decimal(self.mean)} ± {self.std:.1f}   "
            f"worst {one_decimal(min(self.returns))}   "
            f"median {one_decimal(float(np.median(self.returns)))}   "
            f"best {one_decimal(max(self.returns))}",
        ]
        if self.success_rate is not None:
            lines.append(
                f"  success  {100 * self.success_rate:.0f} %   episodes with a return of at least "
                f"{self.success_return:.0f}, which counts as solved"
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
    if episodes < 1:
        raise UsageError(f"--episodes {episodes}: at least one episode is needed")
    if not 0 <= seed < 2**32:
        raise UsageError(f"--seed {seed}: a seed lies between 0 and 4294967295")
    if simulator not in SIMULATORS:
        raise UsageError(f'unknown simulator "{simulator}": known are {" and ".join(SIMULATORS)}')
    if simulator == GYMNASIUM:
        return gymnasium_evaluation(
            image, run_name, seed, gymnasium_episodes(image, episodes, seed, make)
        )
    return Evaluation(
        run=run_name,
        experiment=image.experiment,
        environment=image.environment,
        simulator="the core's simulator",
        seed=seed,
        returns=tuple(core_returns(image, episodes, seed, hyperparameters or {})),
        success_return=solved_return(image),
    )


def gymnasium_evaluation(
    image: PolicyImage, run_name: str, seed: int, episodes: Sequence[Episode]
) -> Evaluation:
    """The outcome of episodes that were run already."""
    return Evaluation(
        run=run_name,
        experiment=image.experiment,
        environment=image.environment,
        simulator=f"gymnasium {metadata.version('gymnasium')}",
        seed=seed,
        returns=tuple(episode.episode_return for episode in episodes),
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


def gymnasium_has(environment: str) -> bool:
    import gymnasium

    return name_in_gymnasium(environment) in gymnasium.registry


def name_in_gymnasium(environment: str) -> str:
    """Without what rl/environments/with_action_history.h and with_sums.h add to it."""
    return re.sub(r"( \+sums)?( \+[0-9]+ actions)?$", "", environment)


@dataclass(frozen=True)
class Episode:
    """One episode: what was seen before each step, what was done and what it earned."""

    observations: Float32Array  # (steps, observation_dim)
    actions: Float32Array  # (steps, action_dim), in the contract's units
    rewards: NDArray[np.float64]  # (steps)
    seed: int  # of the reset

    @property
    def episode_return(self) -> float:
        return float(self.rewards.sum())


def gymnasium_episodes(
    image: PolicyImage, count: int, seed: int, make: MakeEnvironment | None = None
) -> list[Episode]:
    """Episodes of gymnasium from the resets with seed, seed + 1 ..., all worked through at once."""
    make = make or (lambda: make_gymnasium_environment(image))
    environments = [make() for _ in range(count)]
    observations = np.array(
        [environment.reset(seed=seed + i)[0] for i, environment in enumerate(environments)],
        np.float32,
    )
    seen: list[list[Float32Array]] = [[] for _ in environments]
    done: list[list[Float32Array]] = [[] for _ in environments]
    rewards: list[list[float]] = [[] for _ in environments]
    running = list(range(count))
    # What the environments do not show the policy is what it was given by a board.
    asked = image.place_inputs if observations.shape[1] < len(image.observations) else ()
    history = History(asked, len(image.actions), count)
    while running:
        inputs = history.inputs(observations[running], running)
        outputs, actions = image.runner.run(inputs)
        acts = np.isfinite(np.concatenate([inputs, outputs], axis=1)).all(axis=1, keepdims=True)
        history.add(
            np.where(acts, outputs, image.runner.safe_action()[1]),
            running,
            np.where(acts, observations[running], np.float32(np.nan)),
        )
        still_running = []
        for i, values in zip(running, inputs, strict=True):
            seen[i].append(values.copy())
        for i, action in zip(running, actions, strict=True):
            done[i].append(action)
            observation, reward, terminated, truncated, _ = environments[i].step(action)
            observations[i] = observation
            rewards[i].append(float(reward))
            if not terminated and not truncated:
                still_running.append(i)
        running = still_running
    for environment in environments:
        environment.close()
    return [
        Episode(np.array(seen[i]), np.array(done[i]), np.array(rewards[i]), seed + i)
        for i in range(count)
    ]


def make_gymnasium_environment(image: PolicyImage) -> Any:
    """Gymnasium's environment of the image's name; its spaces must be those of the contract."""
    import gymnasium

    name = name_in_gymnasium(image.environment)
    if name not in gymnasium.registry:  # MODULE:ID would import what the image says
        raise UnknownNameError(
            f"gymnasium has no environment {image.environment}: leave out --in gymnasium to use "
            "the core's simulator"
        )
    if image.experiment in experiments.list_experiments():
        experiments.install_requirements(image.experiment)
        if "mujoco" in experiments.requirements(image.experiment):
            silence_mujoco()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Gymnasium has newer versions
            environment = gymnasium.make(name, disable_env_checker=True)
    except gymnasium.error.Error as error:
        raise UnknownNameError(
            f"gymnasium has no environment {image.environment} ({error}): "
            f"leave out --in gymnasium to use the core's simulator"
        ) from None
    space = environment.action_space
    minimum = [channel.minimum for channel in image.actions]
    maximum = [channel.maximum for channel in image.actions]
    if (
        environment.observation_space.shape
        not in ((len(image.observations),), (len(image.contract.observations),))
        or not isinstance(space, gymnasium.spaces.Box)
        or space.low.tolist() != minimum
        or space.high.tolist() != maximum
    ):
        raise BoardMismatchError(
            f"gymnasium's {image.environment} takes other observations or actions than the policy "
            f"of {image.origin}: use the gymnasium version that pyproject.toml names"
        )
    return environment


def core_returns(
    image: PolicyImage, episodes: int, seed: int, hyperparameters: Mapping[str, float]
) -> list[float]:
    """Returns in the core's simulator: the episodes that a board with this seed evaluates."""
    target = f"simulate-{image.experiment}"
    board = experiments.native_board(image.experiment)
    experiments.install_requirements(image.experiment)
    program = cmake.build_targets(board, [target]) / target
    known = {entry.name for entry in experiments.describe(image.experiment).hyperparameters}
    given = [f"{name}={value}" for name, value in hyperparameters.items() if name in known]
    return simulator_returns([str(program), str(episodes), str(seed), *given], image)


def simulator_returns(command: Sequence[str], image: PolicyImage) -> list[float]:
    """Runs host/native/simulate.cpp, which reads the image from its standard input."""
    result = subprocess.run(command, input=image.data, capture_output=True, timeout=600)
    if result.returncode == 1:
        raise VerificationError(f"{image.origin}: {result.stderr.decode().strip()}")
    try:
        result.check_returncode()
        document = json.loads(result.stdout)
        return [float(value) for value in document["returns"]]
    except (subprocess.CalledProcessError, KeyError, TypeError, ValueError):
        raise BuildError(
            f"{command[0]} ended with code {result.returncode} and printed no returns: "
            f"delete {PROJECT.board_build('host')}, it is made again"
        ) from None


def evaluated(
    folder: RunFolder, episodes: int, seed: int, simulator: str | None, named: str | None = None
) -> tuple[Evaluation, list[str]]:
    """The evaluation of a run's policy, and what must be known to read it.

    simulator: CORE or GYMNASIUM; None: the core's, or Gymnasium where that plays the task.
    named: the run's task, as the user names it; None: as the run does, where that may be imported.
    """
    image = read_run_policy(folder)
    image.verify()
    task = folder.content.gymnasium
    if simulator is None:
        simulator = CORE if task is None else GYMNASIUM
    elif simulator == CORE and task is not None:
        raise UsageError(
            f"--in core: {task.environment} is played by Gymnasium, and the core has no simulator "
            "of it: leave --in out"
        )
    if task is None and named is not None:
        raise UsageError(f"--task: run {folder.name} was trained on no task of Gymnasium's")
    make = (
        flat_maker(playable(task, named)) if task is not None and simulator == GYMNASIUM else None
    )
    values = folder.content.hyperparameters
    evaluation = evaluate_policy(image, str(folder.path), episodes, seed, simulator, make, values)
    return evaluation.of_task(task), notes_on(folder, image, simulator)


def unfinished(folder: RunFolder, image: PolicyImage) -> list[str]:
    """A note on a policy from before the end of its training."""
    steps = folder.content.steps
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
        what = difference(folder.content.learning, present.learning)
        what = what or f"fingerprint {image.fingerprint:08x}, here {present.fingerprint:08x}"
        where = ", and so does the simulator" if simulator == CORE else ""
        notes.append(f"the run's {image.experiment} differs from this tree's{where}: {what}")
    return notes
