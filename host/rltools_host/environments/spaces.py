"""An environment's spaces, as far as they can be learnt, and `info["action_mask"]` where its
actions are choices: 1 for each choice that it allows, and 0 for the others, (choices) in whole
numbers, at each reset and step. The choices of a MultiDiscrete follow one another. (Gymnasium's
Taxi has one; PettingZoo's form is the same.)"""

from __future__ import annotations

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
)
from rltools_host.documents import LARGEST_BOUND
from rltools_host.errors import UsageError
from rltools_host.runs.task import MOST_ELEMENTS, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What learns actions of these kinds where nobody says.
DEFAULT_ALGORITHM = {NUMBERS: "sac", CHOICE: "ppo", CHOICES: "ppo"}
# An end of the range of an observation that has none: so far that what lies outside has diverged.
WIDE = 1e6


def box(environment: Any, attribute: str, name: str) -> Any:
    """The space, which must be one of numbers."""
    from gymnasium import spaces

    space = getattr(environment, attribute, None)
    what = attribute.replace("_", " ")
    if space is None:
        raise UsageError(f"{name} has no {what}: set it to a gymnasium.spaces.Box")
    if not isinstance(space, spaces.Box):
        kind = type(space).__name__
        remedy = (
            "actions must be a Box, a Discrete or a MultiDiscrete"
            if attribute == "action_space"
            else "wrap it into a Box, with gymnasium.wrappers.FlattenObservation for example"
        )
        raise UsageError(
            f"{name} has a {kind} as its {what}, which cannot be learnt here: {remedy}"
        )
    elements = math.prod(space.shape)
    if not 1 <= elements <= MOST_ELEMENTS:
        raise UsageError(
            f"{name} has {elements} elements in its {what}: from 1 to {MOST_ELEMENTS} can be learnt"
        )
    return space


def action_kind(space: Any) -> str:
    """NUMBERS, one CHOICE or several CHOICES."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return CHOICE
    if isinstance(space, spaces.MultiDiscrete):
        return CHOICES if space.nvec.size > 1 else CHOICE
    return NUMBERS


def action_space(environment: Any, name: str, algorithm: str) -> Any:
    """The space of actions, which the algorithm must learn."""
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
                    f"{name} has an action of {count} choices: from 2 to {MAX_CHOICES} can be "
                    "learnt"
                )
    return space


def choice_counts(space: Any) -> list[int]:
    """How many each action of a Discrete or a MultiDiscrete chooses from."""
    counts = getattr(space, "nvec", None)
    return [int(space.n)] if counts is None else [int(count) for count in counts.ravel()]


class Bounds(NamedTuple):
    """The range of an element, and which of its ends its space has."""

    minimum: float
    maximum: float
    has_minimum: bool = True
    has_maximum: bool = True


def observation_bounds(space: Any, name: str) -> list[Bounds]:
    """The space's own; an end that it has not is ±WIDE, or as far beyond the other end. A single
    number has a range about it."""
    import numpy as np  # which gave the space

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
    """The nearest number of 32 bits, which contracts have."""
    nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    return nearest


def action_bounds(space: Any, name: str) -> list[tuple[float, float]]:
    bounds = []
    ends = (space.low.astype("float32").ravel(), space.high.astype("float32").ravel())
    for index, (low, high) in enumerate(zip(*ends, strict=True)):
        minimum, maximum = float(low), float(high)
        if not math.isfinite(minimum) or not math.isfinite(maximum):
            raise UsageError(
                f"{name} has no bounds for action {index} ({low:g} to {high:g}): give its Box a "
                "finite low and high, with gymnasium.wrappers.RescaleAction for example"
            )
        if not 0.0 < maximum - minimum <= LARGEST_FLOAT32:
            raise UsageError(f"{name} has no range for action {index}: it is {low:g} to {high:g}")
        bounds.append((minimum, maximum))
    return bounds


KEY = "action_mask"


class MaskFault(Exception):
    """What a mask may not be: a sentence."""


def gives_masks(environment: Any) -> bool:
    """Whether a reset does. One that raises says nothing here."""
    try:
        _, info = environment.reset(seed=0)
    except Exception:
        return False
    return isinstance(info, Mapping) and info.get(KEY) is not None


def mask_channels(actions: Sequence[Channel], observations: Sequence[Channel]) -> list[Channel]:
    """An observation for each choice, by the name that makes it a mask in policies."""
    taken = {channel.name for channel in observations}
    found = []
    for action in actions:
        for choice in action.choices:
            name = f"{action.name}:{choice}"
            if len(name.encode()) > LONGEST_CHANNEL_NAME:
                raise UsageError(
                    f'the environment gives info["{KEY}"], and the mask of {choice} is then called '
                    f'"{name}", which has more than {LONGEST_CHANNEL_NAME} bytes: give the '
                    "action, or its choices, shorter names by --channels"
                )
            if name in taken:
                raise UsageError(
                    f'the environment gives info["{KEY}"], and its observation {name} is a mask, '
                    "too: leave out one of the two"
                )
            taken.add(name)
            found.append(Channel(name, "1", 0.0, 1.0))
    return found


def mask_of(info: Any, task: Task, where: str, *, ends: bool = False) -> NDArray[np.float32]:
    """The mask (mask_count) that reset or step gave; where an episode ends it may allow nothing.

    MaskFault: it is missing, or none, or there is one where none was.
    """
    import numpy as np  # training does not load it

    given = info.get(KEY) if isinstance(info, Mapping) else None
    if not task.has_masks:
        if given is not None and any(action.choices for action in task.actions):
            raise MaskFault(
                f'{where} gave info["{KEY}"], and the first reset did not: give it at each reset '
                "and step, or never"
            )
        return np.zeros(0, np.float32)
    if given is None:
        raise MaskFault(
            f'{where} gave no info["{KEY}"], and the first reset did: give it at each reset and '
            "step"
        )
    mask = np.asarray(given)
    if mask.shape != (task.mask_count,) or mask.dtype.kind not in "iub":
        raise MaskFault(
            f'{where} gave info["{KEY}"] of shape {mask.shape} and type {mask.dtype}, and the task '
            f"has {task.mask_count} choices: give ({task.mask_count},) in whole numbers, 1 for "
            "each that is allowed"
        )
    if not ((mask == 0) | (mask == 1)).all():
        raise MaskFault(f'{where} gave info["{KEY}"] with a number that is neither 0 nor 1')
    first = 0
    for action in task.actions:
        part = mask[first : first + len(action.choices)]
        first += len(action.choices)
        if not ends and not part.any():
            raise MaskFault(f'{where} gave info["{KEY}"] that allows no choice of {action.name}')
    return mask.astype(np.float32)


def with_mask(
    seen: NDArray[np.float32], info: Any, task: Task, where: str, *, ends: bool = False
) -> NDArray[np.float32]:
    """The observation, of a task with masks with the mask behind it. MaskFault: as of mask_of()."""
    import numpy as np  # training does not load it

    if not task.has_masks and type(info) is dict and KEY not in info:
        return seen  # at most steps
    mask = mask_of(info, task, where, ends=ends)
    return np.concatenate([seen, mask]) if task.has_masks else seen


def nearest_allowed(
    action: NDArray[np.float32], mask: NDArray[np.float32], task: Task
) -> NDArray[np.float32]:
    """Each choice, or the nearest one that the mask allows; of none allowed, itself."""
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
