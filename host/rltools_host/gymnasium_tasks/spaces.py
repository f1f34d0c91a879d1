"""What an environment says of itself: its spaces, its rate, the length of its episodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rltools_host.errors import UsageError
from rltools_host.gymnasium_tasks.task import (
    DEFAULT_EPISODE_STEPS,
    Task,
    TaskRequest,
    channels_of,
    experiment_name,
    name_of,
    short,
)
from rltools_host.runs.policy_file import MOST_STEP_INTERVAL_US
from rltools_host.runs.policy_text import LONGEST_NAME
from rltools_host.runs.schema import MOST_ELEMENTS

# The range of an observation that has no bounds: so wide that what lies outside has diverged.
WIDE = 1e6
DEFAULT_STEP_INTERVAL_US = 20_000  # 50 Hz
TABLE_KEYS = ("observations", "actions", "step_interval_us")


def task_of(request: TaskRequest, environment: Any) -> Task:
    """The task, from what was asked for and an environment of it; refuses what cannot be learnt."""
    sizes = request.checked_sizes()
    name = name_of(request)
    observation_space = box(environment, "observation_space", name)
    action_space = box(environment, "action_space", name)
    table = checked_table(request.channels)
    own_episode_steps = episode_steps_of(environment)
    episode_steps = checked_steps(
        own_episode_steps if request.episode_steps is None else request.episode_steps
    )
    return Task(
        source=request.source,
        environment=short(name, LONGEST_NAME),
        experiment=experiment_name(request, sizes, episode_steps, own_episode_steps),
        algorithm=request.algorithm,
        hidden=tuple(request.hidden),
        sizes=sizes,
        episode_steps=episode_steps,
        step_interval_us=step_interval_us_of(table, environment),
        observation_shape=tuple(map(int, observation_space.shape)),
        action_shape=tuple(map(int, action_space.shape)),
        observations=channels_of(
            "observations",
            table.get("observations"),
            observation_bounds(observation_space),
            may_narrow=True,
        ),
        actions=channels_of(
            "actions", table.get("actions"), action_bounds(action_space, name), may_narrow=False
        ),
        solved_return=solved_return_of(environment),
    )


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
            "actions must be continuous, a Box"
            if attribute == "action_space"
            else "wrap it into a Box, with gymnasium.wrappers.FlattenObservation for example"
        )
        raise UsageError(
            f"{name} has a {kind} as its {what}, which cannot be learnt here: {remedy}"
        )
    elements = int(np.prod(space.shape, dtype=np.int64))
    if not 1 <= elements <= MOST_ELEMENTS:
        raise UsageError(
            f"{name} has {elements} elements in its {what}: from 1 to {MOST_ELEMENTS} can be learnt"
        )
    return space


def observation_bounds(space: Any) -> list[tuple[float, float]]:
    """The space's own where they are a range, else wide ones."""
    bounds = []
    for low, high in zip(np.ravel(space.low), np.ravel(space.high), strict=True):
        minimum, maximum = max(float(low), -WIDE), min(float(high), WIDE)
        if minimum >= maximum:  # the space is beyond the wide range, or a single number
            minimum, maximum = float(low) - 1.0, float(high) + 1.0
        bounds.append((minimum, maximum))
    return bounds


def action_bounds(space: Any, name: str) -> list[tuple[float, float]]:
    bounds = []
    for index, (low, high) in enumerate(
        zip(np.ravel(space.low), np.ravel(space.high), strict=True)
    ):
        minimum, maximum = float(np.float32(low)), float(np.float32(high))
        if not math.isfinite(minimum) or not math.isfinite(maximum):
            raise UsageError(
                f"{name} has no bounds for action {index} ({low:g} to {high:g}): give its Box a "
                "finite low and high, with gymnasium.wrappers.RescaleAction for example"
            )
        if not minimum < maximum or not math.isfinite(float(np.float32(maximum - minimum))):
            raise UsageError(f"{name} has no range for action {index}: it is {low:g} to {high:g}")
        bounds.append((minimum, maximum))
    return bounds


def checked_table(channels: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(channels, Mapping):
        raise UsageError(f"channels: an object with {', '.join(TABLE_KEYS)} is needed")
    for key in channels:
        if key not in TABLE_KEYS:
            raise UsageError(
                f'channels: unknown key "{key}", and known are {", ".join(TABLE_KEYS)}'
            )
    return channels


def episode_steps_of(environment: Any) -> int:
    """As registered with Gymnasium, else a thousand."""
    limit = getattr(getattr(environment, "spec", None), "max_episode_steps", None)
    return int(limit or DEFAULT_EPISODE_STEPS)


def checked_steps(steps: int) -> int:
    if not 1 <= steps < 2**31:
        raise UsageError(f"episode_steps={steps}: choose a number from 1 to {2**31 - 1}")
    return steps


def step_interval_us_of(table: Mapping[str, Any], environment: Any) -> int:
    """As the table says, else the simulation's `dt`, else a frame of its pictures."""
    given = table.get("step_interval_us")
    if given is None:
        unwrapped = getattr(environment, "unwrapped", environment)
        metadata = getattr(environment, "metadata", None) or {}
        seconds, rate = positive(getattr(unwrapped, "dt", None)), metadata.get("render_fps")
        frame_s = 1.0 / (positive(rate) or 1e6 / DEFAULT_STEP_INTERVAL_US)
        given = round((seconds or frame_s) * 1e6)
    if not isinstance(given, int) or not 1 <= given <= MOST_STEP_INTERVAL_US:
        raise UsageError(
            f"channels: step_interval_us is {given!r}, "
            f"not a whole number from 1 to {MOST_STEP_INTERVAL_US:,}"
        )
    return given


def positive(value: Any) -> float:
    """The number, or 0 where it is none or not above."""
    is_number = isinstance(value, int | float | np.number)
    return float(value) if is_number and math.isfinite(value) and value > 0 else 0.0


def solved_return_of(environment: Any) -> float | None:
    value = getattr(getattr(environment, "spec", None), "reward_threshold", None)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
