"""Findings about the wrappers of an environment that a policy elsewhere would be without."""

from __future__ import annotations

from typing import Any

from rltools_host.checks.findings import ADVICE, FAULT, Finding
from rltools_host.environments.spaces import chain

# By the names of Gymnasium's classes, whose texts a task's own classes may derive from.
NORMALIZED = (
    "its running mean and deviation are neither saved with a run nor exported with a policy",
    "remove it: learn with norm_obs=1, the default, whose normalizer the policy contains",
)
REWARDED = (
    "returns are of rewards that change while it learns, and compare with no others",
    "remove it, and scale rewards by a constant",
)
STACKED = (
    "a policy elsewhere does not get the past observations that it adds",
    "observe what is missing (a velocity, the last action) in the environment itself",
)
TIMED = (
    "it observes how long the episode has lasted, which a policy elsewhere does not know",
    "remove it",
)
RESETTING = (
    "it resets by itself, so the last observation of an episode is lost",
    "remove it: training resets",
)
SCALED = (
    "a policy acts in the units outside of it, and firmware would have to repeat it",
    "remove it: policies act in the whole range of a Box already",
)
OBSERVED = (
    "a policy observes what it makes, and firmware would have to repeat it",
    "move it into the environment, or write the same in the firmware",
)
STOCHASTIC = (
    "an action may not be the policy's",
    "remove it, unless the policy meets the same where it is used",
)
KNOWN = {
    "NormalizeObservation": (FAULT, NORMALIZED),
    "NormalizeReward": (ADVICE, REWARDED),
    "FrameStackObservation": (FAULT, STACKED),
    "FrameStack": (FAULT, STACKED),
    "DelayObservation": (ADVICE, STOCHASTIC),
    "TimeAwareObservation": (FAULT, TIMED),
    "Autoreset": (FAULT, RESETTING),
    "AutoResetWrapper": (FAULT, RESETTING),
    "StickyAction": (ADVICE, STOCHASTIC),
    "RescaleAction": (ADVICE, SCALED),
    "TransformAction": (ADVICE, SCALED),
    "ActionWrapper": (ADVICE, SCALED),
    "TransformObservation": (ADVICE, OBSERVED),
    "ObservationWrapper": (ADVICE, OBSERVED),
}
# Which change nothing, or what a policy elsewhere does by its contract: flat rows in range.
HARMLESS = ("ClipAction", "FlattenObservation", "ReshapeObservation", "DtypeObservation")


def wrapper_findings(environment: Any, episode_steps: int) -> list[Finding]:
    found = []
    for wrapper in chain(environment)[:-1]:
        classes = [kind.__name__ for kind in type(wrapper).__mro__]
        name = classes[0]
        if any(kind in HARMLESS for kind in classes):
            continue
        known = next((kind for kind in classes if kind in KNOWN), None)
        if known is not None:
            level, (why, remedy) = KNOWN[known]
            found.append(Finding("wrapper", f"{name} wraps the environment: {why}", remedy, level))
        elif (limit := time_limit(wrapper)) is not None and limit != episode_steps:
            found.append(
                Finding(
                    "wrapper",
                    f"a TimeLimit of {limit:,} steps is inside, and episodes are to last "
                    f"{episode_steps:,}",
                    f"--set episode_steps={min(limit, episode_steps)}, so that evaluations and "
                    "the export know of it",
                    ADVICE,
                )
            )
    return found


def time_limit(wrapper: Any) -> int | None:
    if type(wrapper).__name__ != "TimeLimit":
        return None
    limit = getattr(wrapper, "_max_episode_steps", None)
    return limit if isinstance(limit, int) else None
