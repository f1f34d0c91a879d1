"""The spaces of an environment that can be learned, and `info["action_mask"]` of discrete actions.

A mask has 1 for each choice that is allowed, and 0 for the others, (choices) in whole numbers, at
each reset and step. The choices of a MultiDiscrete follow one another. (Gymnasium's Taxi has one;
PettingZoo's form is the same.)
"""

from __future__ import annotations

import inspect
import math
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rltools_host.build.catalog import CHOICE, CHOICES, NUMBERS, algorithms
from rltools_host.build.description import (
    LARGEST_FLOAT32,
    LONGEST_CHANNEL_NAME,
    MAX_CHOICES,
    Channel,
    is_policy_text,
)
from rltools_host.documents import LARGEST_BOUND
from rltools_host.errors import UsageError
from rltools_host.runs.task import MAX_ELEMENTS, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What learns actions of these kinds where nobody says.
DEFAULT_ALGORITHM = {NUMBERS: "sac", CHOICE: "ppo", CHOICES: "ppo"}
# An end of the range of an observation that has none: so far that what lies outside has diverged.
WIDE = 1e6
MAX_WRAPPERS = 50  # that are looked through


def require_one_agent(environment: Any, name: str) -> None:
    """Raise UsageError for what is no environment of Gymnasium's with one agent."""
    from gymnasium.vector import VectorEnv

    if isinstance(environment, VectorEnv):
        raise UsageError(
            f"{name} is a VectorEnv of {environment.num_envs} environments: name what makes one of "
            "them, and --set environments=N steps as many at once"
        )
    if hasattr(environment, "possible_agents") or callable(
        getattr(environment, "observation_space", None)
    ):
        raise UsageError(
            f"{name} has several agents, as PettingZoo's environments, and a policy here is of "
            "one: write a gymnasium.Env of one agent, in which the others are a part of its world"
        )
    for attribute in ("observation_space", "action_space"):
        if type(getattr(environment, attribute, None)).__module__.partition(".")[0] == "gym":
            raise UsageError(
                f"{name} is an environment of the old package gym: derive it from gymnasium.Env, "
                f"with spaces of gymnasium.spaces; {INTERFACE}"
            )


INTERFACE = (
    "reset(*, seed=None, options=None) returns (observation, info), and step(action) returns "
    "(observation, reward, terminated, truncated, info)"
)


def require_seed(environment: Any, name: str) -> None:
    """Raise UsageError if reset takes no seed, as in Gym before 0.26."""
    reset = getattr(getattr(environment, "unwrapped", environment), "reset", None)
    if not callable(reset):
        return
    try:
        taken = inspect.signature(reset).parameters
    except (TypeError, ValueError):  # of a class in C
        return
    kinds = [parameter.kind for parameter in taken.values()]
    if "seed" in taken or inspect.Parameter.VAR_KEYWORD in kinds:
        return
    raise UsageError(f"{name} has a reset without a seed, as Gym had it before 0.26: {INTERFACE}")


def time_limit(environment: Any) -> int | None:
    """Return the steps after which Gymnasium truncates the environment's episodes; None if it does
    not."""
    from gymnasium.wrappers import TimeLimit

    steps: Any = getattr(getattr(environment, "spec", None), "max_episode_steps", None)
    for within in chain(environment):
        if isinstance(within, TimeLimit):
            steps = within._max_episode_steps
    return int(steps) if steps else None


def chain(environment: Any) -> list[Any]:
    """Return the wrappers, from the outermost on, and the environment itself."""
    found = [environment]
    while len(found) <= MAX_WRAPPERS and hasattr(found[-1], "env"):
        found.append(found[-1].env)
    return found


def without_size(space: Any, path: str = "") -> tuple[str, Any] | None:
    """Return the part of a space that is no fixed number of numbers, and where in the space it
    lies; None if there is none."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces
        pairs = parts.items() if isinstance(parts, Mapping) else enumerate(parts)
        found = (without_size(part, f"{path}[{key!r}]") for key, part in pairs)
        return next((each for each in found if each is not None), None)
    sized = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Text)
    return None if isinstance(space, sized) else (path, space)


def flattened(environment: Any) -> Any:
    """Return the environment with observations that are a Box: those of a Dict, a Tuple or a
    Discrete one after the other, as Gymnasium flattens them. One that needs it not, or that cannot
    be flattened, is returned as it is."""
    from gymnasium import Env, spaces
    from gymnasium.wrappers import FlattenObservation

    space = getattr(environment, "observation_space", None)
    is_other = isinstance(space, spaces.Space) and not isinstance(space, spaces.Box)
    if not is_other or not isinstance(environment, Env) or without_size(space) is not None:
        return environment
    return FlattenObservation(environment)


def flat_names(environment: Any) -> list[str] | None:
    """Return a name for each flattened observation, by the keys of its space: position_0. None if
    it was not flattened, or if policy images cannot hold the names."""
    from gymnasium import spaces
    from gymnasium.wrappers import FlattenObservation

    if not isinstance(environment, FlattenObservation):
        return None
    if not isinstance(environment.env.observation_space, spaces.Dict | spaces.Tuple):
        return None
    names = names_within(environment.env.observation_space, "")
    fit = all(is_policy_text(name, LONGEST_CHANNEL_NAME) for name in names)
    return names if fit and len({*names}) == len(names) else None


def names_within(space: Any, name: str) -> list[str]:
    from gymnasium import spaces
    from gymnasium.spaces.utils import flatdim

    if isinstance(space, spaces.Dict):
        parts = [(str(key), part) for key, part in space.spaces.items()]
    elif isinstance(space, spaces.Tuple):
        parts = [
            (str(i) if name else f"observation_{i}", part) for i, part in enumerate(space.spaces)
        ]
    else:
        count = flatdim(space)
        return [name] if count == 1 else [f"{name}_{i}" for i in range(count)]
    return [
        each for key, part in parts for each in names_within(part, f"{name}_{key}" if name else key)
    ]


def box(environment: Any, attribute: str, name: str) -> Any:
    """Return the space of this attribute; raise UsageError unless it is a Box of a learnable
    size."""
    from gymnasium import spaces

    space = getattr(environment, attribute, None)
    what = attribute.replace("_", " ")
    if space is None:
        raise UsageError(f"{name} has no {what}: set it to a gymnasium.spaces.Box")
    if not isinstance(space, spaces.Box):
        kind = type(space).__name__
        remedy = "actions must be a Box, a Discrete or a MultiDiscrete"
        if attribute == "observation_space":
            remedy = "derive the environment from gymnasium.Env, and make it a Box"
            if isinstance(space, spaces.Space) and (found := without_size(space)) is not None:
                path, part = found
                kind = type(part).__name__
                what += f" at {path}" if path else ""
                remedy = (
                    "it has no fixed number of numbers: observe a Box of a fixed length instead, "
                    "filled up with zeros, or leave it out (gymnasium.wrappers.FilterObservation)"
                )
        raise UsageError(f"{name} has a {kind} as its {what}, which is not supported: {remedy}")
    elements = math.prod(space.shape)
    if not 1 <= elements <= MAX_ELEMENTS:
        raise UsageError(
            f"{name} has {elements} elements in its {what}: from 1 to {MAX_ELEMENTS} are supported"
        )
    return space


def action_kind(space: Any) -> str:
    """Return NUMBERS, one CHOICE or several CHOICES."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return CHOICE
    if isinstance(space, spaces.MultiDiscrete):
        return CHOICES if space.nvec.size > 1 else CHOICE
    return NUMBERS


def action_space(environment: Any, name: str, algorithm: str) -> Any:
    """Return the space of actions; raise UsageError unless the algorithm learns it."""
    space = getattr(environment, "action_space", None)
    wanted = action_kind(space)
    if wanted == NUMBERS:
        space = box(environment, "action_space", name)
    learning = [known.name for known in algorithms().values() if wanted in known.actions]
    if algorithm not in learning:
        *others, last = learning
        choose = f"{', '.join(others)} or {last}" if others else last
        raise UsageError(
            f"{name} has a {type(space).__name__} as its action space, which {algorithm} does not "
            f"learn: choose the algorithm {choose}"
        )
    if wanted != NUMBERS:
        for count in choice_counts(space):
            if not 2 <= count <= MAX_CHOICES:
                raise UsageError(
                    f"{name} has an action of {count} choices: from 2 to {MAX_CHOICES} are "
                    "supported"
                )
    return space


def choice_counts(space: Any) -> list[int]:
    """Return the number of choices of each action of a Discrete or a MultiDiscrete."""
    counts = getattr(space, "nvec", None)
    return [int(space.n)] if counts is None else [int(count) for count in counts.ravel()]


class Bounds(NamedTuple):
    """The range of an element, and which of its ends its space has."""

    minimum: float
    maximum: float
    has_minimum: bool = True
    has_maximum: bool = True


def observation_bounds(space: Any, name: str) -> list[Bounds]:
    """Return the space's bounds; an end that it lacks is ±WIDE, or as far beyond the other end.

    A single number has a range about it.
    """
    import numpy as np  # loaded with the space

    # Many a space has the largest number of its type where it means infinity.
    endless = {math.inf, LARGEST_FLOAT32}
    if space.dtype.kind == "f":
        endless.add(float(np.finfo(space.dtype).max))
    bounds = []
    for index, ends in enumerate(zip(space.low.ravel(), space.high.ravel(), strict=True)):
        low, high = map(float, ends)
        has_low, has_high = abs(low) not in endless, abs(high) not in endless
        for end in (low if has_low else 0.0, high if has_high else 0.0):
            if not abs(end) <= LARGEST_BOUND:
                raise UsageError(
                    f"{name} has the bound {end:g} of observation {index}, which is beyond "
                    f"{LARGEST_BOUND:g}: scale the observation down, or leave it without a bound"
                )
        if not has_low:
            low = min(-WIDE, high - max(abs(high), WIDE)) if has_high else -WIDE
        if not has_high:
            high = max(WIDE, low + max(abs(low), WIDE)) if has_low else WIDE
        if as_float32(low) >= as_float32(high):
            half = max(1.0, 1e-6 * abs(low))
            low, high = low - half, high + half
        bounds.append(Bounds(low, high, has_low, has_high))
    return bounds


def as_float32(value: float) -> float:
    """Return the nearest number of 32 bits, which contracts and boards have; OverflowError if there
    is none."""
    nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    return nearest


def action_bounds(space: Any, name: str) -> list[tuple[float, float]]:
    bounds = []
    ends = (space.low.astype("float32").ravel(), space.high.astype("float32").ravel())
    for index, (low, high) in enumerate(zip(*ends, strict=True)):
        minimum, maximum = float(low), float(high)
        if not math.isfinite(minimum) or not math.isfinite(maximum):
            raise UsageError(
                f"{name} has no bounds for action {index} ({low:g} to {high:g}): set a "
                "finite low and high of its Box, or wrap it: gymnasium.wrappers.TransformAction("
                "env, lambda action: action, gymnasium.spaces.Box(LOW, HIGH, "
                f"{tuple(map(int, space.shape))}))"
            )
        if not 0.0 < maximum - minimum <= LARGEST_FLOAT32:
            raise UsageError(f"{name} has no range for action {index}: it is {low:g} to {high:g}")
        bounds.append((minimum, maximum))
    return bounds


KEY = "action_mask"


class EnvironmentFault(Exception):
    """A fault of an environment: a value that none may return."""


class InterfaceFault(EnvironmentFault):
    """A fault that every later call would have, too: of the interface, or of a mask."""


def returns_mask(environment: Any) -> bool:
    """Return whether a reset returns a mask. A reset that raises counts as none."""
    try:
        _, info = environment.reset(seed=0)
    except Exception:
        return False
    return isinstance(info, Mapping) and info.get(KEY) is not None


def mask_channels(actions: Sequence[Channel], observations: Sequence[Channel]) -> list[Channel]:
    """Return an observation for each choice, by the name that makes it a mask in policies."""
    taken = {channel.name for channel in observations}
    found = []
    for action in actions:
        for choice in action.choices:
            name = f"{action.name}:{choice}"
            if len(name.encode()) > LONGEST_CHANNEL_NAME:
                raise UsageError(
                    f'the environment returns info["{KEY}"], and the mask of {choice} is then '
                    f'called "{name}", which has more than {LONGEST_CHANNEL_NAME} bytes: choose '
                    "shorter names of the action, or its choices, by --channels"
                )
            if name in taken:
                raise UsageError(
                    f'the environment returns info["{KEY}"], and its observation {name} is a mask, '
                    "too: leave out one of the two"
                )
            taken.add(name)
            found.append(Channel(name, "1", 0.0, 1.0))
    return found


def mask_of(info: Any, task: Task, where: str, *, ends: bool = False) -> NDArray[np.float32]:
    """Return the mask (mask_count) of a reset or step; at the end of an episode it may allow
    nothing.

    Raises InterfaceFault if it is missing or invalid, or if there is one that was not there before.
    """
    import numpy as np  # training does not load it

    given = info.get(KEY) if isinstance(info, Mapping) else None
    if not task.has_masks:
        if given is not None and any(action.choices for action in task.actions):
            raise InterfaceFault(
                f'{where} returned info["{KEY}"], and the first reset did not: return it from each '
                "reset and step, or never"
            )
        return np.zeros(0, np.float32)
    if given is None:
        raise InterfaceFault(
            f'{where} returned no info["{KEY}"], and the first reset did: return it from each '
            "reset and step"
        )
    mask = np.asarray(given)
    is_mask = mask.shape == (task.mask_count,) and mask.dtype.kind in "iub"
    if not is_mask or not ((mask == 0) | (mask == 1)).all():
        raise InterfaceFault(
            f'{where} returned info["{KEY}"] of shape {mask.shape} and type {mask.dtype}, and the '
            f"task has {task.mask_count} choices: return ({task.mask_count},) whole numbers, 1 for "
            "each that is allowed, 0 for the others"
        )
    first = 0
    for action in task.actions:
        part = mask[first : first + len(action.choices)]
        first += len(action.choices)
        if not ends and not part.any():
            raise InterfaceFault(
                f'{where} returned info["{KEY}"] that allows no choice of {action.name}'
            )
    return mask.astype(np.float32)


def with_mask(
    seen: NDArray[np.float32], info: Any, task: Task, where: str, *, ends: bool = False
) -> NDArray[np.float32]:
    """Return the observation, of a task with masks followed by the mask. Raises InterfaceFault as
    mask_of()."""
    import numpy as np  # training does not load it

    if not task.has_masks and type(info) is dict and KEY not in info:
        return seen  # at most steps
    mask = mask_of(info, task, where, ends=ends)
    return np.concatenate([seen, mask]) if task.has_masks else seen


def nearest_allowed(
    action: NDArray[np.float32], mask: NDArray[np.float32], task: Task
) -> NDArray[np.float32]:
    """Return each choice, or the nearest one that the mask allows; the choice itself if none is."""
    import numpy as np  # training does not load it

    if not task.has_masks:
        return action
    chosen, first = action.copy(), 0
    for index, channel in enumerate(task.actions):
        count = len(channel.choices)
        order = np.argsort(np.abs(np.arange(count) - int(action[index])), kind="stable")
        allowed = mask[first + order] > 0
        chosen[index] = order[int(np.argmax(allowed))]
        first += count
    return chosen
