"""The training client over a link in memory: repeated, reordered, late and foreign messages."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltools_host.boards.connection import Connection
from rltools_host.boards.file_transfer import FileClient
from rltools_host.boards.messages import State, TrainingProgress
from rltools_host.boards.training import TrainingClient
from rltools_host.errors import BrokenEnvironmentError, TrainingFaultError
from scripted_link import BOARD, ScriptedLink
from session_calls import DIALECT, shorten_times


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_times(monkeypatch)


def scripted() -> tuple[ScriptedLink, TrainingClient]:
    link = ScriptedLink(DIALECT)
    connection = Connection(link, DIALECT, BOARD, link.clock)
    return link, TrainingClient(connection, FileClient(connection))


def progress(step: int, counter: int = 0) -> Any:
    nan = math.nan
    metrics = [nan] * 16
    return DIALECT.MAVLink_rlt_progress_message(counter, step, 9, 0, 0, nan, nan, metrics)


def result_message(step: int) -> Any:
    return DIALECT.MAVLink_rlt_result_message(0, 0, step, 1, 1, State.FINISHED, [0] * 32)


def acknowledgement(command: int, result: int = 0) -> Any:
    return DIALECT.MAVLink_command_ack_message(command, result)


def test_acknowledgement_of_another_command_is_not_taken() -> None:
    link, training = scripted()

    def answer(message: Any) -> None:
        link.put(acknowledgement(message.command + 1, DIALECT.MAV_RESULT_DENIED))
        link.put(acknowledgement(message.command))

    link.answer = answer
    training.start()
    training.pause()
    training.resume()
    assert [message.confirmation for message in link.written] == [0, 0, 0]
    assert link.written[1].param1 == 0  # which is reserved


def test_repeated_command_counts_up_its_confirmation_and_keeps_its_token() -> None:
    link, training = scripted()
    link.answer = lambda m: link.put(acknowledgement(m.command)) if m.confirmation == 2 else None
    for lead in (training.start, training.resume):
        lead(-2.5)
        assert [message.confirmation for message in link.written[-3:]] == [0, 1, 2]
        assert len({message.param1 for message in link.written[-3:]}) == 1
        assert link.written[-1].param1 != 0
    assert link.written[0].param1 != link.written[-1].param1, "each command has its own"


def test_a_command_is_repeated_for_as_long_as_its_answer_is_excused() -> None:
    """More often than its `confirmation`, one byte, can count."""
    link, training = scripted()
    training._connection.is_excused = lambda: link.now < 40.0
    link.answer = lambda m: link.put(acknowledgement(m.command)) if link.now >= 40.0 else None
    training.pause()
    assert len(link.written) > 300
    counted = [message.confirmation for message in link.written]
    assert counted == [min(number, 255) for number in range(len(counted))]


def test_what_came_before_a_command_was_obeyed_does_not_count() -> None:
    """An old result ends nothing; a result in the same chunk as the acknowledgement does."""
    link, training = scripted()
    link.put(result_message(1))
    link.answer = lambda message: link.put(
        result_message(2), progress(5), acknowledgement(message.command), result_message(7)
    )
    training.resume()
    reports = list(training.events())
    assert [type(event).__name__ for event in reports] == ["TrainingProgress", "Result"]
    assert reports[-1].step == 7  # type: ignore[union-attr]


@given(st.lists(st.integers(0, 5), max_size=20))
def test_repeated_and_late_reports_are_dropped(indices: list[int]) -> None:
    """Whatever a network does with reports, the steps ascend; none is invented."""
    link, training = scripted()
    link.put(*(progress(10 * index) for index in indices), result_message(60))
    link.now = 0.0
    events = list(training.events())
    steps = [event.step for event in events if isinstance(event, TrainingProgress)]
    expected: list[int] = []
    for index in indices:
        if not expected or 10 * index > expected[-1]:
            expected.append(10 * index)
    assert steps == expected


def test_reports_of_a_new_run_begin_again() -> None:
    link, training = scripted()
    link.put(progress(500), result_message(500))
    assert len(list(training.events())) == 2
    link.answer = lambda message: link.put(acknowledgement(message.command))
    training.start()
    link.put(progress(10), result_message(20))
    assert len(list(training.events())) == 2


def identity_message(state: int) -> Any:
    return DIALECT.MAVLink_rlt_identity_message(
        1, 1, 1, 1, 1, state, 0, b"e", b"b", b"d", b"r", [0] * 16
    )


def refuse(link: ScriptedLink, state: int, silent: int = 0) -> None:
    """The script refuses commands, after it has left some unanswered, and is in this state."""

    def answer(message: Any) -> None:
        if message.command == DIALECT.MAV_CMD_REQUEST_MESSAGE:
            link.put(identity_message(state))
        elif message.confirmation >= silent:
            link.put(text(3, b"not now"))
            link.put(acknowledgement(message.command, DIALECT.MAV_RESULT_DENIED))

    link.answer = answer


def test_repeated_command_that_was_carried_out_at_first_is_no_error() -> None:
    """Its acknowledgement was lost, and the state that it leads to refuses it."""
    link, training = scripted()
    refuse(link, State.TRAINING, silent=1)
    training.start()
    refuse(link, State.IDLE, silent=1)
    with pytest.raises(TrainingFaultError, match="is idle and refuses to start"):
        training.start()


# -- how the board stands --------------------------------------------------------------------------


def text(severity: int, content: bytes) -> Any:
    return DIALECT.MAVLink_statustext_message(severity, content)


def test_a_step_that_the_board_names_is_of_the_environment() -> None:
    """Its text comes in pieces, and no learning rate is to blame."""
    link, training = scripted()
    whole = (
        b"training stopped: a reward is not finite; state angle_rad 1e38, velocity_rad_s -8; "
        b"action torque 0.25"
    )
    for index in range(3):
        piece = whole[50 * index : 50 * (index + 1)]
        link.put(DIALECT.MAVLink_statustext_message(2, piece, 1, index))
    link.put(identity_message(State.FAULT))
    sentence = (
        r"script: a reward is not finite; state angle_rad 1e38, velocity_rad_s -8; "
        r"action torque 0\.25; fix the environment, or end its episodes before$"
    )
    with pytest.raises(BrokenEnvironmentError, match=sentence):
        list(training.events())


def test_identity_and_fault_of_an_earlier_run_are_forgotten() -> None:
    link, training = scripted()
    link.put(text(2, b"of before"), identity_message(State.FAULT))
    training.poll(0.1)
    link.answer = lambda message: link.put(acknowledgement(message.command))
    training.start()
    link.put(progress(1))
    link.put(result_message(1))
    assert len(list(training.events())) == 2
    training.start()
    link.put(identity_message(State.FAULT))
    with pytest.raises(TrainingFaultError, match="on the script: a value is not finite; try"):
        list(training.events())
