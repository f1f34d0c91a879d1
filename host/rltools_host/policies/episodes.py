"""Deterministic episodes of a policy, step by step, in Gymnasium's or the core's simulator, and
files of their steps.

The policy runs through the code that boards run (policies/image.py): its actions are the board's.
"""

from __future__ import annotations

import csv
import io
import re
import subprocess
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rltools_host.build import cmake, experiments, tools
from rltools_host.build.description import Channel
from rltools_host.environments.imports import one_line, silence_mujoco
from rltools_host.environments.player import ActionSpace
from rltools_host.errors import BoardMismatchError, BuildError, RefusedError, UsageError
from rltools_host.files import disk_error, write_atomically
from rltools_host.lines import aside
from rltools_host.policies.acting import History, history_values
from rltools_host.policies.image import Float32Array, PolicyImage
from rltools_host.tree import PROJECT

MakeEnvironment = Callable[[], Any]
LONGEST_S = 600.0


def gymnasium_has(environment: str) -> bool:
    import gymnasium

    return name_in_gymnasium(environment) in gymnasium.registry


def name_in_gymnasium(environment: str) -> str:
    """Return the name without the suffixes of rl/environments/with_action_history.h and
    with_sums.h."""
    return re.sub(r"( \+sums)?( \+[0-9]+ actions)?$", "", environment)


@dataclass(frozen=True)
class EpisodeEnd:
    """The return and the end of an episode, and its first observation."""

    episode_return: float
    steps: int
    terminated: bool  # else truncated
    start: Float32Array  # the first observation, (observation_dim)


@dataclass(frozen=True)
class Episode:
    """One episode: the observation before each step, the action and the reward."""

    observations: Float32Array  # (steps, observation_dim)
    actions: Float32Array  # (steps, action_dim), in the contract's units
    rewards: NDArray[np.float64]  # (steps)
    seed: int  # of the reset in Gymnasium; in the core, of all episodes
    step_s: float
    terminated: bool = False
    number: int | None = None  # among the core's episodes of this seed

    @property
    def episode_return(self) -> float:
        return float(self.rewards.sum())

    @property
    def end(self) -> EpisodeEnd:
        steps = len(self.rewards)
        return EpisodeEnd(self.episode_return, steps, self.terminated, self.observations[0])

    @property
    def origin(self) -> str:
        """Return words by which the same episode can be played again."""
        if self.number is None:
            return f"gymnasium's reset with seed {self.seed}"
        return f"the core's episode {self.number} of seed {self.seed}"


def gymnasium_episodes(
    image: PolicyImage, count: int, seed: int, make: MakeEnvironment | None = None
) -> list[Episode]:
    """Play episodes in Gymnasium from the resets with seed, seed + 1 ..., all side by side."""
    make = make or (lambda: make_gymnasium_environment(image))
    environments: list[Any] = []
    try:
        for _ in range(count):
            environments.append(make())
        return played(image, environments, seed)
    finally:
        close_all(environments)


def close_all(environments: Sequence[Any]) -> None:
    """Close all environments. Report a failure as a note, and keep the results."""
    for environment in environments:
        try:
            environment.close()
        except Exception as error:
            aside(f"note: an environment may not be closed: close raised {one_line(error)}")


def played(image: PolicyImage, environments: Sequence[Any], seed: int) -> list[Episode]:
    """Play one episode in each environment."""
    count = len(environments)
    observations = np.array(
        [environment.reset(seed=seed + i)[0] for i, environment in enumerate(environments)],
        np.float32,
    )
    seen: list[list[Float32Array]] = [[] for _ in environments]
    done: list[list[Float32Array]] = [[] for _ in environments]
    rewards: list[list[float]] = [[] for _ in environments]
    is_terminal = [False] * count
    running = list(range(count))
    # What the environments do not observe, the history adds, as on a board.
    asked = image.added_inputs if observations.shape[1] < len(image.observations) else ()
    history = History(asked, len(image.actions), count)
    states = image.runner.begin(count)
    while running:
        inputs = history.inputs(observations[running], running)
        present = states[running]
        outputs, actions = image.runner.run(inputs, present)
        states[running] = present
        acts = np.isfinite(np.concatenate([inputs, outputs], axis=1)).all(axis=1, keepdims=True)
        history.add(
            np.where(
                acts,
                history_values(outputs, actions, image.actions),
                image.runner.safe_action()[1],
            ),
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
            is_terminal[i] = bool(terminated)
            if not terminated and not truncated:
                still_running.append(i)
        running = still_running
    step_s = image.step_interval_us * 1e-6
    return [
        Episode(
            np.array(seen[i]),
            np.array(done[i]),
            np.array(rewards[i]),
            seed=seed + i,
            step_s=step_s,
            terminated=is_terminal[i],
        )
        for i in range(count)
    ]


def make_gymnasium_environment(image: PolicyImage) -> Any:
    """Return Gymnasium's environment of the image's name.

    Raise BoardMismatchError unless its spaces are those of the contract.
    """
    import gymnasium

    name = name_in_gymnasium(image.environment)
    if name not in gymnasium.registry:  # MODULE:ID would import what the image says
        raise UsageError(
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
        raise UsageError(
            f"gymnasium has no environment {image.environment} ({error}): "
            f"leave out --in gymnasium to use the core's simulator"
        ) from None
    takes_others = environment.observation_space.shape not in (
        (len(image.observations),),
        (len(image.contract.observations),),
    )
    if takes_others or not has_actions(environment.action_space, image.actions):
        raise BoardMismatchError(
            f"gymnasium's {image.environment} takes other observations or actions than the policy "
            f"of {image.origin}: use the gymnasium version that pyproject.toml names"
        )
    if not any(channel.choices for channel in image.actions):
        return environment
    return gymnasium.wrappers.TransformAction(
        environment, ActionSpace(environment.action_space).taken, environment.action_space
    )


def has_actions(space: Any, actions: Sequence[Channel]) -> bool:
    """Return whether an environment's action space is that of the channels."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return [int(space.n)] == [len(action.choices) for action in actions]
    if isinstance(space, spaces.MultiDiscrete):
        return space.nvec.ravel().tolist() == [len(action.choices) for action in actions]
    if not isinstance(space, spaces.Box) or any(action.choices for action in actions):
        return False
    ends = (space.low.tolist(), space.high.tolist())
    return ends == ([a.minimum for a in actions], [a.maximum for a in actions])


def core_outcomes(
    image: PolicyImage, episodes: int, seed: int, hyperparameters: Mapping[str, float]
) -> list[EpisodeEnd]:
    """Play episodes in the core's simulator, the same as a board evaluates with this seed."""
    summary, rows = simulated(image, episodes, seed, "starts", hyperparameters)
    starts = rows[:, : len(image.observations)]
    return [
        EpisodeEnd(value, steps, terminated, start)
        for value, steps, terminated, start in zip(
            summary.returns, summary.steps, summary.terminated, starts, strict=True
        )
    ]


def core_episodes(
    image: PolicyImage, episodes: int, seed: int, hyperparameters: Mapping[str, float]
) -> list[Episode]:
    """Play the episodes of core_outcomes(), and return every step."""
    summary, rows = simulated(image, episodes, seed, "steps", hyperparameters)
    seen = len(image.observations)
    ends = np.cumsum([0, *summary.steps])
    return [
        Episode(
            observations=rows[begin:end, :seen],
            actions=rows[begin:end, seen:-1],
            rewards=rows[begin:end, -1].astype(float),
            seed=seed,
            step_s=summary.step_s,
            terminated=summary.terminated[number],
            number=number,
        )
        for number, (begin, end) in enumerate(pairwise(ends))
    ]


class Summary(msgspec.Struct):
    """The summary that host/native/simulate.cpp prints, with a value for each episode."""

    step_s: float
    returns: list[float]
    steps: list[int]
    terminated: list[bool]


def simulated(
    image: PolicyImage, episodes: int, seed: int, kept: str, hyperparameters: Mapping[str, float]
) -> tuple[Summary, Float32Array]:
    """Build and run host/native/simulate.cpp, and return its summary and its rows (steps,
    observation_dim + action_dim + 1)."""
    board = experiments.native_board(image.experiment)
    experiments.install_requirements(image.experiment)
    program = cmake.host_program(board, [f"simulate-{image.experiment}"])
    known = {entry.name for entry in experiments.describe(image.experiment).hyperparameters}
    given = [f"{name}={value}" for name, value in hyperparameters.items() if name in known]
    command = [str(program), str(episodes), str(seed), kept, *given]
    result = subprocess.run(command, input=image.data, capture_output=True, timeout=LONGEST_S)
    if result.returncode == 1:
        raise RefusedError(f"{image.origin}: {result.stderr.decode().strip()}")
    width = len(image.observations) + len(image.actions) + 1
    try:
        result.check_returncode()
        line, _, data = result.stdout.partition(b"\n")
        summary = msgspec.json.decode(line, type=Summary)
        return summary, np.frombuffer(data, "<f4").reshape(-1, width)
    except (subprocess.CalledProcessError, msgspec.MsgspecError, ValueError):
        raise BuildError(
            f"{program} ended with code {result.returncode} and printed no returns: "
            f"delete {PROJECT.board_build('host')}, it is made again"
        ) from None


CSV, NPZ, PARQUET = ".csv", ".npz", ".parquet"
GROUP = "parquet"
COUNTS = ("episode", "seed", "step", "terminated", "truncated")  # columns of whole numbers
OPTION = "--trace"


def check_trace_path(path: Path) -> None:
    """Raise UsageError where nothing can be written to the path, and install what Parquet needs."""
    if path.suffix not in (CSV, NPZ, PARQUET):
        raise UsageError(f"{OPTION} {path}: name a file that ends with {CSV}, {NPZ} or {PARQUET}")
    if path.is_dir():
        raise UsageError(f"{OPTION} {path} is a folder: name a file in it")
    if path.suffix == PARQUET:
        tools.ensure_group(GROUP)


def write_trace(path: Path, image: PolicyImage, episodes: Sequence[Episode]) -> None:
    """Write a row for each step, in the format that the file's name says.

    CSV: the columns of headings(), and numbers of nine digits, which tell floats apart. NPZ:
    `columns`, the same names, and `rows` of float64, (steps, columns). Parquet: the columns of the
    CSV, as int64 and float64.
    """
    columns = headings(image)
    rows = np.concatenate([rows_of(index, episode) for index, episode in enumerate(episodes)])
    if path.suffix == NPZ:
        stream = io.BytesIO()
        np.savez_compressed(stream, columns=np.array(columns), rows=rows)
        data = stream.getvalue()
    elif path.suffix == PARQUET:
        data = parquet(columns, rows)
    else:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([f"{value:.9g}" for value in row] for row in rows.tolist())
        data = text.getvalue().encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(path, error) from None
    write_atomically(path, data)


def parquet(columns: Sequence[str], rows: NDArray[np.float64]) -> bytes:
    import pyarrow
    from pyarrow import parquet as writer

    arrays = [
        pyarrow.array(values.astype(np.int64) if name in COUNTS else values)
        for name, values in zip(columns, rows.T, strict=True)
    ]
    stream = pyarrow.BufferOutputStream()
    writer.write_table(pyarrow.Table.from_arrays(arrays, names=list(columns)), stream)
    return bytes(stream.getvalue())


def headings(image: PolicyImage) -> list[str]:
    """Return the columns' names, for example `velocity [rad/s]`.

    `observation` or `action` stands before a name that two columns would have, or that a
    spreadsheet would compute.
    """
    names = [channel.name for channel in (*image.observations, *image.actions)]
    texts = []
    for kind, channels in (("observation", image.observations), ("action", image.actions)):
        for channel in channels:
            is_plain = names.count(channel.name) == 1 and channel.name[0] not in "=+-@"
            name = channel.name if is_plain else f"{kind} {channel.name}"
            texts.append(f"{name} [{channel.unit}]")
    return ["episode", "seed", "step", "time [s]", *texts, "reward", "terminated", "truncated"]


def rows_of(index: int, episode: Episode) -> NDArray[np.float64]:
    """Return the rows of an episode, (steps, columns).

    An episode that does not terminate is truncated.
    """
    steps = len(episode.rewards)
    last = np.zeros(steps)
    last[-1] = 1
    number = np.arange(steps, dtype=float)
    rows = [
        np.full(steps, index),
        np.full(steps, episode.seed),
        number,
        number * episode.step_s,
        *episode.observations.T,
        *episode.actions.T,
        episode.rewards,
        last * episode.terminated,
        last * (not episode.terminated),
    ]
    return np.stack(rows, axis=1)
