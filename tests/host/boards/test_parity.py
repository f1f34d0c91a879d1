"""A board against this machine: every wrong bit is named, and what a link loses changes nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from policy_samples import sample_images
from rltools_host.boards.connection import ANSWER_LIMIT_S
from rltools_host.boards.hil_inputs import make_inputs
from rltools_host.boards.messages import Action
from rltools_host.boards.observations import MESSAGES_UNDER_WAY
from rltools_host.boards.parity import (
    Expected,
    Parity,
    Scenarios,
    check_parity,
    check_ticks,
    safe_action,
)
from rltools_host.boards.policies import Tick
from rltools_host.build.cmake import load_dialect
from rltools_host.errors import LinkLostError
from rltools_host.policies.image import PolicyImage, parse_policy
from scripted_infer import ScriptedInfer

COUNT = 60


@pytest.fixture(scope="module")
def image() -> PolicyImage:
    return parse_policy(sample_images()["pendulum"])


@pytest.fixture
def board(image: PolicyImage) -> ScriptedInfer:
    return ScriptedInfer(load_dialect(), image)


def checked(board: ScriptedInfer, image: PolicyImage, count: int = COUNT) -> Parity:
    return check_parity(board.client, image, image.added_inputs, count)


def test_a_board_with_the_same_bits(board: ScriptedInfer, image: PolicyImage) -> None:
    progress: list[tuple[int, int]] = []
    parity = check_parity(board.client, image, (), COUNT, lambda *done: progress.append(done))
    assert parity.holds
    assert (parity.count, parity.not_finite, parity.mismatches) == (COUNT, 9, 0)
    assert parity.ticks.checked > 60
    assert parity.max_abs_diff == 0.0
    actions = image.evaluate(make_inputs(image.observations, COUNT).values)
    assert parity.outputs_sha256 == hashlib.sha256(actions.tobytes()).hexdigest()
    assert progress[-1] == (COUNT + 9, COUNT + 9)
    assert parity.agreement().first_mismatch is None
    assert board.most_waiting == MESSAGES_UNDER_WAY


def test_inputs_reach_what_overflows_and_what_does_not(image: PolicyImage) -> None:
    """Otherwise the safe action of an output that is not finite was never asked for."""
    inputs = make_inputs(image.observations, COUNT)
    finite = np.isfinite(image.output(inputs.values)).all(axis=1)
    assert 0 < (~finite).sum() < COUNT // 4


# -- what a link does ------------------------------------------------------------------------------


def test_lost_observations_and_answers_are_asked_for_again(
    board: ScriptedInfer, image: PolicyImage
) -> None:
    values = make_inputs(image.observations, COUNT).values
    board.hears = lambda number: number % 3 != 0
    board.copies = lambda number: 0 if number % 3 == 1 and number % 5 else 1
    answers = board.client.forward_all(values.tolist())
    actions = image.evaluate(values).view(np.uint32)
    assert [answer.action_bits for answer in answers] == [(word,) for word in actions[:, 0]]


def test_answers_may_take_long_as_long_as_some_come(
    board: ScriptedInfer, image: PolicyImage
) -> None:
    values = make_inputs(image.observations, COUNT).values
    board.hears = lambda number: number % (2 * MESSAGES_UNDER_WAY + 1) == 0
    assert len(board.client.forward_all(values.tolist())) == COUNT
    assert board.link.now > 2 * ANSWER_LIMIT_S


def test_answers_that_come_twice_count_once(board: ScriptedInfer, image: PolicyImage) -> None:
    board.copies = lambda _: 2
    assert checked(board, image).holds


def test_a_board_that_answers_no_more_is_lost(board: ScriptedInfer, image: PolicyImage) -> None:
    board.hears = lambda number: number < 20
    with pytest.raises(LinkLostError, match="does not answer for an action"):
        checked(board, image)


# -- what a board does wrong -----------------------------------------------------------------------


def in_input(index: int, change: Callable[[list[int], Any], str | None]) -> Any:
    """Ticks count from one on."""
    return lambda tick, layers, action: change(layers, action) if tick == index + 1 else None


def test_a_wrong_bit_in_a_layer_is_named(board: ScriptedInfer, image: PolicyImage) -> None:
    def flip(layers: list[int], action: Any) -> None:
        layers[1] ^= 0x400
        layers[2] ^= 1
        action += 1

    board.spoil = in_input(16, flip)
    parity = checked(board, image)
    right = image.runner.layer_checksums(parity.inputs.values[16])[1]
    assert parity.first == (
        f"layer 2 of 3 differs: input #16 (within its range) gives the checksum "
        f"{right ^ 0x400:08x}, here {right:08x}"
    )
    assert not parity.holds
    assert parity.mismatches == 1
    assert parity.max_abs_diff == pytest.approx(1.0)
    actions = image.evaluate(parity.inputs.values)
    assert parity.outputs_sha256 != hashlib.sha256(actions.tobytes()).hexdigest()
    agreement = parity.agreement()
    assert (agreement.inputs, agreement.not_finite_inputs) == (COUNT, 9)
    assert (agreement.mismatches, agreement.executor_mismatches) == (1, 0)
    assert agreement.first_mismatch == parity.first


def test_the_sign_of_a_zero_counts() -> None:
    zero = Expected("acted", np.zeros(1, np.float32))
    assert zero.difference(Action(1, 1, 0, (0,), ())) is None
    difference = zero.difference(Action(1, 1, 0, (0x80000000,), ()))
    assert difference is not None
    assert difference.of("it") == "the action differs: it gives 80000000, here 00000000"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _, action: action.__imul__(-1) is None or None, "the action differs: input #16"),
        (lambda _, __: "held", "the status differs: input #16 .* ends in held, here in acted"),
        (lambda layers, _: layers.pop() and None, "the number of layers .* through 2, here 3"),
        (lambda layers, _: layers.append(layers.pop() ^ 1), "layer 3 of 3 differs: input #16 "),
    ],
)
def test_other_faults_are_named(
    board: ScriptedInfer, image: PolicyImage, change: Any, says: str
) -> None:
    board.spoil = in_input(16, change)
    parity = checked(board, image)
    assert parity.mismatches == 1
    assert re.match(says, parity.first)


def test_acting_on_what_is_not_finite_is_named(board: ScriptedInfer, image: PolicyImage) -> None:
    board.spoil = lambda tick, *_: "acted" if tick == COUNT + 2 else None
    parity = checked(board, image)
    assert "(inf in element 0) ends in acted, here in observation_not_finite" in parity.first


@pytest.mark.parametrize(
    ("share", "is_taken"), [(0, True), (1, True), (-1e-6, False), (1.001, False)]
)
def test_a_safe_action_is_within_its_range(
    image: PolicyImage, share: float, is_taken: bool
) -> None:
    (channel,) = image.actions
    stated = np.float32(channel.minimum + share * (channel.maximum - channel.minimum))
    taken = safe_action(image, Action(1, 0, 0, (int(stated.view(np.uint32)),), ()))
    assert (taken.tolist() == [stated]) == is_taken
    two = safe_action(image, Action(1, 0, 0, (0, 0), ()))
    assert two.tolist() == image.evaluate(np.full(3, np.nan, np.float32)).tolist()


# -- the executor ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "scenario"),
    [
        ("observation_not_finite", "nan in element 0"),
        ("observation_out_of_range", '"cos_angle" is -1.'),
        ("observation_stale", "an observation that is too old"),
        ("observation_out_of_order", "an observation from the future"),
        ("held", "a call before its time"),
    ],
)
def test_an_executor_that_lets_something_pass_is_named(
    board: ScriptedInfer, image: PolicyImage, status: str, scenario: str
) -> None:
    board.executor.blind_to = {status}
    outcome = check_ticks(board.client, image, (), board.executor.safe)
    assert outcome.failed > 0
    assert scenario in outcome.first
    assert f"here in {status}" in outcome.first
    parity = checked(board, image)
    assert (parity.mismatches, parity.first) == (0, outcome.first)
    assert not parity.holds


def test_an_executor_that_keeps_the_last_action_in_a_fault_is_named(
    board: ScriptedInfer, image: PolicyImage
) -> None:
    board.executor.safe = np.ones(1, np.float32)
    parity = checked(board, image)
    assert parity.mismatches == 0
    assert parity.first.startswith("the action differs: call 2 of the executor")


def test_every_scenario_begins_and_ends_well(image: PolicyImage) -> None:
    """The fault is between: what comes after shows that the executor recovers."""
    scenarios = list(Scenarios(image, (), np.zeros(1, np.float32)).all())
    assert len({scenario.name for scenario in scenarios}) == len(scenarios)
    for scenario in scenarios:
        assert scenario.calls[0].expected.status == "acted"
    times = [[call.tick.now_us for call in scenario.calls] for scenario in scenarios]
    assert any(of_one != sorted(of_one) for of_one in times), "the clock never wraps"
    asked = {call.expected.status for scenario in scenarios for call in scenario.calls}
    assert asked == {
        "acted",
        "held",
        "observation_stale",
        "observation_out_of_order",
        "observation_not_finite",
        "observation_out_of_range",
    }


def test_a_board_that_forgets_its_last_actions_is_named() -> None:
    image = parse_policy(sample_images()["remembering_pendulum"])
    board = ScriptedInfer(load_dialect(), image)
    assert checked(board, image).holds
    board.executor.forgets = True
    parity = checked(board, image)
    assert parity.mismatches == 0
    assert parity.first.startswith("the action differs: call 3 of the executor")


def test_a_boards_own_safe_action_is_taken_where_it_is_always_the_same() -> None:
    image = parse_policy(sample_images()["remembering_quadrotor_4"])
    board = ScriptedInfer(load_dialect(), image)
    stated = np.full(4, 0.25, np.float32)
    board.stated = stated
    nan = [float("nan")] * 29
    assert safe_action(image, board.client.forward(nan)).tolist() == [0.25] * 4
    assert checked(board, image).first.startswith("the action differs: call 2 of the executor")
    board.executor.safe = stated
    board.executor.normalized_safe = np.full(4, -0.5, np.float32)
    assert checked(board, image).holds
    board.executor.normalized_safe = np.full(4, -1, np.float32)
    assert checked(board, image).first.startswith("the action differs: call 3 of the executor")
    stated[:] = np.nan  # is none
    assert safe_action(image, board.client.forward(nan)).tolist() == [0.0] * 4


def test_a_lost_answer_begins_the_scenario_anew(board: ScriptedInfer, image: PolicyImage) -> None:
    values = tuple(channel.maximum for channel in image.observations)
    ticks = [Tick(number * 50_000, number * 50_000, values) for number in range(3)]
    board.copies = lambda number: 0 if number == 1 else 1
    answers = board.client.act_through(ticks)
    assert [answer.status for answer in answers] == [0, 0, 0]
    assert board.begun == 2
    assert board.heard == 5
    board.copies = lambda _: 0
    with pytest.raises(LinkLostError, match="an action"):
        board.client.act_through(ticks)
