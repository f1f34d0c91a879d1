"""The table of channels that a user writes for a task, or the environment has: names, units,
ranges, safe actions (docs/gymnasium_tasks.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rltools_host.build.description import (
    LONGEST_CHANNEL_NAME,
    LONGEST_UNIT,
    Channel,
    described,
    is_policy_text,
    safe_value,
    usual_safe_value,
)
from rltools_host.documents import LARGEST_BOUND
from rltools_host.environments.spaces import (
    WIDE,
    Bounds,
    action_bounds,
    as_float32,
    choice_counts,
)
from rltools_host.errors import UsageError
from rltools_host.runs.task import INTERVAL_SOURCES, Task

TABLE_KEYS = ("observations", "actions", "step_interval_us")
SafeAction = tuple[float | None, ...]  # of each action; null where nobody states it


def checked_table(channels: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(channels, Mapping):
        raise UsageError(f"channels: an object with {', '.join(TABLE_KEYS)} is needed")
    for key in channels:
        if key not in TABLE_KEYS:
            raise UsageError(
                f'channels: unknown key "{key}", and known are {", ".join(TABLE_KEYS)}'
            )
    return channels


def unbounded(channels: Sequence[Channel], table: Any, bounds: Sequence[Bounds]) -> tuple[str, ...]:
    """Return the names of the channels with an end that neither the space has nor the table."""
    entries = [each if isinstance(each, Mapping) else {} for each in table or [{}] * len(bounds)]
    return tuple(
        channel.name
        for channel, entry, bound in zip(channels, entries, bounds, strict=True)
        if not (bound.has_minimum or "minimum" in entry)
        or not (bound.has_maximum or "maximum" in entry)
    )


def action_channels(space: Any, table: Any, name: str) -> tuple[tuple[Channel, ...], SafeAction]:
    """Return the channels of the actions, and the safe action of each as the table says.

    Numbers have the space's range; choices have the names of the table, or else their numbers.
    """
    entries = [
        dict(entry) if isinstance(entry, Mapping) else entry
        for entry in (table if isinstance(table, list) else [])
    ]

    def taken(key: str) -> list[Any]:
        return [entry.pop(key, None) if isinstance(entry, dict) else None for entry in entries]

    safe = taken("safe")
    if hasattr(space, "low"):
        bounds = action_bounds(space, name)
        channels = channels_of("actions", entries or table, bounds, may_narrow=False)
        return channels, safe_actions(channels, safe)
    import numpy as np  # `rlt train --help` is without

    counts = choice_counts(space)
    choices = taken("choices")
    bounds = [(0.0, count - 1.0) for count in counts]
    channels = channels_of("actions", entries or table, bounds, may_narrow=False)
    found = []
    for index, (channel, count) in enumerate(zip(channels, counts, strict=True)):
        names = choices[index] if choices and choices[index] is not None else None
        if names is None:
            first = int(np.ravel(space.start)[index])
            names = [str(first + number) for number in range(count)]
        found.append(replace(channel, unit=choice_unit(names, count, f"actions[{index}]")))
    return tuple(found), safe_actions(found, safe)


def safe_actions(channels: Sequence[Channel], given: Sequence[Any]) -> SafeAction:
    """Return the table's `safe` of each action: a number in its range, or a choice by its name or,
    counted from 0, by its number."""
    values = given or [None] * len(channels)
    try:
        return tuple(
            None if value is None else safe_value(channel, value)
            for channel, value in zip(channels, values, strict=True)
        )
    except UsageError as error:
        raise UsageError(f"channels: {error}") from None


def choice_unit(names: Any, count: int, label: str) -> str:
    """Return the unit of a choice's channel: the names of the choices."""
    if not isinstance(names, list) or len(names) != count:
        raise UsageError(
            f"channels: {label} chooses from {count}, give a list of as many names as its choices"
        )
    texts = [channel_text(name, f"a choice of {label}", LONGEST_CHANNEL_NAME) for name in names]
    if any("|" in text for text in texts) or len({*texts}) < count:
        raise UsageError(f"channels: {label} has a name with a bar, or one twice, as its choices")
    return "|".join(texts)


def channel_text(value: Any, what: str, longest: int) -> str:
    """Return a name or a unit, if policy images can hold it."""
    if not is_policy_text(value, longest):
        raise UsageError(
            f"channels: {what} {json.dumps(value, default=str)}: {described(longest)} is needed"
        )
    return str(value)


def unit_text(value: Any, what: str) -> str:
    """Return a unit without a bar, which separates the names of choices."""
    text = channel_text(value, what, LONGEST_UNIT)
    if "|" in text:
        raise UsageError(f"channels: {what} {json.dumps(text)} has a bar: leave it out")
    return text


def channels_of(
    group: str, table: Any, bounds: Sequence[Bounds | tuple[float, float]], *, may_narrow: bool
) -> tuple[Channel, ...]:
    """Return the channels of a group ("observations", "actions"): names and units of the table,
    ranges of the space.

    A table is a list with an entry for each element: a name, or an object with `name`, `unit` and,
    for an observation, `minimum` and `maximum`; the caller has taken an action's `safe`.
    """
    entries = [{} for _ in bounds] if table is None else table
    if not isinstance(entries, list) or len(entries) != len(bounds):
        count = len(entries) if isinstance(entries, list) else "no"
        raise UsageError(
            f"channels: {group} has {count} entries, and the task's space {len(bounds)} elements: "
            "give a list with one for each"
        )
    channels = []
    for index, (entry, (low, high, *_)) in enumerate(zip(entries, bounds, strict=True)):
        label = f"{group}[{index}]"
        given = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(given, Mapping):
            raise UsageError(f"channels: {label} is neither a name nor an object")
        known = {"name", "unit"} | ({"minimum", "maximum"} if may_narrow else {"safe"})
        for key in given:
            if key not in known:
                ranges = "" if may_narrow else " (an action's range is its space's)"
                raise UsageError(
                    f'channels: {label} has "{key}", and known are {", ".join(sorted(known))}'
                    f"{ranges}"
                )
        name = given.get("name", f"{group.removesuffix('s')}_{index}")
        minimum, maximum = given.get("minimum", low), given.get("maximum", high)
        ends: tuple[Any, Any] = (minimum, maximum)
        numbers = all(isinstance(end, int | float) and abs(end) <= LARGEST_BOUND for end in ends)
        if not numbers or not as_float32(float(minimum)) < as_float32(float(maximum)):
            raise UsageError(f"channels: {label} has no range: minimum must be below maximum")
        channels.append(
            Channel(
                channel_text(name, f"the name of {label}", LONGEST_CHANNEL_NAME),
                unit_text(given.get("unit", "1"), f"the unit of {label}"),
                float(minimum),
                float(maximum),
            )
        )
    return tuple(channels)


MAX_NAMES = 4


def first_of(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    others = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {others:,} more" if others > 0 else "")


def assumptions(task: Task) -> list[str]:
    """Return a line for each property of a new task's policies that nobody states."""
    lines = []
    if not task.states_interval:
        source = INTERVAL_SOURCES[task.step_interval_from]
        lines.append(
            f"assumed: a step takes {task.step_interval_us:,} us, {source}; state it by "
            "step_interval_us in the channels"
        )
    if task.unbounded:
        lines.append(
            f"assumed: {first_of(task.unbounded)}: an end at ±{WIDE:g}, or as far beyond the other "
            'end, where the space has none; state it by "minimum" and "maximum" in the channels'
        )
    unstated = [
        f"{channel.name} {usual_safe_value(channel):g}"
        for channel, value in zip(
            task.actions, task.safe_action or [None] * len(task.actions), strict=True
        )
        if value is None
    ]
    if unstated:
        lines.append(
            f"assumed: where something is wrong a board does {first_of(unstated)}; state it by "
            '"safe" in the channels'
        )
    return lines
