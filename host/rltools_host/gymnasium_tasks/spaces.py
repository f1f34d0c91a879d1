"""An environment's spaces, as far as they can be learnt."""

from __future__ import annotations

import math
from typing import Any

from rltools_host.build.catalogue import CHOICE, CHOICES, NUMBERS, algorithms
from rltools_host.errors import UsageError
from rltools_host.runs.policy_file import MOST_CHOICES
from rltools_host.runs.task import MOST_ELEMENTS

# What learns actions of these kinds where nobody says.
DEFAULT_ALGORITHM = {NUMBERS: "sac", CHOICE: "ppo", CHOICES: "ppo"}
# The range of an observation that has no bounds: so wide that what lies outside has diverged.
WIDE = 1e6
LARGEST_FLOAT32 = 3.4028234663852886e38


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
            if not 2 <= count <= MOST_CHOICES:
                raise UsageError(
                    f"{name} has an action of {count} choices: from 2 to {MOST_CHOICES} can be "
                    "learnt"
                )
    return space


def choice_counts(space: Any) -> list[int]:
    """How many each action of a Discrete or a MultiDiscrete chooses from."""
    counts = getattr(space, "nvec", None)
    return [int(space.n)] if counts is None else [int(count) for count in counts.ravel()]


def observation_bounds(space: Any) -> list[tuple[float, float]]:
    """The space's own where they are a range, else wide ones."""
    bounds = []
    for low, high in zip(space.low.ravel(), space.high.ravel(), strict=True):
        minimum, maximum = max(float(low), -WIDE), min(float(high), WIDE)
        if minimum >= maximum:  # the space is beyond the wide range, or a single number
            minimum, maximum = float(low) - 1.0, float(high) + 1.0
        bounds.append((minimum, maximum))
    return bounds


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
