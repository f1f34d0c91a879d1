"""Statements on a policy's contract that its image does not hold, or holds only as a flag: its safe
action, and the source of its step's time. What nobody states is assumed, and reported."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypedDict

from rltools_host.policies.contract import (
    ENTRY_AT_REST,
    HAS_CHOICES,
    HAS_ENTRY,
    QUADROTOR,
    SAFE_ACTION_ASSUMED,
    STEP_INTERVAL_ASSUMED,
    SafeAction,
    choices_of,
)
from rltools_host.policies.image import PolicyImage
from rltools_host.runs.saves import HEADER
from rltools_host.runs.task import INTERVAL_SOURCES

# How to state another value, for a policy on a board.
SAFE_IN = '"safe" in the channels of the task, or kSafeAction of the contract in C++'
INTERVAL_IN = "step_interval_us in the channels of the task"
LATER = {  # flags of an image that are newer than the format
    HAS_CHOICES: "the names of choices",
    HAS_ENTRY: "what it may be handed",
    STEP_INTERVAL_ASSUMED: "that its time of a step is assumed",
    SAFE_ACTION_ASSUMED: "that its safe action is assumed",
}


class AssumedValues(TypedDict, total=False):
    """Values that are assumed because nobody states them, by the keys of `--json`."""

    step_interval_us: int
    safe_action: list[float | None]  # null where it is stated
    entry: dict[str, float]


def stated_safe_action(image: PolicyImage, given: SafeAction = ()) -> SafeAction:
    """Return for each action the given value, else that of its run or its contract, else None."""
    known = image.stated.safe_action or (None,) * len(image.actions)
    if image.runner.has_safe_action:
        known = tuple(map(float, image.runner.safe_action()[0]))
    both = zip(known, given or known, strict=True)
    return tuple(before if now is None else now for before, now in both)


def assumed_values(image: PolicyImage, has_safe_action: bool = True) -> AssumedValues:
    """Return what is assumed because nobody states it, by the keys of `--json`.

    A safe action has null where it is stated.
    """
    found: AssumedValues = {}
    if image.stated.assumed & STEP_INTERVAL_ASSUMED:
        found["step_interval_us"] = image.step_interval_us
    stated = stated_safe_action(image)
    if has_safe_action and None in stated:
        taken = image.runner.safe_action()[0].tolist()
        found["safe_action"] = [
            value if given is None else None for value, given in zip(taken, stated, strict=True)
        ]
    if image.contract.checksum == QUADROTOR and image.entry is None:
        found["entry"] = asdict(ENTRY_AT_REST)
    return found


def assumptions(image: PolicyImage, safe: str | None, interval: str) -> list[str]:
    """Return a line for each thing that nobody states of the contract: what is assumed, and how to
    state it.

    safe, interval: the words that state them; safe is None where the safe action has no part.
    """
    lines = []
    values = assumed_values(image, safe is not None)
    if "step_interval_us" in values:
        source = INTERVAL_SOURCES[image.stated.interval_from]
        lines.append(
            f"assumed: a step takes {image.step_interval_us:,} us, {source}; state it by {interval}"
        )
    unstated = [
        f"{channel.name} {channel.choices[int(value)] if channel.choices else f'{value:g}'}"
        for channel, value in zip(image.actions, values.get("safe_action", ()), strict=False)
        if value is not None
    ]
    if unstated:
        what = "the first choice" if choices_of(image.actions) else "the middle of its range"
        lines.append(
            f"assumed: where something is wrong the action is {', '.join(unstated)}, {what}; "
            f"state it by {safe}"
        )
    return lines


def unknown_to_earlier(image: PolicyImage, firmware: str, remedy: str) -> str:
    """Return a clause for an image that a board refuses as *malformed*, because it may state more
    than the board's firmware knows; empty where it does not."""
    flags = HEADER.unpack_from(image.data)[9]
    stated = [words for flag, words in LATER.items() if flags & flag]
    if not stated:
        return ""
    return f"; it states {' and '.join(stated)}, which {firmware} may not know: {remedy}"
