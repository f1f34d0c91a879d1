"""Calls of a board's executor one by one, over a link that loses some."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from policy_samples import sample_images
from rltools_host.boards.messages import EXECUTOR_STATUSES, Action
from rltools_host.boards.observations import TickLoop
from rltools_host.build.cmake import load_dialect
from rltools_host.policies.image import PolicyImage, parse_policy
from scripted_infer import ScriptedInfer

STEP_US = 50_000  # of the pendulum's contract
HELD = tuple(EXECUTOR_STATUSES).index("held")


@pytest.fixture(scope="module")
def image() -> PolicyImage:
    return parse_policy(sample_images()["pendulum"])


@pytest.fixture
def board(image: PolicyImage) -> ScriptedInfer:
    return ScriptedInfer(load_dialect(), image)


def observation(tick: int) -> list[float]:
    return [float(np.float32(np.cos(tick))), float(np.float32(np.sin(tick))), 0.25]


def flown(board: ScriptedInfer, ticks: int = 10) -> tuple[list[Action], TickLoop]:
    with TickLoop(board.connection) as loop:
        actions = [
            loop.act(1000 + tick * STEP_US, 1000 + tick * STEP_US, observation(tick))
            for tick in range(ticks)
        ]
    return actions, loop


def test_each_call_is_a_tick_with_this_machines_bits(
    board: ScriptedInfer, image: PolicyImage
) -> None:
    actions, loop = flown(board)
    assert (board.begun, board.heard, loop.repeated) == (1, 10, 0)
    assert [action.status for action in actions] == [0] * 10
    for tick, action in enumerate(actions):
        expected = image.evaluate(np.array(observation(tick), np.float32))
        assert action.action_bits == tuple(expected.view(np.uint32).tolist())


@pytest.mark.parametrize(
    ("hears", "copies", "repeated", "held"),
    [
        (lambda number: number not in (0, 5), lambda _: 1, 2, 0),  # the observation is lost
        (lambda _: True, lambda number: int(number not in (0, 5)), 2, 1),  # the answer is
        (lambda _: True, lambda _: 2, 0, 0),  # each answer comes twice
    ],
)
def test_what_a_link_loses_or_repeats_changes_no_action(
    board: ScriptedInfer,
    image: PolicyImage,
    hears: Callable[[int], bool],
    copies: Callable[[int], int],
    repeated: int,
    held: int,
) -> None:
    ideal, _ = flown(ScriptedInfer(load_dialect(), image))
    board.hears, board.copies = hears, copies
    actions, loop = flown(board)
    assert [action.action_bits for action in actions] == [each.action_bits for each in ideal]
    assert loop.repeated == repeated
    # The first call resets the executor each time, and is a tick of its own.
    assert [action.status for action in actions].count(HELD) == held
