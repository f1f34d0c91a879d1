"""What is out of order in what random actions showed; each rule gives a finding or nothing.

Thresholds leave what learns well alone: this tree's experiments and the classic tasks of Gymnasium.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rltools_host.checks.findings import (
    ADVICE,
    FAULT,
    Examination,
    Finding,
    Learning,
    listed,
    number,
    share,
)
from rltools_host.checks.play import Play

LARGEST_VALUE, SMALLEST_VALUE = 20_000.0, 0.02  # of discounted returns, which critics learn
LARGEST_INPUT, SMALLEST_INPUT = 100.0, 1e-3  # of an observation's mean and deviation
LONGEST_IN_HORIZONS = 50  # of an episode, in 1 / (1 - gamma) steps
FEWEST_EPISODES = 10  # in a run
SHORT_EPISODE = 3  # steps
LIMITED_EPISODES = 8  # that end alike
RARELY = 0.2  # of observations
MOSTLY = 0.2  # of episodes that end with their first step
WIDE = 1e6  # of a task's range, where its space has none


def judge(
    found: Examination,
    play: Play,
    learning: Learning,
    *,
    ranges_kept: Sequence[Finding | None],
    is_still: bool,
    limit: str,
    steps: int | None,
    step_s: float,
) -> None:
    """What an examination says of a play to its end: `ranges_kept` of ranges, `is_still` whether
    all episodes begin alike, `limit` the remedy for a time limit that terminates."""
    found.passed.append("every number is finite")
    found.tried("observations keep their ranges", *ranges_kept)
    found.tried("observations suit the networks", *observation_scale(play, learning))
    found.tried("rewards suit the critics", rewards(play, learning, steps))
    found.tried(
        "episodes begin and end well",
        still(is_still, "reset()"),
        first_steps(play, "reset()"),
        time_limit(play, limit),
        *lengths(play, learning, steps, step_s),
    )


def ranges(play: Play, remedy: str) -> Finding | None:
    """Observations within the ranges that the policy's contract states."""
    outside = np.flatnonzero(play.outside)
    if not outside.size:
        return None
    worst = int(outside[np.argmax(play.outside[outside])])
    channel = play.channels[worst]
    beyond = play.least[worst] if play.least[worst] < channel.minimum else play.most[worst]
    others = [play.channels[index].name for index in outside if index != worst]
    unit = "" if channel.unit == "1" else f" {channel.unit}"
    also = f", and so did {listed(others)}" if others else ""
    return Finding(
        "range",
        f"{channel.name} left its range {number(channel.minimum)} to {number(channel.maximum)}"
        f"{unit} in {share(int(play.outside[worst]), play.rows)} of the observations, and "
        f"was {number(float(beyond))}{also}",
        f"{remedy}: a board takes the safe action at such an observation",
        # Random actions reach what a policy will not.
        ADVICE if play.outside[worst] < RARELY * play.rows else FAULT,
    )


def observation_scale(play: Play, learning: Learning) -> list[Finding]:
    """Numbers about as large as the networks' weights expect them."""
    found = []
    names = [channel.name for channel in play.channels]
    own = len(names) - play.masks
    still = [
        name
        for name, low, high in zip(names[:own], play.least[:own], play.most[:own], strict=True)
        if low == high
    ]
    if still:
        value = play.least[names.index(still[0])]
        found.append(
            Finding(
                "constant-observation",
                f"{listed(still)} never changed (first: {number(float(value))})",
                "leave out what says nothing, or write what it is meant to observe",
                ADVICE,
            )
        )
    if learning.is_normalised:
        return found
    size = np.maximum(np.abs(play.mean), play.deviation)
    for large, chosen in (
        (True, size > LARGEST_INPUT),
        (False, (play.deviation < SMALLEST_INPUT) & (play.least < play.most)),
    ):
        if not chosen.any():
            continue
        scale = size if large else play.deviation
        first = int(np.argmax(np.where(chosen, scale if large else -scale, -np.inf)))
        factor = 10.0 ** -round(math.log10(max(float(scale[first]), 1e-30)))
        found.append(
            Finding(
                "observation-scale",
                f"{listed([names[i] for i in np.flatnonzero(chosen)])} "
                f"{'is' if chosen.sum() == 1 else 'are'} too {'large' if large else 'small'} for "
                f"the networks ({names[first]}: {number(float(play.mean[first]))} ± "
                f"{number(float(play.deviation[first]))})",
                f"multiply {names[first]} by {factor:g}, choose another unit, or learn by PPO, "
                "which normalises observations",
                ADVICE,
            )
        )
    return found


def rewards(play: Play, learning: Learning, episode_steps: int | None) -> Finding | None:
    """Rewards that differ, and returns about as large as critics can learn."""
    if play.reward_least == play.reward_most and len(set(play.lengths)) <= 1:
        return Finding(
            "constant-reward",
            f"the reward was {number(play.reward_least)} in each of {play.steps:,} steps",
            "reward progress as well, or begin some episodes near the goal: nothing is learnt "
            "before rewards differ",
        )
    horizon = 1.0 / max(1.0 - learning.gamma, 1e-6)
    mean_length = float(np.mean(play.lengths)) if play.lengths else float(episode_steps or horizon)
    value = play.reward_size / play.steps * learning.reward_scale * min(horizon, mean_length)
    if not (value > LARGEST_VALUE or 0.0 < value < SMALLEST_VALUE):
        return None
    factor = 10.0 ** -round(math.log10(value) - 1.0)
    how = (
        f"learn with --set reward_scale={learning.reward_scale * factor:g}"
        if learning.can_scale
        else f"multiply the reward by {factor:g}"
    )
    return Finding(
        "reward-scale",
        f"rewards are {number(play.reward_mean)} ± {number(play.reward_deviation)}, so that "
        f"critics must learn values of about {number(value)}",
        f"{how}: values from 0.1 to 1,000 are learnt well",
        ADVICE,
    )


def first_steps(play: Play, where: str) -> Finding | None:
    """Episodes that do not end as they begin."""
    at_once = sum(length == 1 for length in play.lengths)
    if not play.terminated or at_once <= MOSTLY * len(play.lengths):
        return None
    return Finding(
        "reset",
        f"{share(at_once, len(play.lengths))} of the episodes terminated in their first step",
        f"have {where} draw states that are not terminal",
    )


def time_limit(play: Play, remedy: str) -> Finding | None:
    """A time limit that is no termination."""
    lengths = set(play.lengths)
    is_limit = (
        len(play.lengths) >= LIMITED_EPISODES
        and play.terminated == len(play.lengths)
        and len(lengths) == 1
        and 1 not in lengths
    )
    if not is_limit:
        return None
    (steps,) = lengths
    return Finding(
        "time-limit",
        f"all {len(play.lengths)} episodes terminated after {steps:,} steps: a time limit, which "
        "is learnt as if nothing could follow",
        remedy.format(steps=steps),
    )


def lengths(
    play: Play, learning: Learning, episode_steps: int | None, step_s: float
) -> list[Finding]:
    """Episodes that end, are long enough to learn from, and not too long for gamma."""
    if not play.lengths:
        if episode_steps is None:
            return [
                Finding(
                    "endless",
                    f"no episode ended in {play.steps:,} steps, and nothing limits them",
                    "set kEpisodeSteps",
                )
            ]
        mean = float(episode_steps)
    else:
        mean = float(np.mean(play.lengths))
    found = []
    if mean < SHORT_EPISODE and play.terminated:
        found.append(
            Finding(
                "short-episodes",
                f"episodes of random actions last {mean:.1f} steps",
                "begin nearer to where the policy shall stay, widen what terminates, or act more "
                "often",
                ADVICE,
            )
        )
    horizon = 1.0 / max(1.0 - learning.gamma, 1e-6)
    if mean > LONGEST_IN_HORIZONS * horizon:
        found.append(
            Finding(
                "horizon",
                f"gamma={learning.gamma:g} looks {number(horizon)} steps ahead, "
                f"{number(horizon * step_s)} s, and episodes last {number(mean)} steps, "
                f"{number(mean * step_s)} s",
                f"act less often, or learn with --set gamma={1.0 - 10.0 / mean:.4g}",
                ADVICE,
            )
        )
    if learning.steps is not None and learning.steps < FEWEST_EPISODES * mean:
        found.append(
            Finding(
                "few-episodes",
                f"a run of {learning.steps:,} steps has {learning.steps / mean:.2g} episodes",
                f"train longer, as with --steps {round(100 * mean)}, or limit episodes to fewer "
                "steps",
                ADVICE,
            )
        )
    return found


def still(is_still: bool, where: str) -> Finding | None:
    """Episodes that begin differently."""
    if not is_still:
        return None
    return Finding(
        "same-beginning",
        "every episode begins with the same observation",
        f"draw the first state in {where}, so that the policy does not learn one beginning by "
        "heart",
        ADVICE,
    )
