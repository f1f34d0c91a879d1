"""A task from the user's request and its environment: its spaces, rate and length of episodes, and
the names of a table of channels.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from msgspec.structs import asdict
from msgspec.structs import replace as with_fields

from rltools_host.build.catalog import NUMBERS, algorithms
from rltools_host.build.description import (
    LONGEST_NAME,
    MAX_STEP_INTERVAL_US,
    Channel,
    Shape,
    is_policy_text,
)
from rltools_host.documents import Unfit, whole_number
from rltools_host.environments.channels import (
    action_channels,
    channels_of,
    checked_table,
    unbounded,
)
from rltools_host.environments.spaces import (
    DEFAULT_ALGORITHM,
    action_kind,
    action_space,
    box,
    flat_names,
    mask_channels,
    observation_bounds,
    require_one_agent,
    require_seed,
    returns_mask,
    time_limit,
)
from rltools_host.errors import UsageError, near_matches
from rltools_host.runs.task import (
    MAX_ELEMENTS,
    MAX_ENVIRONMENTS,
    MAX_LAYERS,
    PREFIX,
    WIDEST_LAYER,
    IntervalSource,
    Sizes,
    Task,
    short,
    slug,
)

DEFAULT_STEP_INTERVAL_US = 20_000  # 50 Hz
DEFAULT_EPISODE_STEPS = 1000
LONGEST_GIVEN_NAME = 200  # of an environment, which is made shorter
SIZES = ("batch_size", "buffer_size", "n_steps")  # that may be given by their names
DEFAULT_HIDDEN = (64, 64)

MakeEnvironment = Callable[[], Any]
Info = dict[str, Any]  # of Gymnasium's reset and step


def sizes_of(algorithm: str, environments: int, given: Mapping[str, int] | None = None) -> Sizes:
    """Return the given sizes, and the defaults of the others."""
    batch_size = algorithms()[algorithm].batch_size
    usual = {"batch_size": batch_size, "buffer_size": 100_000, "n_steps": 256}
    return Sizes(environments=environments, **{**usual, **(given or {})})


@dataclass(frozen=True)
class TaskRequest:
    """The user's request; None: the task or the algorithm decides."""

    source: str  # gym:ID, or the name of a Python function
    make_env: MakeEnvironment | None = None  # plays in this process, in place of `source`
    name: str | None = None
    algorithm: str | None = None
    hidden: tuple[int, ...] = DEFAULT_HIDDEN
    environments: int | None = None
    episode_steps: int | None = None
    channels: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)  # of batch_size and so on

    def checked_sizes(self) -> Sizes:
        """Return the sizes, or raise UsageError if they cannot be compiled.

        Without an algorithm, those of the algorithm for continuous actions.
        """
        name = self.algorithm or DEFAULT_ALGORITHM[NUMBERS]
        if name not in algorithms():
            known = near_matches(name, algorithms())
            raise UsageError(f'unknown algorithm "{name}": {known}')
        algorithm = algorithms()[name]
        if not 1 <= len(self.hidden) <= MAX_LAYERS or not all(
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
        sizes = sizes_of(name, count, self.sizes)
        for name, value in asdict(sizes).items():
            whole_number(name, value, 1, MAX_ENVIRONMENTS if name == "environments" else 10**7)
        rows = sizes.n_steps * sizes.environments
        if algorithm.has_rollouts and rows % sizes.batch_size:
            raise UsageError(
                f"batch_size={sizes.batch_size} does not divide the {rows} rows of a rollout, "
                f"which are n_steps={sizes.n_steps} times "
                f"environments={sizes.environments}: choose a divisor"
            )
        return sizes


def request_of(task: Task, make_env: MakeEnvironment | None = None) -> TaskRequest:
    """Return the request of a complete task, with the default sizes of batches."""
    return TaskRequest(
        task.source,
        make_env,
        name=task.environment,
        algorithm=task.algorithm,
        hidden=task.hidden,
        environments=task.sizes.environments,
    )


def is_task(name: str | None) -> bool:
    """Return whether the name is that of a Gymnasium task, and no experiment."""
    return name is not None and name.startswith(PREFIX)


def task_of(request: TaskRequest, environment: Any) -> Task:
    """Return the task of a request and its environment; raise UsageError if it cannot be learned.

    Without an algorithm, the default one for such actions is chosen.
    """
    require_one_agent(environment, name_of(request))
    require_seed(environment, name_of(request))
    kind = action_kind(getattr(environment, "action_space", None))
    algorithm = request.algorithm or DEFAULT_ALGORITHM[kind]
    request = replace(request, algorithm=algorithm)
    sizes = request.checked_sizes()
    name = name_of(request)
    observation_space = box(environment, "observation_space", name)
    actions = action_space(environment, name, algorithm)
    metadata = getattr(environment, "metadata", None) or {}
    own_table = metadata.get("channels")  # a number of colors, of some that draw
    table = checked_table(request.channels) or checked_table(
        own_table if isinstance(own_table, Mapping) else {}
    )
    registered = getattr(environment, "spec", None)  # with Gymnasium
    limit = time_limit(environment)
    own_episode_steps = limit or DEFAULT_EPISODE_STEPS
    solved: Any = getattr(registered, "reward_threshold", None)
    has_solved = isinstance(solved, int | float) and math.isfinite(solved)
    episode_steps = checked_steps(
        own_episode_steps if request.episode_steps is None else request.episode_steps
    )
    if limit is not None and episode_steps > limit:
        raise UsageError(
            f"episode_steps={episode_steps}, and {name} ends its episodes after {limit} steps "
            "itself, by a TimeLimit: make it with a longer one, or leave episode_steps out"
        )
    bounds = observation_bounds(observation_space, name)
    stated = table.get("observations", flat_names(environment))
    seen = channels_of("observations", stated, bounds, may_narrow=True)
    chosen, safe = action_channels(actions, table.get("actions"), name)
    masks = masks_given(environment, chosen, seen, name) if kind != NUMBERS else []
    interval_us, interval_from = step_interval_of(table, environment)
    task = Task(
        source=request.source,
        environment=short(name, LONGEST_NAME),
        experiment=experiment_name(request, algorithm, sizes, episode_steps, own_episode_steps),
        algorithm=algorithm,
        hidden=tuple(request.hidden),
        sizes=sizes,
        episode_steps=episode_steps,
        step_interval_us=interval_us,
        observation_shape=tuple(map(int, observation_space.shape)),
        action_shape=tuple(map(int, actions.shape)),
        observations=(*seen, *masks),
        actions=chosen,
        has_masks=bool(masks),
        solved_return=float(solved) if has_solved else None,
        safe_action=safe if any(value is not None for value in safe) else (),
        step_interval_from=interval_from,
        unbounded=unbounded(seen, stated, bounds),
        normalizes=algorithms()[algorithm].takes_normalizer,
    )
    return with_picture(task, metadata.get("picture"), name)


def masks_given(
    environment: Any, actions: Sequence[Channel], seen: Sequence[Channel], name: str
) -> list[Channel]:
    """Return a channel for each choice, if the environment returns masks; it is reset for that."""
    if not returns_mask(environment):
        return []
    found = mask_channels(actions, seen)
    if len(seen) + len(found) > MAX_ELEMENTS:
        raise UsageError(
            f"{name} has {len(seen)} observations and {len(found)} choices that it masks: up to "
            f"{MAX_ELEMENTS} in all are supported"
        )
    return found


def with_picture(task: Task, given: Any, name: str) -> Task:
    """Return the task with the shapes of the environment's metadata: (kind, look, numbers)."""
    if given is None:
        return task
    try:
        rows = [tuple(row) for row in given]
        if not all(len(row) == 3 and all(isinstance(word, str) for word in row) for row in rows):
            raise TypeError
        return with_fields(task, picture=tuple(Shape(*row) for row in rows))
    except TypeError:
        reason = 'it is not a list of shapes such as ("circle", "body", "0, 0, 0.1")'
    except Unfit as error:
        reason = str(error)
    raise UsageError(f'metadata["picture"] of {name}: {reason}')


def name_of(request: TaskRequest) -> str:
    """Return the task's name: the user's, or that of the environment."""
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
    request: TaskRequest,
    algorithm: str,
    sizes: Sizes,
    episode_steps: int,
    own_episode_steps: int,
) -> str:
    """Return for example gym-halfcheetah-v5-sac; with a hash if a size is not the default.

    A task that differs in another way keeps its name, and is compiled again.
    """
    default = sizes_of(algorithm, algorithms()[algorithm].environments)
    given = [list(request.hidden), asdict(sizes)]
    tail = f"-{algorithm}"
    if given != [list(DEFAULT_HIDDEN), asdict(default)] or (episode_steps != own_episode_steps):
        text = json.dumps([*given, episode_steps])
        tail += f"-{hashlib.sha256(text.encode()).hexdigest()[:4]}"
    return short(f"gym-{slug(name_of(request))}", LONGEST_NAME - len(tail)) + tail


def checked_steps(steps: int) -> int:
    if not 1 <= steps < 2**31:
        raise UsageError(f"episode_steps={steps}: choose a number from 1 to {2**31 - 1}")
    return steps


def step_interval_of(table: Mapping[str, Any], environment: Any) -> tuple[int, IntervalSource]:
    """Return the step interval in µs and its source: the table, else the simulation's `dt`, else
    its frame rate."""
    given = table.get("step_interval_us")
    source: IntervalSource = "channels"
    if given is None:
        unwrapped = getattr(environment, "unwrapped", environment)
        metadata = getattr(environment, "metadata", None) or {}
        seconds, rate = positive(getattr(unwrapped, "dt", None)), metadata.get("render_fps")
        source = "dt" if seconds else "render_fps" if positive(rate) else "default"
        frame_s = 1.0 / (positive(rate) or 1e6 / DEFAULT_STEP_INTERVAL_US)
        given = max(round((seconds or frame_s) * 1e6), 1)
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise UsageError(
            f"channels: step_interval_us is {given!r}, "
            f"not a whole number from 1 to {MAX_STEP_INTERVAL_US:,}"
        )
    if given > MAX_STEP_INTERVAL_US:
        what = "step_interval_us" if source == "channels" else f"the environment's {source}"
        raise UsageError(
            f"channels: {what} says that a step takes {given * 1e-6:g} s, and a policy's takes "
            f"{MAX_STEP_INTERVAL_US // 10**6} s at most: state step_interval_us as "
            f"{MAX_STEP_INTERVAL_US}, and ask the exported policy (--to c) by a clock of your own"
        )
    return given, source


def positive(value: Any) -> float:
    """Return the number, or 0 if it is none or not positive."""
    is_number = isinstance(value, Real)
    return float(value) if is_number and math.isfinite(value) and value > 0 else 0.0
