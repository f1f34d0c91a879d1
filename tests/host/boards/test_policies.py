"""The client of a board's policies: lost answers, refusals, and what it makes of them."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from rltools_host.boards import messages
from rltools_host.boards.messages import SlotUse
from rltools_host.boards.session import BoardSession
from rltools_host.build.cmake import load_dialect
from rltools_host.errors import RefusedError
from rltools_host.tree import TREE
from scripted_link import BOARD
from scripted_policies import ScriptedPolicies, number_of

DIALECT: Any = load_dialect()
TRY, CONFIRM, ROLL_BACK = (
    DIALECT.MAV_CMD_RLT_TRY,
    DIALECT.MAV_CMD_RLT_CONFIRM,
    DIALECT.MAV_CMD_RLT_ROLL_BACK,
)
OLD, NEW = b"the policy before", b"the policy that is pushed" * 20
OLD_SHA, NEW_SHA = hashlib.sha256(OLD).hexdigest(), hashlib.sha256(NEW).hexdigest()


@pytest.fixture
def board() -> ScriptedPolicies:
    """Its slot 0 has the active policy OLD."""
    board = ScriptedPolicies(DIALECT)
    board.put(SlotUse.ACTIVE, OLD, 0)
    return board


@pytest.fixture
def session(board: ScriptedPolicies) -> BoardSession:
    return BoardSession(board.connection)


def test_slots_are_of_one_answer(board: ScriptedPolicies, session: BoardSession) -> None:
    """One of the two messages is lost; what came of the first answer is of another time."""
    board.lost["RLT_POLICY_SLOT"] = 1
    seen: list[Any] = []
    answer = board.link.answer

    def change_after_the_first(message: Any) -> None:
        answer(message)
        seen.append(message)
        if len(seen) == 1:
            board.put(SlotUse.PREVIOUS, OLD, 0)
            board.put(SlotUse.ACTIVE, NEW, 1)

    board.link.answer = change_after_the_first
    slots = session.policies.slots()
    assert [slot.use for slot in slots.slots] == [SlotUse.PREVIOUS, SlotUse.ACTIVE]
    assert len(seen) == 2


def test_a_policy_is_staged_tried_and_confirmed(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    staged = session.policies.upload(NEW, NEW_SHA)
    assert (staged.slot, staged.use) == (1, SlotUse.STAGED)
    trial = session.policies.try_candidate(NEW_SHA, 10.0).trial
    assert trial is not None
    assert trial.sha256 == NEW_SHA
    active = session.policies.confirm(NEW_SHA).active
    assert active is not None
    assert active.slot == 1
    sent = [command[:3] for command in board.commands if command[0] in (TRY, CONFIRM)]
    assert sent == [(TRY, 10.0, number_of(NEW)), (CONFIRM, 0.0, number_of(NEW))]


@pytest.mark.parametrize("lost", [1, 3])
def test_lost_acknowledgements_are_asked_for_again(
    board: ScriptedPolicies, session: BoardSession, lost: int
) -> None:
    session.policies.upload(NEW, NEW_SHA)
    for command, carry_out in (
        (TRY, lambda: session.policies.try_candidate(NEW_SHA, 10.0)),
        (CONFIRM, lambda: session.policies.confirm(NEW_SHA)),
        (ROLL_BACK, lambda: session.policies.roll_back(NEW_SHA)),
    ):
        board.commands.clear()
        board.lost["COMMAND_ACK"] = lost + (command == ROLL_BACK)  # which asks for the slots first
        carry_out()
        sent = [entry[3] for entry in board.commands if entry[0] == command]
        assert sent == list(range(lost + 1))
    assert board.uses == [SlotUse.ACTIVE, SlotUse.EMPTY]


def test_commands_name_the_trial_that_they_mean(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    """Also where they are repeated. Without a trial of this client they mean any."""

    def sent() -> list[float]:
        asked = DIALECT.MAV_CMD_REQUEST_MESSAGE
        pairs = zip(board.commands, board.trials, strict=True)
        numbers = [trial for command, trial in pairs if command[0] != asked]
        board.commands.clear()
        board.trials.clear()
        return numbers

    seen = set()
    for end in (session.policies.confirm, session.policies.roll_back):
        session.policies.upload(NEW, NEW_SHA)
        board.lost["COMMAND_ACK"] = 1
        session.policies.try_candidate(NEW_SHA, 10.0)
        end(NEW_SHA)
        numbers = sent()
        assert len(numbers) == 3
        assert len(set(numbers)) == 1
        seen.update(numbers)
        if end == session.policies.confirm:
            session.policies.roll_back(NEW_SHA)
            assert sent() == [0.0]
    assert len(seen) == 2
    assert all(0 < number < 2**24 and number == int(number) for number in seen)


def test_a_roll_back_whose_repetition_is_denied_was_done(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    board.forgets_roll_backs = True
    board.put(SlotUse.PREVIOUS, OLD, 0)
    board.put(SlotUse.ACTIVE, NEW, 1)
    board.lost["COMMAND_ACK"] = 2
    slots = session.policies.roll_back(NEW_SHA)
    assert slots.active is not None
    assert slots.active.sha256 == OLD_SHA
    assert board.numbers == [ROLL_BACK, ROLL_BACK]


def test_a_roll_back_to_the_same_image_in_the_other_slot(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    board.put(SlotUse.PREVIOUS, OLD, 1)
    slots = session.policies.roll_back(OLD_SHA)
    assert slots.active is not None
    assert slots.active.slot == 1


def test_what_does_not_act_is_not_rolled_back(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    """A trial that the board has dropped by itself does not act."""
    board.put(SlotUse.PREVIOUS, NEW, 1)
    assert session.policies.roll_back(NEW_SHA).active is not None
    assert board.numbers == []


def test_armed_boards_refuse_and_the_sentence_says_so(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    board.put(SlotUse.PREVIOUS, NEW, 1)
    board.armed = True
    with pytest.raises(RefusedError, match="refuses to roll back: it is armed, disarm it first"):
        session.policies.roll_back(OLD_SHA)
    board.armed = False
    session.policies.upload(NEW, NEW_SHA)
    board.armed = True
    with pytest.raises(RefusedError, match="refuses to try the policy: it is armed"):
        session.policies.try_candidate(NEW_SHA, 10.0)


def test_a_trial_that_was_dropped_meanwhile(board: ScriptedPolicies, session: BoardSession) -> None:
    session.policies.upload(NEW, NEW_SHA)
    session.policies.try_candidate(NEW_SHA, 10.0)
    board.deadline_passes = True
    with pytest.raises(
        RefusedError, match="refuses to confirm the policy: it was not confirmed in time"
    ):
        session.policies.confirm(NEW_SHA)


def test_another_programs_candidate_is_not_tried(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    session.policies.upload(NEW, NEW_SHA)
    board.put(SlotUse.EMPTY, b"", 1)
    with pytest.raises(RefusedError, match="another program has changed its policies meanwhile"):
        session.policies.try_candidate(NEW_SHA, 10.0)


def test_bytes_that_changed_on_the_way(board: ScriptedPolicies, session: BoardSession) -> None:
    """In the hash that the board states, and in what it reads back."""
    with pytest.raises(RefusedError, match="holds other bytes than it was sent"):
        session.policies.upload(NEW, OLD_SHA)
    board.files.wrong_crc32 = True
    with pytest.raises(RefusedError, match="holds other bytes than it was sent"):
        session.policies.upload(NEW, NEW_SHA)


def test_an_action_keeps_its_bits(board: ScriptedPolicies, session: BoardSession) -> None:
    board.action_bits = [0x80000000]
    board.lost["RLT_ACTION"] = 1
    action = session.policies.forward([0.5, -1.0])
    assert action.action_bits == (0x80000000,)
    assert (action.layers, action.cost, action.status) == ((7, 8), 12, 0)
    assert len(board.observations) == 2
    first = board.observations[0]
    assert (first.dimension, first.first, first.mode) == (2, 0, DIALECT.RLT_OBSERVE_FORWARD)
    assert list(first.values) == [0.5, -1.0, *[0.0] * 46]


def test_the_answer_to_another_observation_is_passed_over(
    board: ScriptedPolicies, session: BoardSession
) -> None:
    session.policies.forward([1.0])
    answer = board.link.answer

    def late_first(message: Any) -> None:
        late = DIALECT.MAVLink_rlt_action_message(1, 0, 0, 1, 0, [3.0] * 24, [0] * 16)
        board.link.put(late, sender=BOARD)
        answer(message)

    board.link.answer = late_first
    assert session.policies.forward([1.0]).action_bits == (0x80000000,)


# -- the tables ------------------------------------------------------------------------------------


def enumerators(name: str) -> list[str]:
    """Return the names of an enumeration in a header of policy/."""
    folder = TREE.include / "rltools" / "policy"
    source = "".join((folder / file).read_text() for file in ("slots.h", "format.h", "executor.h"))
    body = re.search(rf"enum class {name} : std::uint8_t {{(.*?)}};", source, re.DOTALL)
    assert body is not None
    return re.findall(r"\w+", re.sub(r"//.*", "", body.group(1)))


def test_names_are_those_of_the_boards() -> None:
    assert list(messages.POLICY_REASONS) == enumerators("PolicyReason")
    assert list(messages.SLOT_ERRORS) == enumerators("SlotError")
    assert list(messages.DROP_REASONS) == enumerators("DropReason")
    assert list(messages.EXECUTOR_STATUSES) == enumerators("ExecutorStatus")
