"""Each rule on both sides of its bound, with plays whose sums are known."""

from __future__ import annotations

import numpy as np
import pytest

from rltools_host.build.description import Channel
from rltools_host.checks import rules
from rltools_host.checks.findings import ADVICE, FAULT, Learning
from rltools_host.checks.rules import Play

PLACE, SPEED = Channel("place", "m", -2.0, 2.0), Channel("speed", "1", -1e9, 1e9)


def play_of(
    observations: list[tuple[float, float]] | None = None,
    rewards: list[float] | None = None,
    lengths: list[int] | None = None,
    terminated: int = 0,
) -> Play:
    """One row of an observation and a reward a step; episodes as they are said to be."""
    play = Play((PLACE, SPEED), 1)
    for values in observations or [(-1.0, -1.0), (1.0, 1.0)]:
        play.see(np.array([values], np.float32))
    never = np.zeros(1, np.bool_)
    for reward in rewards or [0.0, 1.0]:
        play.step(np.array([reward]), never, never)
    play.lengths, play.terminated = list(lengths or []), terminated
    play.returns = [0.0] * len(play.lengths)
    return play


@pytest.mark.parametrize(
    ("outside", "level"), [(0, None), (1, ADVICE), (19, ADVICE), (20, FAULT), (100, FAULT)]
)
def test_a_range_that_is_left_often_is_a_fault(outside: int, level: str | None) -> None:
    rows = [(3.5 if i < outside else 2.0, float(i)) for i in range(100)]
    found = rules.ranges(play_of(rows), "widen it")
    if level is None:
        assert found is None
        return
    assert found is not None
    assert found.level == level
    assert f"place left its range -2 to 2 m in {outside} %" in found.what


@pytest.mark.parametrize(
    ("size", "normalized", "checks"),
    [
        (99.0, False, []),
        (101.0, False, ["observation-scale"]),
        (101.0, True, []),
        (2e-3, False, []),
        (9e-4, False, ["observation-scale"]),
        (9e-4, True, []),
        (0.0, False, ["constant-observation"]),
        (0.0, True, ["constant-observation"]),
    ],
)
def test_observations_are_about_one(size: float, normalized: bool, checks: list[str]) -> None:
    play = play_of([(-1.0, -size), (1.0, size)])
    found = rules.observation_scale(play, Learning(is_normalized=normalized))
    assert [each.check for each in found] == checks
    if checks == ["observation-scale"]:
        factor = "0.01" if size > 1 else "1000"
        assert f"multiply speed by {factor}, " in found[0].remedy


@pytest.mark.parametrize(
    ("reward", "gamma", "lengths", "limit", "is_found"),
    [
        # Values are the reward by 1 / (1 - gamma) steps, or by an episode's where it is shorter.
        (190.0, 0.99, [1000], None, False),
        (210.0, 0.99, [1000], None, True),
        (210.0, 0.98, [1000], None, False),
        (210.0, 0.99, [50], None, False),
        (210.0, 0.99, [], 50, False),
        (210.0, 0.99, [], None, True),
        (2.2e-4, 0.99, [1000], None, False),
        (1.8e-4, 0.99, [1000], None, True),
        (1.8e-4, 0.995, [1000], None, False),
        (0.0, 0.99, [10, 20], None, False),  # rewards at the end of an episode alone may come
    ],
)
def test_rewards_suit_critics(
    reward: float, gamma: float, lengths: list[int], limit: int | None, is_found: bool
) -> None:
    play = play_of(rewards=[reward, -reward], lengths=lengths)
    found = rules.rewards(play, Learning(gamma=gamma), limit)
    assert (found is not None) == is_found
    if found is None:
        return
    assert found.check == "reward-scale"
    factor = "0.001" if reward > 1 else "1000"
    assert found.remedy.startswith(f"multiply the reward by {factor}: ")
    can_scale = Learning(gamma=gamma, reward_scale=1.0, can_scale=True)
    scaled = rules.rewards(play, can_scale, limit)
    assert scaled is not None
    assert scaled.remedy.startswith(f"learn with --set reward_scale={factor}: ")


@pytest.mark.parametrize(("lengths", "is_found"), [([], True), ([7], True), ([7, 8], False)])
def test_equal_rewards_say_nothing_where_episodes_are_equal_too(
    lengths: list[int], is_found: bool
) -> None:
    found = rules.rewards(play_of(rewards=[1.0, 1.0], lengths=lengths), Learning(), None)
    assert (found is not None) == is_found
    if found:
        assert (found.check, found.level) == ("constant-reward", FAULT)
        assert found.what == "the reward was 1 in each of 2 steps"


@pytest.mark.parametrize(
    ("at_once", "terminated", "is_found"), [(2, 2, False), (3, 3, True), (3, 0, False)]
)
def test_episodes_that_end_at_once(at_once: int, terminated: int, is_found: bool) -> None:
    play = play_of(lengths=[1] * at_once + [9] * (10 - at_once), terminated=terminated)
    found = rules.first_steps(play, "reset()")
    assert (found is not None) == is_found


@pytest.mark.parametrize(
    ("lengths", "terminated", "is_found"),
    [
        ([20] * 8, 8, True),
        ([20] * 7, 7, False),
        ([20] * 8, 7, False),
        ([20] * 7 + [21], 8, False),
        ([1] * 8, 8, False),  # first_steps() says that
    ],
)
def test_a_time_limit_that_terminates(lengths: list[int], terminated: int, is_found: bool) -> None:
    found = rules.time_limit(play_of(lengths=lengths, terminated=terminated), "limit {steps}")
    assert (found is not None) == is_found
    if found:
        assert found.remedy == "limit 20"


@pytest.mark.parametrize(
    ("lengths", "terminated", "limit", "learning", "checks"),
    [
        ([], 0, None, Learning(), ["endless"]),
        ([], 0, 200, Learning(), []),
        ([2, 3], 1, None, Learning(), ["short-episodes"]),
        ([2, 3], 0, None, Learning(), []),
        ([3, 3], 1, None, Learning(), []),
        ([4999], 0, None, Learning(gamma=0.99), []),
        ([5001], 0, None, Learning(gamma=0.99), ["horizon"]),
        ([], 0, 5001, Learning(gamma=0.99), ["horizon"]),
        ([5001], 0, None, Learning(gamma=0.995), []),
        ([100], 0, None, Learning(steps=1000), []),
        ([100], 0, None, Learning(steps=999), ["few-episodes"]),
    ],
)
def test_lengths_of_episodes(
    lengths: list[int], terminated: int, limit: int | None, learning: Learning, checks: list[str]
) -> None:
    play = play_of(lengths=lengths, terminated=terminated)
    found = rules.lengths(play, learning, limit, 0.02)
    assert [each.check for each in found] == checks
    if checks == ["horizon"]:
        assert found[0].what == (
            "gamma=0.99 looks 100 steps ahead, 2 s, and episodes last 5,001 steps, 100 s"
        )
        assert found[0].remedy.endswith("--set gamma=0.998")
