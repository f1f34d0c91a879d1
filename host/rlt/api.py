"""Environments by name, training, and trained policies as functions of observations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from gymnasium.vector import AutoresetMode

from rltools_host.build import catalog, experiments
from rltools_host.documents import (
    LARGEST_U32,
    optional_path,
    optional_text,
    optional_whole_number,
    table,
)
from rltools_host.environments.compiled import CompiledVectorEnv
from rltools_host.environments.task import MakeEnvironment
from rltools_host.policies.acting import Policy
from rltools_host.runs.task import MAX_ENVIRONMENTS
from rltools_host.training import from_python
from rltools_host.training.group import train_group
from rltools_host.training.group_plan import MAX_SEEDS, GroupRequest, is_for_group
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import GroupScreen, Screen
from rltools_host.training.run import train as train_quietly

MAX_THREADS = 1024


def list_environments() -> list[str]:
    """Return the names that make() takes; gymnasium.make has each with rlt/ before it."""
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
    """Return `num_envs` environments of the core as a gymnasium.vector.VectorEnv.

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
        """Return the last policy, verified on this machine."""
        return Policy.load(self.path)

    @cached_property
    def best_policy(self) -> Policy:
        """Return the policy of the best evaluation in training; RltError if the run has none."""
        return Policy.load(self.path, "best")


class Group(Run):
    """Finished runs that differ in their seeds; `summary` also has statistics of their returns."""

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Return the run of each seed, in the order of the seeds."""
        return tuple(Run(Path(run["run"]), run) for run in self.summary["runs"])


def list_experiments() -> list[str]:
    """Return the names of the experiments that train() takes."""
    return experiments.list_experiments()


class TrainOptions(TypedDict, total=False):
    """The other arguments of train(), for type checkers."""

    board: str | None
    seed: int | None
    jobs: int | None
    steps: int | None
    settings: Mapping[str, float | int | str] | None
    out: str | PathLike[str] | None
    resume: str | PathLike[str] | Run | None
    port: str | None
    threads: int | None
    algorithm: str | None
    hidden: Sequence[int] | None
    environments: int | None
    name: str | None
    channels: Mapping[str, Any] | None
    episode_steps: int | None
    sizes: Mapping[str, int] | None
    tensorboard: bool
    quiet: bool


@overload
def train(
    task: str | MakeEnvironment | None = None,
    *,
    seeds: Iterable[int],
    **options: Unpack[TrainOptions],
) -> Group: ...
@overload
def train(
    task: str | MakeEnvironment | None = None,
    *,
    seeds: None = None,
    **options: Unpack[TrainOptions],
) -> Run: ...
def train(
    task: str | MakeEnvironment | None = None,
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
    algorithm: str | None = None,
    hidden: Sequence[int] | None = None,
    environments: int | None = None,
    name: str | None = None,
    channels: Mapping[str, Any] | None = None,
    episode_steps: int | None = None,
    sizes: Mapping[str, int] | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
) -> Run:
    """Train, and return the finished run; None stands for the default of `rlt train`.

    task: an experiment, one of list_experiments(), such as "pendulum-td3"; a Gymnasium task,
        such as "gym:HalfCheetah-v5"; or a function without arguments (a class, too) that makes a
        Gymnasium environment. Its observations are a Box, its actions a Box, a Discrete or a
        MultiDiscrete. None: the task of the resumed run.
    board: where to train, as `--board`; None: this machine.
    seeds: train a run for each, `jobs` at once, and return a Group. Environments of a function are
        stepped one run after the other.
    steps: of the environments in all, also with `resume`.
    settings: hyperparameters by their names, as `rlt train --set` takes them.
    out: the run's folder; None: a new one under runs/.
    resume: a paused run or group to continue.
    port: the board's port, such as /dev/ttyACM0. threads: with board="host-threads".
    quiet: print nothing.

    The following are for a new run of a Gymnasium task, and refused elsewhere:

    algorithm: "sac", "td3", "xqc" or "ppo"; for a Discrete "dqn" or "ppo", for a MultiDiscrete
        "ppo". None: "sac" for a Box, else "ppo".
    hidden: widths of the hidden layers; None: 64, 64.
    environments: how many are stepped at once; None: 1, with PPO 8.
    name: the environment's name in the policy's image; None: the function's.
    channels: `observations` and `actions`, lists of names, or of mappings with name, unit, and for
        an observation minimum and maximum, for an action safe; and `step_interval_us`. What is
        missing is taken from the spaces, or assumed and printed.
    episode_steps: the longest episode; None: the task's own, else 1,000.
    sizes: batch_size, buffer_size (all but ppo), n_steps (ppo).
    docs/gymnasium_tasks.md has the details.

    RltError has one sentence on what is wrong. A step in which the environment raises, or returns a
    number that is not finite, is counted and left out. Ctrl-C pauses the training, saves a
    checkpoint and raises Interrupted; pass its details["run"] as `resume`. Before training begins,
    Ctrl-C is a KeyboardInterrupt, and the call cleans up.
    """
    request = TrainingRequest(
        board=optional_text("board", board),
        seed=seed,
        steps=steps,
        settings=from_python.setting_list(settings),
        out=optional_path("out", out),
        resume=from_python.run_name(resume),
        port=optional_text("port", port),
        threads=optional_whole_number("threads", threads, 1, MAX_THREADS),
        tensorboard=tensorboard,
        seeds=from_python.seed_list(seeds),
        jobs=optional_whole_number("jobs", jobs, 1, MAX_SEEDS),
    )
    request = from_python.with_task(
        request,
        task,
        name=optional_text("name", name),
        algorithm=optional_text("algorithm", algorithm),
        hidden=from_python.widths(hidden),
        environments=optional_whole_number("environments", environments, 1, MAX_ENVIRONMENTS),
        episode_steps=optional_whole_number("episode_steps", episode_steps, 1, LARGEST_U32 // 2),
        channels=None if channels is None else table("channels", channels),
        sizes=None if sizes is None else table("sizes", sizes),
    )
    from rltools_host.commands.train import run_group, run_one

    if is_for_group(request):
        group = GroupRequest(request)
        trained = train_group(group, GroupScreen) if quiet else run_group(group)
        return Group(Path(trained["group"]), trained)
    document = train_quietly(request, Screen) if quiet else run_one(request)
    return Run(Path(document["run"]), document)
