"""What somebody states of a policy's contract that its image does not hold, or only as a flag: its
safe action, and where the time of a step is from. What nobody states is assumed, and said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rltools_host.build.description import unsafe
from rltools_host.errors import DamagedFileError
from rltools_host.policies.contract import (
    STEP_INTERVAL_ASSUMED,
    SafeAction,
    choices_of,
)
from rltools_host.runs.contents import Run
from rltools_host.runs.task import INTERVAL_SOURCES, IntervalSource

if TYPE_CHECKING:
    from rltools_host.policies.image import PolicyImage


@dataclass(frozen=True)
class Statements:
    """safe_action: as its run states it; assumed: of ASSUMPTIONS."""

    safe_action: SafeAction = ()
    assumed: int = 0
    interval_from: IntervalSource = ""


NOTHING_STATED = Statements()


def statements_of(image: PolicyImage, run: Run) -> Statements:
    """What a run says of its policy's contract; one of earlier tools says nothing."""
    task, assumed = run.gymnasium, image.stated.assumed
    source: IntervalSource = ""
    safe_action = tuple(run.safe_action)
    if task is not None:
        safe_action, source = task.safe_action, task.step_interval_from
        assumed |= 0 if task.states_interval else STEP_INTERVAL_ASSUMED
    values = zip(image.actions, safe_action, strict=False)
    if len(safe_action) not in (0, len(image.actions)) or any(
        value is not None and unsafe(channel, value) for channel, value in values
    ):
        raise DamagedFileError(
            f"{image.origin}: the safe_action in its run.json is none of its actions: restore that "
            "file"
        )
    return Statements(safe_action, assumed, source)


def stated_safe_action(image: PolicyImage, given: SafeAction = ()) -> SafeAction:
    """Of each action what is given, else what its run or its contract states; else null."""
    known = image.stated.safe_action or (None,) * len(image.actions)
    if image.runner.has_safe_action:
        known = tuple(map(float, image.runner.safe_action()[0]))
    both = zip(known, given or known, strict=True)
    return tuple(before if now is None else now for before, now in both)


def assumptions(image: PolicyImage, safe: str | None, interval: str) -> list[str]:
    """What nobody states of its contract, a line each: what is taken, and the words that state
    another; safe: None where the safe action has no part."""
    lines = []
    if image.stated.assumed & STEP_INTERVAL_ASSUMED:
        source = INTERVAL_SOURCES[image.stated.interval_from]
        lines.append(
            f"assumed: a step takes {image.step_interval_us:,} us, {source}; state it by {interval}"
        )
    taken = image.runner.safe_action()[0].tolist()
    unstated = [
        f"{channel.name} {channel.choices[int(value)] if channel.choices else f'{value:g}'}"
        for channel, value, stated in zip(
            image.actions, taken, stated_safe_action(image), strict=True
        )
        if stated is None
    ]
    if unstated and safe is not None:
        what = "the first choice" if choices_of(image.actions) else "the middle of its range"
        lines.append(
            f"assumed: where something is wrong the action is {', '.join(unstated)}, {what}; "
            f"state it by {safe}"
        )
    return lines
