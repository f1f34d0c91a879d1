"""An environment's library (host/native/environment_library.cpp), and a batch that it steps.

The library allocates nothing: states and results are NumPy's arrays, a row for each environment.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build import cmake, description, experiments, tools
from rltools_host.build.boards import load_board
from rltools_host.build.catalog import Environment, find_environment
from rltools_host.build.description import Parameter
from rltools_host.build.native import NativeLibrary
from rltools_host.documents import LARGEST_U32, optional_whole_number, repr_of, table, whole_number
from rltools_host.errors import BuildError, MissingToolError, RltError, UsageError, unknown_name

UNLIMITED_STEPS = 2**32 - 1
DISABLED, SAME_STEP, NEXT_STEP = range(3)  # Autoreset of environment_library.cpp
MAX_ENVIRONMENTS = 2**20
Array = NDArray[Any]


class Library:
    """A loaded library, and what it says of its environment."""

    def __init__(self, native: NativeLibrary) -> None:
        said = native.description
        self.functions = native.functions
        self.name: str = said["name"]
        self.observations = description.channels(said["observations"])
        self.actions = description.channels(said["actions"])
        self.safe_action: list[float] = said["safe_action"]  # empty where it states none
        self.step_interval_us: int = said["step_interval_us"]
        self.episode_steps: int | None = said["episode_steps"]
        self.most_threads: int = said["most_threads"]
        self.scalar: np.dtype[Any] = np.dtype(said["scalar"])
        self.state = native.records["State"]  # the fields of State, by their names
        self.batch = native.records["Batch"]
        self.parameter_bytes: int = said["parameter_bytes"]
        self.privileged_dim: int = said["privileged_dim"]  # values behind those of the channels
        self.settings = description.parameters(said["settings"])
        self.step_s: float = said["step_interval_us"] * said["ticks_per_step"] * 1e-6
        self.experiment: Mapping[str, Any] = said.get("experiment", {})  # of experiment_library()


def load_library(name: str, double: bool = False) -> Library:
    """The library of an environment, built where it is not up to date; `double` is for tests.

    MissingToolError where packages that it needs, such as MuJoCo, cannot be installed.
    """
    return loaded(find_environment(name), double)


@cache
def loaded(environment: Environment, double: bool) -> Library:
    require_packages(environment)
    target = environment.library + ("-f64" if double else "")
    folder = cmake.build_targets(load_board("host"), [target])
    library = library_at(folder / f"lib{target}.so")
    if (library.name, library.episode_steps) != (environment.name, environment.episode_steps):
        raise BuildError(
            f"{environment.header} says {environment.name} with {environment.episode_steps} steps "
            f"an episode, and its compiled code {library.name} with {library.episode_steps}: "
            "write kName and kEpisodeSteps as numbers and texts in this header"
        )
    return library


def experiment_library(name: str) -> Path:
    """The library of an experiment's environment, with its settings and length of episodes; built
    where it is not up to date."""
    experiments.require_experiment(name)
    experiments.install_requirements(name)
    target = f"check-{name}"
    return cmake.build_targets(experiments.native_board(name), [target]) / f"lib{target}.so"


def library_at(path: Path) -> Library:
    native = NativeLibrary(path)
    if reason := native.description["unavailable"]:
        raise RltError(reason)
    return Library(native)


def require_packages(environment: Environment) -> None:
    """Installs the groups of Python packages that it needs, as `rlt train` does."""
    for group in environment.requirements:
        try:
            if group in tools.GROUPS:
                tools.ensure_group(group)
        except MissingToolError as error:
            raise MissingToolError(f"{environment.name} needs {group}: {error}") from None


class Batch:
    """`count` environments and the arrays that the library works on.

    A caller writes `actions`, in the channels' units, which step() overwrites; all others are
    the library's to write. `states` has the fields of the environment's State by their names: who
    writes there calls observe() behind it. terminated and truncated tell of the last step. What
    comes where an episode has ended is `autoreset`: with SAME_STEP `observations` has the first one
    of the next episode, and `final_observations` the last one of that which ended.
    `privileged_observations` is what critics see beside (kPrivilegedDim), mostly nothing.
    `settings` are those of the environment, by their names.
    """

    def __init__(
        self,
        library: Library,
        count: int,
        *,
        episode_steps: int | None = None,
        autoreset: int = DISABLED,
        threads: int = 1,
        settings: Mapping[str, float] | None = None,
    ) -> None:
        count = whole_number("num_envs", count, 1, MAX_ENVIRONMENTS)
        threads = whole_number("threads", threads, 1, library.most_threads)
        episode_steps = optional_whole_number(
            "max_episode_steps", episode_steps, 1, UNLIMITED_STEPS - 1
        )
        self.library = library
        scalar = library.scalar
        policy_width = len(library.observations)
        rows: Array = np.zeros((count, policy_width + library.privileged_dim), scalar)
        final_rows = np.zeros_like(rows)
        self.states: Array = np.zeros(count, library.state)
        self.episodes = np.zeros(count, np.uint32)  # that have ended
        self.episode_steps = np.zeros(count, np.uint32)  # done in the present episode
        self.episode_returns: Array = np.zeros(count, scalar)  # of the present episode
        self.actions: Array = np.zeros((count, len(library.actions)), scalar)
        self.observations = rows[:, :policy_width]
        self.privileged_observations = rows[:, policy_width:]
        self.final_observations = final_rows[:, :policy_width]
        self.rewards: Array = np.zeros(count, scalar)
        self.terminated = np.zeros(count, np.bool_)
        self.truncated = np.zeros(count, np.bool_)
        self._parameters = np.zeros(count * library.parameter_bytes, np.uint8)
        self._settings = setting_bits(library.name, library.settings, table("settings", settings))
        self._record = np.zeros(1, library.batch)
        shared: Mapping[str, int | Array] = {
            "count": count,
            "threads": threads,
            "episode_steps": UNLIMITED_STEPS if episode_steps is None else episode_steps,
            "autoreset": autoreset,
            "settings": self._settings,
            "state": self.states,
            "parameters": self._parameters,
            "episodes": self.episodes,
            "episode_step": self.episode_steps,
            "episode_return": self.episode_returns,
            "action": self.actions,
            "observation": rows,
            "final_observation": final_rows,
            "reward": self.rewards,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }
        for name, value in shared.items():
            self._record[name] = value if isinstance(value, int) else value.ctypes.data
        self._rows = (rows, final_rows)  # whose memory the views above and the library have
        self._pointer = ctypes.c_void_p(self._record.ctypes.data)
        self._step = library.functions.rlt_environment_step

    @property
    def seed(self) -> int:
        return int(self._record["seed"][0])

    def take_over(self, other: Batch) -> None:
        """Its environments are where those of another batch of this size are."""
        arrays = ("states", "_parameters", "episodes", "episode_steps", "episode_returns")
        for name in (*arrays, "terminated", "truncated"):
            getattr(self, name)[...] = getattr(other, name)
        for name in ("seed", "step_number"):
            self._record[name] = other._record[name]

    def reset(self, seed: int) -> None:
        """The first episode of every environment, which this seed and its row decide."""
        self.library.functions.rlt_environment_reset(self._pointer, seed)

    def begin_next(self) -> None:
        """The next episode of every environment."""
        self.library.functions.rlt_environment_begin_next(self._pointer)

    def observe(self) -> None:
        """Writes the observations of the present states."""
        self.library.functions.rlt_environment_observe(self._pointer)

    def step(self) -> int:
        """Every environment takes its row of `actions`; returns how many episodes have ended."""
        ended: int = self._step(self._pointer)
        return ended


def setting_bits(
    owner: str, settings: Sequence[Parameter], given: Mapping[str, float]
) -> NDArray[np.uint32]:
    """Four bytes for each of an environment's settings, those that are not given as they are."""
    known = [setting.name for setting in settings]
    for name in given:
        if name not in known:
            raise unknown_name(f"setting of {owner}", name, known)
    bits: NDArray[np.uint32] = np.zeros(len(known), np.uint32)
    for i, setting in enumerate(settings):
        value = given.get(setting.name, setting.default)
        if not isinstance(value, int | float | np.integer | np.floating):
            raise UsageError(f"{setting.name}={repr_of(value)}: give a number")
        if not setting.minimum <= value <= setting.maximum:
            raise UsageError(
                f"{setting.name}={value} is out of bounds: choose a number from "
                f"{setting.minimum:g} to {setting.maximum:g} {setting.unit}".rstrip()
                + f" ({setting.description.rstrip('.')})"
            )
        if setting.is_whole and value != int(value):
            raise UsageError(f"{setting.name}={value} is not a whole number: give one")
        bits[i : i + 1].view("u4" if setting.is_whole else "f4")[0] = value
    return bits


def checked_seed(seed: Any) -> int:
    return whole_number("seed", seed, 0, LARGEST_U32)


def put_actions(place: Array, actions: Any, name: str) -> None:
    """Writes actions of the place's shape there: real numbers, no objects and no text."""
    try:
        given = np.asarray(actions)
    except ValueError:
        raise UsageError(f"{name} takes an array of actions, this one is ragged") from None
    if given.shape != place.shape or given.dtype.kind not in "fiub":
        raise UsageError(
            f"{name} takes real numbers of shape {place.shape}, not {given.dtype} of shape "
            f"{given.shape}"
        )
    place[...] = given
