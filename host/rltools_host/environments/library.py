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
    """A loaded library, and its description of the environment."""

    def __init__(self, native: NativeLibrary) -> None:
        described = native.description
        self.functions = native.functions
        self.name: str = described["name"]
        self.observations = description.channels(described["observations"])
        self.actions = description.channels(described["actions"])
        self.safe_action: list[float] = described["safe_action"]  # empty where it states none
        self.step_interval_us: int = described["step_interval_us"]
        self.episode_steps: int | None = described["episode_steps"]
        self.max_threads: int = described["max_threads"]
        self.scalar: np.dtype[Any] = np.dtype(described["scalar"])
        self.state = native.records["State"]  # the fields of State, by their names
        self.batch = native.records["Batch"]
        self.parameter_bytes: int = described["parameter_bytes"]
        self.privileged_dim: int = described["privileged_dim"]  # values after the channels
        self.settings = description.parameters(described["settings"])
        self.step_s: float = described["step_interval_us"] * described["ticks_per_step"] * 1e-6
        self.experiment: Mapping[str, Any] = described.get(
            "experiment", {}
        )  # of experiment_library()


def load_library(name: str, double: bool = False) -> Library:
    """Return the library of an environment, built if it is not up to date; `double` is for tests.

    Raises MissingToolError if packages that it needs, such as MuJoCo, cannot be installed.
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
    """Return the library of an experiment's environment, with its settings and length of episodes;
    built if it is not up to date."""
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
    """Install the groups of Python packages that it needs, as `rlt train` does."""
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
        threads = whole_number("threads", threads, 1, library.max_threads)
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
        """Copy the state of another batch of this size."""
        arrays = ("states", "_parameters", "episodes", "episode_steps", "episode_returns")
        for name in (*arrays, "terminated", "truncated"):
            getattr(self, name)[...] = getattr(other, name)
        for name in ("seed", "step_number"):
            self._record[name] = other._record[name]

    def reset(self, seed: int) -> None:
        """Begin the first episode of every environment, which this seed and its row decide."""
        self.library.functions.rlt_environment_reset(self._pointer, seed)

    def begin_next(self) -> None:
        """Begin the next episode of every environment."""
        self.library.functions.rlt_environment_begin_next(self._pointer)

    def observe(self) -> None:
        """Write the observations of the present states."""
        self.library.functions.rlt_environment_observe(self._pointer)

    def step(self) -> int:
        """Step every environment by its row of `actions`, and return how many episodes have
        ended."""
        ended: int = self._step(self._pointer)
        return ended


def setting_bits(
    owner: str, settings: Sequence[Parameter], given: Mapping[str, float]
) -> NDArray[np.uint32]:
    """Return four bytes for each of an environment's settings, of those not given their
    defaults."""
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


def put_actions(rows: Array, actions: Any, name: str) -> None:
    """Write the actions into an array of the same shape: real numbers, no objects and no text."""
    try:
        given = np.asarray(actions)
    except ValueError:
        raise UsageError(f"{name} takes an array of actions, this one is ragged") from None
    if given.shape != rows.shape or given.dtype.kind not in "fiub":
        raise UsageError(
            f"{name} takes real numbers of shape {rows.shape}, not {given.dtype} of shape "
            f"{given.shape}"
        )
    rows[...] = given
