"""Episodes in Python: what is counted, what is begun again, and when it is given up."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest

from gymnasium_points import STEPS, Point
from rltools_host.environments.player import (
    DONE,
    EVALUATION_SLOT,
    LOST,
    MANY,
    MAX_IN_A_ROW,
    OVER,
    ActionSpace,
    Player,
    flat_maker,
)
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.errors import UsageError

PUSH = np.array([1.0], np.float32)


TASK = task_of(TaskRequest("gym:Point"), Point())


class Faulty(Point):
    """Does what it is told in the coming steps and resets."""

    faults: list[Any] = []  # noqa: RUF012 - shared by all of them
    made = 0

    def __init__(self) -> None:
        super().__init__()
        Faulty.made += 1

    def step(self, action: Any) -> Any:
        return self.with_fault(super().step(action))

    def reset(self, **options: Any) -> Any:
        return self.with_fault(super().reset(**options))

    def with_fault(self, result: Any) -> Any:
        fault = Faulty.faults.pop(0) if Faulty.faults else None
        if isinstance(fault, Exception):
            raise fault
        return result if fault is None else fault


@pytest.fixture
def player() -> Player:
    Faulty.faults, Faulty.made = [], 0
    player = Player(Faulty, TASK)
    player.prepare(1, Faulty())
    return player


def result(observation: Any = (0.0, 0.0), reward: Any = 0.0) -> Any:
    return observation, reward, False, False, {}


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (ValueError("a\n b"), "step raised ValueError: a b"),
        (result((0.0, np.nan)), "step returned an observation that is not finite"),
        (result((0.0,)), "step returned an observation of shape (1,), and its space has (2,)"),
        (result(reward=np.inf), "step returned the reward inf, which is not finite"),
        (result(reward=1e300), "step returned the reward 1e+300, which exceeds 32-bit floats"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_a_faulty_step_is_lost(player: Player, fault: Any, sentence: str) -> None:
    player.reset(0, 1)
    assert player.step(0, PUSH)[0] == DONE
    Faulty.faults = [fault]
    answer = player.step(0, PUSH)
    assert answer[0] == LOST
    assert np.isfinite(answer[4]).all()
    assert (player.faults.outside, player.faults.count) == (0, 1)
    assert player.faults.first.startswith(sentence)
    assert re.search(r", at observation \(\S+, 0\.1\) by action \(\S+\)$", player.faults.first)
    assert player.reset(0, 2)[0] == DONE
    assert player.step(0, PUSH)[0] == DONE
    assert player.faults.count == 1


def test_a_reset_that_fails_is_tried_once_more_in_a_new_environment(player: Player) -> None:
    assert Faulty.made == 1
    Faulty.faults = [ValueError("once")]
    assert player.reset(0, 1)[0] == DONE
    assert Faulty.made == 2
    assert player.faults.first == "reset raised ValueError: once"
    Faulty.faults = [ValueError("twice"), ValueError("twice")]
    assert player.reset(0, 1)[0] == OVER
    assert player.faults.given_up.startswith("the environment cannot be reset; first: reset raised")


def test_faults_in_a_row_end_it(player: Player) -> None:
    player.reset(0, 1)
    Faulty.faults = [ValueError("no")] * 100
    answers = [player.step(0, PUSH)[0] for _ in range(MAX_IN_A_ROW)]
    assert answers == [LOST] * (MAX_IN_A_ROW - 1) + [OVER]
    assert player.faults.given_up.startswith(f"the environment failed {MAX_IN_A_ROW} times in a")


def test_a_large_share_of_faults_ends_it(player: Player) -> None:
    player.reset(0, 1)
    answers = []
    while OVER not in answers and len(answers) < 10_000:
        Faulty.faults = [ValueError("no"), None]
        answers += [player.step(0, PUSH)[0], player.step(0, PUSH)[0]]
    assert answers.count(LOST) == MANY - 1
    assert player.faults.given_up.startswith(f"the environment failed in {MANY} of {2 * MANY - 1} ")


def test_the_same_seed_begins_the_same_episode(player: Player) -> None:
    first = player.reset(0, 7)[1]
    player.step(0, PUSH)
    assert (player.reset(0, 7)[1] == first).all()
    assert (player.reset(1, 7)[1] == first).all()
    assert (player.reset(0, 8)[1] != first).any()


def test_actions_are_of_the_spaces_type_and_within_it() -> None:
    seen = []

    class Wide(Point):
        def __init__(self) -> None:
            super().__init__()
            self.action_space = type(self.action_space)(-0.1, 0.1, (1, 1), np.float64)

        def step(self, action: Any) -> Any:
            seen.append(action)
            assert self.action_space.contains(action)
            return result()

    player = Player(Wide, task_of(TaskRequest("gym:Wide"), Wide()))
    player.prepare(1, Wide())
    answer = player.step(0, np.array([0.1], np.float32))  # the float is above 0.1
    assert answer[0] == DONE
    assert seen[0].dtype == np.float64
    assert seen[0].shape == (1, 1)


@pytest.mark.parametrize(
    "space",
    [gymnasium.spaces.Box(-1.0, 1.0, (2,), dtype) for dtype in (np.float32, np.float64, np.int8)]
    + [gymnasium.spaces.MultiDiscrete([2, 2])],
    ids=str,
)
def test_an_environment_may_keep_its_action(space: Any) -> None:
    """Requests come in the memory of the ones before."""
    request = np.ones(2, np.float32)
    kept = ActionSpace(space).taken(request)
    request[:] = 0.0
    assert kept.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("dtype", "low", "high", "given", "expected"),
    [
        (np.int64, 0, 1, [0.0, 0.49, 0.51, 1.0], [0, 0, 1, 1]),
        (np.int8, -128, 127, [-128.0, -0.6, 126.7, 127.0], [-128, -1, 127, 127]),
        (np.int64, -(2**63), 2**63 - 1, [-(2.0**63), 2.0**63], [-(2**63), 2**63 - 1024]),
    ],
)
def test_whole_actions_are_the_nearest(
    dtype: Any, low: int, high: int, given: list[float], expected: list[int]
) -> None:
    space = gymnasium.spaces.Box(low, high, (1, len(given)), dtype)
    taken = ActionSpace(space).taken(np.array(given, np.float32))
    assert taken.tolist() == [expected]
    assert space.contains(taken)


def test_choices_are_whole_numbers_from_the_spaces_first_one() -> None:
    one = gymnasium.spaces.Discrete(3, start=-1)
    taken = [ActionSpace(one).taken(np.array([number], np.float32)) for number in range(3)]
    assert taken == [-1, 0, 1]
    assert all(type(action) is int and one.contains(action) for action in taken)
    two = gymnasium.spaces.MultiDiscrete([[3, 2]], start=[[5, 0]])
    both = ActionSpace(two).taken(np.array([2, 1], np.float32))
    assert both.tolist() == [[7, 1]]
    assert two.contains(both)


def test_observations_beyond_their_range_are_counted_and_clipped(player: Player) -> None:
    """The first one is told; what is on the bound is within."""
    player.reset(0, 1)
    Faulty.faults = [result((2.0, -2.0)), result((1e20, 0.0)), result((0.0, np.float32(-2.0001)))]
    seen = [player.step(0, PUSH) for _ in range(3)]
    assert [answer[0] for answer in seen] == [DONE] * 3
    assert [answer[4].tolist() for answer in seen] == [[2.0, -2.0], [2.0, 0.0], [0.0, -2.0]]
    assert (player.faults.outside, player.faults.count) == (2, 0)
    assert player.faults.first_outside == (
        "observation_0 was 1e+20, and its range is -2 to 2; at step 2 of this session"
    )


def test_an_evaluation_takes_the_safe_action_where_a_board_would() -> None:
    """In training's evaluations and in others; training goes on with the policy's action."""
    given = []

    class Noting(Faulty):
        def step(self, action: Any) -> Any:
            given.append(float(action[0]))
            return super().step(action)

    Faulty.faults = []
    player = Player(Noting, TASK)
    player.prepare(1, Noting())
    beyond = [result((2.5, 0.0)), result()]
    for slot in (0, EVALUATION_SLOT):
        player.reset(slot, 1)
        Faulty.faults = list(beyond)
        for _ in range(3):
            player.step(slot, PUSH)
    assert given == [1.0, 1.0, 1.0, 1.0, 0.5, 1.0]  # the middle of -0.5 to 1.5
    environment = flat_maker(TASK, Noting)()
    environment.reset(seed=1)
    Faulty.faults = list(beyond)
    assert environment.step(PUSH)[0].tolist() == [2.0, 0.0]
    environment.step(PUSH)
    environment.step(PUSH)
    assert given[6:] == [1.0, 0.5, 1.0]


def test_an_evaluation_ends_where_the_environment_truncates() -> None:
    environment = flat_maker(TASK, Point)()
    environment.reset(seed=1)
    still = np.array([0.5], np.float32)
    ends = [environment.step(still)[2:4] for _ in range(STEPS)]
    assert ends == [(False, False)] * (STEPS - 1) + [(False, True)]
    assert TASK.episode_steps > STEPS


def test_an_evaluation_notes_the_first_fault_and_ends_episodes_with_others(
    player: Player, capsys: pytest.CaptureFixture[str]
) -> None:
    assert player.faults.count == 0
    environment = flat_maker(TASK, Faulty)()
    Faulty.faults = [ValueError("once")]
    assert environment.reset(seed=1)[0].shape == (2,)
    assert environment.step(PUSH)[3] is False
    Faulty.faults = [ValueError("no"), ValueError("twice"), ValueError("twice")]
    assert environment.step(PUSH)[1:4] == (0.0, False, True)
    with pytest.raises(
        UsageError, match=r"the environment cannot be reset; first: reset raised Va"
    ):
        environment.reset(seed=2)
    note = "note: Point failed in an evaluation: reset raised ValueError: once\n"
    assert capsys.readouterr().err == note
