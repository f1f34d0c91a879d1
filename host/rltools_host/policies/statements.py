"""What somebody states of a policy's contract that its image does not hold, or only as a flag: its
safe action, and where the time of a step is from. What nobody states is assumed, and said.
"""

from __future__ import annotations

from rltools_host.policies.contract import STEP_INTERVAL_ASSUMED, SafeAction, choices_of
from rltools_host.policies.image import PolicyImage
from rltools_host.runs.task import INTERVAL_SOURCES


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
