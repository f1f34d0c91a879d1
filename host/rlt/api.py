"""What a Python program calls: environments by their names, a trained policy as a function of
observations, and training, which does what `rlt train` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from rltools_host.build import catalog, experiments
from rltools_host.build.description import Channel
from rltools_host.documents import (
    LARGEST_U32,
    optional_path,
    optional_text,
    optional_whole_number,
    repr_of,
    table,
    text,
)
from rltools_host.environments.compiled import CompiledVectorEnv
from rltools_host.environments.task import DEFAULT_HIDDEN, MakeEnvironment
from rltools_host.errors import UsageError
from rltools_host.policies.acting import Act, Acting
from rltools_host.policies.image import PolicyImage, read_policy, read_run_policy
from rltools_host.runs.names import LAST
from rltools_host.runs.task import MOST_ENVIRONMENTS
from rltools_host.training import from_python
from rltools_host.training.group import train_group
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import GroupScreen, Screen
from rltools_host.training.run import train as train_quietly

MOST_THREADS = 1024


def list_environments() -> list[str]:
    """Names that make() takes; each is also Gymnasium's, with rlt/ before it."""
    return [environment.name for environment in catalog.list_environments()]


def make(
    name: str,
    num_envs: int = 1,
    *,
    max_episode_steps: int | None = None,
    autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
    copy: bool = True,
    threads: int = 1,
    settings: Mapping[str, float] | None = None,
) -> CompiledVectorEnv:
    """`num_envs` environments of the core behind gymnasium.vector.VectorEnv, stepped in one call.

    name: one of list_environments(), such as "Pendulum-v1".
    max_episode_steps: after so many steps an episode is truncated; None: the environment's own
        number, 200 of Pendulum-v1.
    autoreset_mode: "SameStep" (see CompiledVectorEnv), or "NextStep", which Gymnasium's vector
        wrappers of observations want.
    copy: False returns the same arrays at each call, which the next call overwrites.
    threads: 1 to 64 that share environments whose step takes some microseconds (MuJoCo's); no bit
        depends on their number.
    settings: the environment's settings by their names, as `--set` takes them: {"airframe": 2}.

    The environment is compiled unless it is up to date. RltError: there is no such environment, or
    a package that it needs cannot be installed.
    """
    return CompiledVectorEnv(
        name,
        num_envs,
        max_episode_steps=max_episode_steps,
        autoreset_mode=autoreset_mode,
        copy=copy,
        threads=threads,
        settings=settings,
    )


class Policy(Acting):
    """Computes actions, with the bits of a board that has this policy.

    `observations` and `actions` are the channels: name, unit, minimum and maximum of each element.
    """

    def __init__(self, image: PolicyImage) -> None:
        """RefusedError if this machine computes other bits than the image's examples."""
        image.verify()
        super().__init__(image)

    @classmethod
    def load(cls, run: str | PathLike[str] | Run, which: str = LAST) -> Policy:
        """The policy of a run, or a policy image.

        run: the result of rlt.train, a run's folder, its name under runs/, "latest", or a file
        policy.rltp.
        which: "last", or "best": that of the best evaluation in training.

        RltError: there is no policy, it is damaged, or this machine computes other bits with it
        than the device that wrote it.
        """
        place = optional_path("run", getattr(run, "path", run))
        if place is None:
            raise UsageError("run=None: give a run, or a policy image")
        if not place.is_file():
            return cls(read_run_policy(place, text("which", which)))
        if which != LAST:
            raise UsageError(
                f"which={repr_of(which)}: {place} is one policy; give the run's folder"
            )
        return cls(read_policy(place))

    @property
    def observations(self) -> tuple[Channel, ...]:
        return self.image.observations

    @property
    def actions(self) -> tuple[Channel, ...]:
        return self.image.actions

    @property
    def experiment(self) -> str:
        return self.image.experiment

    @property
    def environment(self) -> str:
        return self.image.environment

    @property
    def step(self) -> int:
        """The step of training whose policy it is."""
        return self.image.step

    @property
    def seed(self) -> int:
        """The seed of the training run."""
        return self.image.seed

    @property
    def step_interval_s(self) -> float:
        """The time between two actions that it was trained for."""
        return self.image.step_interval_us / 1e6

    @property
    def shape(self) -> str:
        """The widths of its layers, for example 3-64-64-1."""
        return self.image.shape

    def __call__(self, observation: ArrayLike) -> NDArray[np.float32]:
        """Actions, float32 of shape (actions,) or (n, actions), in the units of `actions`.

        observation: real numbers of shape (observations,) or (n, observations), in the units of
        `observations`, rounded to float32. If one is not finite, the action is the safe one of its
        contract. UsageError for another shape or type; a recurrent policy acts by episode().
        """
        return self._act(observation)

    @property
    def is_recurrent(self) -> bool:
        """Whether it has a hidden state, and its action depends on what it observed before."""
        return self.image.recurrence is not None

    def episode(self, count: int = 1) -> Act:
        """A function like this policy, for an episode, or `count` of them side by side: a recurrent
        policy's hidden state begins with zeros, and each call is a step of its training's time."""
        return super().episode(count)

    def __repr__(self) -> str:
        return f"Policy({self.experiment}, step {self.step}, {self.shape}, {self.environment})"


@dataclass(frozen=True)
class Run:
    """A finished training run.

    path: its folder. summary: what `rlt train --json` prints: step, return_mean, return_std,
    state_sha256, train_s and so on.
    """

    path: Path
    summary: Mapping[str, Any]

    @cached_property
    def policy(self) -> Policy:
        """Its last policy, verified on this machine."""
        return Policy.load(self.path)

    @cached_property
    def best_policy(self) -> Policy:
        """That of the best evaluation in training; RltError where there is none yet, or where older
        firmware kept only the last."""
        return Policy.load(self.path, "best")


class Group(Run):
    """Finished runs that differ in their seeds; `summary` also has what their returns come to."""

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """One for each seed, in their order, with its policy."""
        return tuple(Run(Path(run["run"]), run) for run in self.summary["runs"])


def list_experiments() -> list[str]:
    """Names that train() takes."""
    return experiments.list_experiments()


def train(
    experiment: str | None = None,
    *,
    board: str | None = None,
    seed: int | None = None,
    seeds: Iterable[int] | None = None,
    jobs: int | None = None,
    steps: int | None = None,
    settings: Mapping[str, float | int | str] | None = None,
    out: str | PathLike[str] | None = None,
    resume: str | PathLike[str] | Run | None = None,
    port: str | None = None,
    threads: int | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
) -> Run:
    """Trains, and returns when the run is finished; None stands for the default of `rlt train`.

    experiment: one of list_experiments(), such as "pendulum-td3".
    board: where to train, as `--board`; None: this machine.
    seeds: trains a run for each, `jobs` at once, and returns a Group.
    steps: of the environments in all, also with `resume`.
    settings: hyperparameters by their names, as `rlt train --set` takes them.
    out: the run's folder; None: a new one under runs/.
    resume: a paused run to go on with.
    port: the board's port, such as /dev/ttyACM0. threads: with board="host-threads".
    quiet: shows nothing while it trains.

    RltError with one sentence says what is wrong. Ctrl-C pauses the board, saves a checkpoint and
    raises Interrupted; pass its details["run"] as `resume`. Before training begins, Ctrl-C is a
    KeyboardInterrupt, as anywhere in Python, and the call cleans up.
    """
    request = TrainingRequest(
        experiment=optional_text("experiment", experiment),
        board=optional_text("board", board),
        seed=seed,
        steps=steps,
        settings=from_python.as_typed(settings),
        out=optional_path("out", out),
        resume=from_python.place_of(resume),
        port=optional_text("port", port),
        threads=optional_whole_number("threads", threads, 1, MOST_THREADS),
    )
    return trained(request, tensorboard, quiet, (seeds, jobs))


def trained(
    request: TrainingRequest, tensorboard: bool, quiet: bool, seeds: from_python.Seeds
) -> Run:
    from rltools_host.commands import train as command

    if (group := from_python.group_request(request, seeds, tensorboard)) is not None:
        trained = train_group(group, GroupScreen) if quiet else command.run_group(group)
        return Group(Path(trained["group"]), trained)
    if quiet:
        document = train_quietly(request, Screen, tensorboard)
    else:
        document = command.run(request, tensorboard)
    return Run(Path(document["run"]), document)


def train_gymnasium(
    make_env: MakeEnvironment | str,
    *,
    algorithm: str | None = None,
    hidden: Sequence[int] = DEFAULT_HIDDEN,
    environments: int | None = None,
    seed: int | None = None,
    seeds: Iterable[int] | None = None,
    jobs: int | None = None,
    steps: int | None = None,
    name: str | None = None,
    channels: Mapping[str, Any] | None = None,
    episode_steps: int | None = None,
    settings: Mapping[str, float] | None = None,
    sizes: Mapping[str, int] | None = None,
    out: str | PathLike[str] | None = None,
    resume: str | PathLike[str] | Run | None = None,
    threads: int | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
) -> Run:
    """Trains on a task of Gymnasium's, stepped in Python and learnt in C++, on this machine.

    make_env: a function without arguments (a class, too) that makes the environment, or
        Gymnasium's id of it, such as "HalfCheetah-v5". Its observations are a Box, its actions a
        Box, a Discrete or a MultiDiscrete.
    algorithm: "sac", "td3" or "ppo"; of a Discrete "dqn" or "ppo", of a MultiDiscrete "ppo". None:
        "sac" of a Box, else "ppo".
    hidden: widths of the layers between; 64, 64.
    environments: how many are stepped at once; None: 1, with PPO 8.
    name: the environment's name in the policy's image; None: the function's.
    channels: `observations` and `actions`, lists of names, or of mappings with name, unit, and of
        an observation minimum and maximum, of an action safe; and `step_interval_us`. What is
        missing is taken from the spaces, or assumed and said.
    episode_steps: the longest episode; None: the task's own, else 1,000.
    sizes: batch_size, buffer_size (of sac, td3 and dqn), n_steps (of ppo).
    seeds: as of train(); environments of a function are stepped one run after the other.
    The others are those of train(). docs/gymnasium_tasks.md has the details.

    RltError with one sentence says what is wrong with the environment. A step in which it raises,
    or gives a number that is not finite, is counted and left out. Ctrl-C works as in train(). The
    environments are made and stepped in a thread of this process.
    """
    task = from_python.task_request(
        make_env,
        name=optional_text("name", name),
        algorithm=optional_text("algorithm", algorithm),
        hidden=from_python.widths(hidden),
        environments=optional_whole_number("environments", environments, 1, MOST_ENVIRONMENTS),
        episode_steps=optional_whole_number("episode_steps", episode_steps, 1, LARGEST_U32 // 2),
        channels=table("channels", channels),
        sizes=table("sizes", sizes),
    )
    request = TrainingRequest(
        seed=seed,
        steps=steps,
        settings=from_python.as_typed(settings),
        out=optional_path("out", out),
        resume=from_python.place_of(resume),
        threads=optional_whole_number("threads", threads, 1, MOST_THREADS),
        task=task,
    )
    return trained(request, tensorboard, quiet, (seeds, jobs))
