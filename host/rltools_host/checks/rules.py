"""Sums over the steps of random actions, and rules that judge them: each returns a finding or
nothing.

Thresholds pass what learns well: this tree's experiments and the classic tasks of Gymnasium.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import Channel, ranges_of
from rltools_host.checks.findings import (
    ADVICE,
    FAULT,
    Examination,
    Figures,
    Finding,
    Learning,
    listed,
    number,
    share,
)

Array = NDArray[Any]
FLIP = 0.1  # how often actions at the ends of their ranges change
MAX_EPISODES = 100_000


class RandomActions:
    """Random actions of `count` environments, (count, channels) at each call.

    In the even ones they are drawn at each step. In the odd ones they stay at an end of the range
    for some ten steps, which reaches further.
    """

    def __init__(self, channels: Sequence[Channel], count: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.low, self.high = ranges_of(channels)
        self._choices = np.array([len(channel.choices) for channel in channels])
        self._held = np.zeros((count, len(channels)), np.bool_)
        self._is_held = (np.arange(count) % 2 == 1)[:, None]

    def next(self) -> Array:
        shape = self._held.shape
        self._held ^= self._random.random(shape) < FLIP
        part = np.where(self._is_held, self._held, self._random.random(shape, np.float32))
        chosen = np.floor(part * self._choices)
        actions: Array = self.low + part.astype(np.float32) * (self.high - self.low)
        actions = np.where(self._choices > 0, chosen.astype(np.float32), actions)
        kept: Array = np.minimum(np.maximum(actions, self.low), self.high)
        return kept


class Play:
    """Sums over the steps of `count` environments, stepped together; every number is finite."""

    def __init__(self, observations: Sequence[Channel], count: int, masks: int = 0) -> None:
        """Count from zero. The last `masks` of the observations are masks of choices."""
        width = len(observations)
        self.channels = tuple(observations)
        self.masks = masks
        self.steps = 0
        self._low, self._high = ranges_of(observations)
        self.outside = np.zeros(width, np.int64)  # rows beyond the channel's range
        self.minimum, self.maximum = np.full(width, np.inf), np.full(width, -np.inf)
        self._sum, self._squares = np.zeros(width), np.zeros(width)
        self.rows = 0  # of observations
        self.reward_sum = self.reward_squares = self.reward_size = 0.0
        self.reward_min, self.reward_max = np.inf, -np.inf
        self.lengths: list[int] = []  # of the episodes that ended
        self.returns: list[float] = []
        self.terminated = 0
        self._length = np.zeros(count, np.int64)
        self._return = np.zeros(count)

    def see(self, rows: Array) -> None:
        """Add observations, (any, channels)."""
        self.rows += len(rows)
        self.outside += ((rows < self._low) | (rows > self._high)).sum(0)
        self.minimum = np.minimum(self.minimum, rows.min(0))
        self.maximum = np.maximum(self.maximum, rows.max(0))
        wide = rows.astype(np.float64)
        self._sum += wide.sum(0)
        self._squares += (wide * wide).sum(0)

    def step(self, rewards: Array, terminated: Array, truncated: Array) -> None:
        """Add one step of all environments."""
        wide = rewards.astype(np.float64)
        self.steps += len(wide)
        self.reward_sum += float(wide.sum())
        self.reward_squares += float((wide * wide).sum())
        self.reward_size += float(np.abs(wide).sum())
        self.reward_min = min(self.reward_min, float(wide.min()))
        self.reward_max = max(self.reward_max, float(wide.max()))
        self._length += 1
        self._return += wide
        for row in np.flatnonzero(terminated | truncated):
            if len(self.lengths) < MAX_EPISODES:
                self.lengths.append(int(self._length[row]))
                self.returns.append(float(self._return[row]))
                self.terminated += bool(terminated[row])
            self._length[row] = self._return[row] = 0

    @property
    def mean(self) -> Array:
        return self._sum / max(self.rows, 1)

    @property
    def deviation(self) -> Array:
        square = self._squares / max(self.rows, 1) - self.mean**2
        deviation: Array = np.sqrt(np.maximum(square, 0.0))
        return deviation

    @property
    def reward_mean(self) -> float:
        return self.reward_sum / max(self.steps, 1)

    @property
    def reward_std(self) -> float:
        square = self.reward_squares / max(self.steps, 1) - self.reward_mean**2
        return float(np.sqrt(max(square, 0.0)))

    def write(self, figures: Figures) -> None:
        """Put what was seen into the figures of an examination."""
        figures.steps, figures.episodes = self.steps, len(self.lengths)
        figures.terminated = self.terminated
        figures.reward_mean, figures.reward_std = self.reward_mean, self.reward_std
        figures.reward_min, figures.reward_max = self.reward_min, self.reward_max
        if self.lengths:
            figures.episode_steps_mean = float(np.mean(self.lengths))
            figures.return_mean = float(np.mean(self.returns))
            figures.return_std = float(np.std(self.returns))


LARGEST_VALUE, SMALLEST_VALUE = 20_000.0, 0.02  # of discounted returns, which critics learn
LARGEST_INPUT, SMALLEST_INPUT = 100.0, 1e-3  # of an observation's mean and deviation
LONGEST_IN_HORIZONS = 50  # of an episode, in 1 / (1 - gamma) steps
MIN_EPISODES = 10  # in a run
SHORT_EPISODE = 3  # steps
LIMITED_EPISODES = 8  # of one length, from which on it is a time limit
RARE_SHARE = 0.2  # of observations
FIRST_STEP_SHARE = 0.2  # of episodes that end with their first step


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
    """Add the findings of a whole play.

    `ranges_kept` are those of ranges, `is_still` says that all episodes begin with the same
    observation, `limit` is the remedy for a time limit that terminates.
    """
    found.passed.append("every number is finite")
    found.tried("observations keep their ranges", *ranges_kept)
    found.tried("observations suit the networks", *observation_scale(play, learning))
    found.tried("rewards suit the critics", rewards(play, learning, steps))
    found.tried(
        "episodes begin and end well",
        still(is_still),
        first_steps(play),
        time_limit(play, limit),
        *lengths(play, learning, steps, step_s),
    )


def ranges(play: Play, remedy: str) -> Finding | None:
    """Find observations outside of the ranges that the policy's contract states."""
    outside = np.flatnonzero(play.outside)
    if not outside.size:
        return None
    worst = int(outside[np.argmax(play.outside[outside])])
    channel = play.channels[worst]
    beyond = play.minimum[worst] if play.minimum[worst] < channel.minimum else play.maximum[worst]
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
        ADVICE if play.outside[worst] < RARE_SHARE * play.rows else FAULT,
    )


def observation_scale(play: Play, learning: Learning) -> list[Finding]:
    """Find observations that never change, or whose scale does not suit the networks."""
    found = []
    names = [channel.name for channel in play.channels]
    own = len(names) - play.masks
    still = [
        name
        for name, low, high in zip(names[:own], play.minimum[:own], play.maximum[:own], strict=True)
        if low == high
    ]
    if still:
        value = play.minimum[names.index(still[0])]
        found.append(
            Finding(
                "constant-observation",
                f"{listed(still)} never changed (first: {number(float(value))})",
                "leave out what says nothing, or write what it is meant to observe",
                ADVICE,
            )
        )
    if learning.is_normalized:
        return found
    size = np.maximum(np.abs(play.mean), play.deviation)
    for large, chosen in (
        (True, size > LARGEST_INPUT),
        (False, (play.deviation < SMALLEST_INPUT) & (play.minimum < play.maximum)),
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
                "which normalizes observations",
                ADVICE,
            )
        )
    return found


def rewards(play: Play, learning: Learning, episode_steps: int | None) -> Finding | None:
    """Find rewards that do not differ, or returns that critics cannot learn."""
    if play.reward_min == play.reward_max and len(set(play.lengths)) <= 1:
        return Finding(
            "constant-reward",
            f"the reward was {number(play.reward_min)} in each of {play.steps:,} steps",
            "reward progress as well, or begin some episodes near the goal: nothing is learned "
            "before rewards differ",
        )
    if learning.scales_rewards:
        return None
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
        f"rewards are {number(play.reward_mean)} ± {number(play.reward_std)}, so that "
        f"critics must learn values of about {number(value)}",
        f"{how}: values from 0.1 to 1,000 are learned well",
        ADVICE,
    )


def first_steps(play: Play) -> Finding | None:
    """Find episodes that terminate in their first step."""
    at_once = sum(length == 1 for length in play.lengths)
    if not play.terminated or at_once <= FIRST_STEP_SHARE * len(play.lengths):
        return None
    return Finding(
        "reset",
        f"{share(at_once, len(play.lengths))} of the episodes terminated in their first step",
        "have reset() draw states that are not terminal",
    )


def time_limit(play: Play, remedy: str) -> Finding | None:
    """Find a time limit that is a termination."""
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
        "is learned as if nothing could follow",
        remedy.format(steps=steps),
    )


def lengths(
    play: Play, learning: Learning, episode_steps: int | None, step_s: float
) -> list[Finding]:
    """Find episodes that never end, are too short, too long for gamma, or too few in a run."""
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
    if learning.steps is not None and learning.steps < MIN_EPISODES * mean:
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


def still(is_still: bool) -> Finding | None:
    """Find episodes that all begin with the same observation."""
    if not is_still:
        return None
    return Finding(
        "same-beginning",
        "every episode begins with the same observation",
        "draw the first state in reset(), so that the policy does not learn one beginning by heart",
        ADVICE,
    )


def idle_actions(names: list[str], remedy: str) -> list[Finding]:
    """Return the finding for actions without an effect."""
    if not names:
        return []
    what = f"{listed(names)} changes neither observations nor rewards"
    return [Finding("idle-action", what, remedy)]


MAX_HELD = 16  # values of a choice
PARTS = (0.0, 1.0, 0.5, 0.31)  # of a range: what is the same at both ends may differ between


def held_values(channel: Channel) -> list[float]:
    """Return the values at which an action is held, to see its effect."""
    if channel.choices:
        return [float(number) for number in range(len(channel.choices))][:MAX_HELD]
    low, high = (array.item() for array in ranges_of([channel]))
    return [low + part * (high - low) for part in PARTS]
