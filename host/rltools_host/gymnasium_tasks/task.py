"""A task: where its environment comes from, what is observed and done there, and what learns it.

All of it is in the folder of a run (`gymnasium` in run.json), from which the run goes on.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rltools_host.arguments import whole_number
from rltools_host.build.algorithms import algorithms
from rltools_host.build.description import Channel
from rltools_host.errors import DamagedFileError, UsageError, near_matches
from rltools_host.runs.policy_text import (
    LONGEST_CHANNEL_NAME,
    LONGEST_NAME,
    LONGEST_UNIT,
    described,
    is_policy_text,
)
from rltools_host.runs.schema import (
    LARGEST_BOUND,
    MOST_ENVIRONMENTS,
    MOST_LAYERS,
    WIDEST_LAYER,
)

PREFIX = "gym:"  # of a task's name on the command line
DEFAULT_ALGORITHM = "sac"
SIZES = ("batch_size", "replay_capacity", "rollout_steps")  # that may be given by their names
DEFAULT_HIDDEN = (64, 64)
DEFAULT_EPISODE_STEPS = 1000
LONGEST_GIVEN_NAME = 200  # of an environment, which is made shorter

MakeEnvironment = Callable[[], Any]


@dataclass(frozen=True)
class Sizes:
    """What is compiled in, beside the networks; environments: how many are stepped at once."""

    environments: int
    batch_size: int = 256
    replay_capacity: int = 100_000  # where the algorithm has one
    rollout_steps: int = 256  # likewise, of each environment


@dataclass(frozen=True)
class TaskRequest:
    """What a user asks for; None where the task or the algorithm decides."""

    source: str  # gym:ID, or the name of a Python function
    make_env: MakeEnvironment | None = None  # plays in this process, in place of `source`
    name: str | None = None
    algorithm: str = DEFAULT_ALGORITHM
    hidden: tuple[int, ...] = DEFAULT_HIDDEN
    environments: int | None = None
    episode_steps: int | None = None
    channels: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)  # of batch_size and so on

    def checked_sizes(self) -> Sizes:
        """Whether they can be compiled."""
        if self.algorithm not in algorithms():
            known = near_matches(self.algorithm, algorithms())
            raise UsageError(f'unknown algorithm "{self.algorithm}": {known}')
        algorithm = algorithms()[self.algorithm]
        if not 1 <= len(self.hidden) <= MOST_LAYERS or not all(
            1 <= n <= WIDEST_LAYER for n in self.hidden
        ):
            widths = ",".join(map(str, self.hidden))
            raise UsageError(
                f'hidden layers "{widths}": give one to eight widths from 1 to {WIDEST_LAYER}, '
                "such as 64,64"
            )
        for size in self.sizes:
            if size not in SIZES:
                raise UsageError(f'unknown size "{size}": {near_matches(size, SIZES)}')
        count = algorithm.environments if self.environments is None else int(self.environments)
        sizes = Sizes(count, **self.sizes)
        for entry in dataclasses.fields(sizes):
            value = getattr(sizes, entry.name)
            most = MOST_ENVIRONMENTS if entry.name == "environments" else 10_000_000
            whole_number(entry.name, value, 1, most)
        rows = sizes.rollout_steps * sizes.environments
        if algorithm.has_rollouts and rows % sizes.batch_size:
            raise UsageError(
                f"batch_size={sizes.batch_size} does not divide the {rows} rows of a rollout, "
                f"which are rollout_steps={sizes.rollout_steps} times "
                f"environments={sizes.environments}: choose a divisor"
            )
        return sizes


@dataclass(frozen=True)
class Task:
    """Complete: what is compiled follows from it alone."""

    source: str  # gym:ID; or the name of a function that the user's own program has
    environment: str  # name in policy images
    experiment: str
    algorithm: str
    hidden: tuple[int, ...]
    sizes: Sizes
    episode_steps: int
    step_interval_us: int
    observation_shape: tuple[int, ...]
    action_shape: tuple[int, ...]
    observations: tuple[Channel, ...]
    actions: tuple[Channel, ...]
    solved_return: float | None

    @property
    def is_named(self) -> bool:
        """Whether Gymnasium, or a file, makes its environment by name."""
        return self.source.startswith(PREFIX)

    @property
    def contract(self) -> str:
        """Of the boards on which its policies act, whatever learnt them: gym-servo."""
        return short(f"gym-{slug(self.environment)}", LONGEST_NAME)

    @property
    def has_channels(self) -> bool:
        """Whether a table named some of its channels."""
        groups = (("observation", self.observations), ("action", self.actions))
        return any(
            (channel.name, channel.unit) != (f"{group}_{index}", "1")
            for group, channels in groups
            for index, channel in enumerate(channels)
        )

    @property
    def words(self) -> list[str]:
        """What names it to `rlt train`, but for its channels."""
        return [
            self.source,
            *("--algorithm", self.algorithm, "--hidden", ",".join(map(str, self.hidden))),
            *("--environments", str(self.sizes.environments)),
            *("--episode-steps", str(self.episode_steps)),
        ]

    def document(self) -> dict[str, Any]:
        """What run.json says of it."""
        document: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return document

    @staticmethod
    def of_document(document: Mapping[str, Any], file: str = "run.json") -> Task:
        """From a run's file or a group's, whose schema has been checked."""
        try:
            return Task(
                **{
                    **document,
                    "hidden": tuple(document["hidden"]),
                    "sizes": Sizes(**document["sizes"]),
                    "observation_shape": tuple(document["observation_shape"]),
                    "action_shape": tuple(document["action_shape"]),
                    "observations": tuple(Channel(**c) for c in document["observations"]),
                    "actions": tuple(Channel(**c) for c in document["actions"]),
                }
            )
        except (KeyError, TypeError) as error:
            raise DamagedFileError(f"{file} has no task of Gymnasium's: {error}") from None


def slug(text: str) -> str:
    """In lower case, words joined by hyphens, each beginning with a letter or a digit."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def short(text: str, length: int) -> str:
    """The text, or its beginning and a hash where it is longer."""
    if len(text) <= length:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{text[: length - 7].rstrip('-')}-{digest}"


def name_of(request: TaskRequest) -> str:
    """What the task is called: as the user says, or what makes it is."""
    if request.name is not None:
        is_plain = is_policy_text(request.name, LONGEST_GIVEN_NAME) and request.name.isascii()
        if not slug(request.name) or not is_plain:
            raise UsageError(
                f'name "{request.name}": letters, digits and hyphens, such as servo-v0'
            )
        return request.name
    name = request.source.removeprefix(PREFIX).rpartition(":")[2]
    is_plain = name.isascii() and is_policy_text(name, LONGEST_GIVEN_NAME)
    return (name if is_plain else slug(name)) if slug(name) else "task"


def experiment_name(
    request: TaskRequest, sizes: Sizes, episode_steps: int, own_episode_steps: int
) -> str:
    """For example gym-halfcheetah-v5-sac; with a hash behind it where a size is not the default.

    What differs in the task itself keeps its name, and is compiled again.
    """
    default = Sizes(algorithms()[request.algorithm].environments)
    given = [list(request.hidden), dataclasses.asdict(sizes)]
    tail = f"-{request.algorithm}"
    if given != [list(DEFAULT_HIDDEN), dataclasses.asdict(default)] or (
        episode_steps != own_episode_steps
    ):
        text = json.dumps([*given, episode_steps])
        tail += f"-{hashlib.sha256(text.encode()).hexdigest()[:4]}"
    return short(f"gym-{slug(name_of(request))}", LONGEST_NAME - len(tail)) + tail


def channel_text(value: Any, what: str, longest: int) -> str:
    """A name or a unit as policy images hold it."""
    if not is_policy_text(value, longest):
        raise UsageError(
            f"channels: {what} {json.dumps(value, default=str)}: {described(longest)} is needed"
        )
    return str(value)


def channels_of(
    group: str, table: Any, bounds: Sequence[tuple[float, float]], *, may_narrow: bool
) -> tuple[Channel, ...]:
    """The channels of a group ("observations", "actions"): the table's words, the space's ranges.

    A table is a list with an entry for each element: a name, or an object with `name`, `unit` and,
    of an observation, `minimum` and `maximum`.
    """
    entries = [{} for _ in bounds] if table is None else table
    if not isinstance(entries, list) or len(entries) != len(bounds):
        count = len(entries) if isinstance(entries, list) else "no"
        raise UsageError(
            f"channels: {group} has {count} entries, and the task's space {len(bounds)} elements: "
            "give a list with one for each"
        )
    channels = []
    for index, (entry, (low, high)) in enumerate(zip(entries, bounds, strict=True)):
        place = f"{group}[{index}]"
        given = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(given, Mapping):
            raise UsageError(f"channels: {place} is neither a name nor an object")
        known = {"name", "unit"} | ({"minimum", "maximum"} if may_narrow else set())
        for key in given:
            if key not in known:
                ranges = "" if may_narrow else " (an action's range is its space's)"
                raise UsageError(
                    f'channels: {place} has "{key}", and known are {", ".join(sorted(known))}'
                    f"{ranges}"
                )
        name = given.get("name", f"{group.removesuffix('s')}_{index}")
        minimum, maximum = given.get("minimum", low), given.get("maximum", high)
        ends = (minimum, maximum)
        numbers = all(isinstance(end, int | float) and abs(end) <= LARGEST_BOUND for end in ends)
        if not numbers or not minimum < maximum:
            raise UsageError(f"channels: {place} has no range: minimum must be below maximum")
        channels.append(
            Channel(
                channel_text(name, f"the name of {place}", LONGEST_CHANNEL_NAME),
                channel_text(given.get("unit", "1"), f"the unit of {place}", LONGEST_UNIT),
                float(minimum),
                float(maximum),
            )
        )
    return tuple(channels)
