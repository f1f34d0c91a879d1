"""Training on the fake board: commands, reports and results, also over bad links."""

from __future__ import annotations

import math

import pytest

from fake_board import FakeBoard, initial_state, metrics_at
from fake_experiment import FINGERPRINT
from fake_faults import Faults
from rltools_host.boards.messages import (
    Evaluation,
    Event,
    Result,
    State,
    StatusText,
    TrainingProgress,
)
from rltools_host.errors import DamagedFileError, LinkLostError
from rltools_host.runs.checkpoint import build_image, parse_image
from session_calls import DIALECT, TABLE, connect, run_to_rest, shorten_times


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_times(monkeypatch)


def test_training_from_start_to_result() -> None:
    """The second half comes when the host has been idle."""
    with FakeBoard(DIALECT, waits_for_pause_at=250) as board:
        session, _ = connect(board)
        session.parameters.set(TABLE, {"steps": 500, "report_every": 50})
        session.training.start()
        events = list(session.training.events(board.go_on, 0.02))
    progress = [event for event in events if isinstance(event, TrainingProgress)]
    assert [event.step for event in progress] == list(range(50, 501, 50))
    assert math.isnan(progress[0].last_return)
    assert (progress[-1].last_return, progress[-1].updates, progress[-1].counter) == (
        -500,
        400,
        500_000,
    )
    for event in progress:
        assert event.metrics == pytest.approx(metrics_at(event.step), nan_ok=True)
    evaluations = [event for event in events if isinstance(event, Evaluation)]
    assert [(e.step, e.return_mean) for e in evaluations] == [
        (step, -1000.0 + step) for step in range(100, 501, 100)
    ]
    result = events[-1]
    assert isinstance(result, Result)
    assert (result.step, result.finished, result.state_sha256) == (500, True, board.state_sha256)
    assert session.connection.messages_lost == 0


@pytest.mark.parametrize("seed", range(4))
def test_training_over_a_bad_link(seed: int) -> None:
    """Some reports are lost, and counted; none is wrong; the result comes in any case."""
    faults = Faults(drop=0.15, flip=0.1, repeat=0.2, noise=0.2, drop_from_host=0.2, seed=seed)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        session.parameters.set(TABLE, {"steps": 400, "report_every": 10})
        session.training.start()
        events = run_to_rest(session)
        steps = [event.step for event in events if isinstance(event, TrainingProgress)]
        assert steps == sorted(set(steps)), "a report came twice or out of order"
        assert set(steps) <= set(range(10, 401, 10))
        assert session.connection.messages_lost >= 40 - len(steps)
        result = events[-1]
        assert isinstance(result, Result)
        assert result.state_sha256 == board.state_sha256


def test_reports_that_come_while_a_command_waits_are_kept() -> None:
    with FakeBoard(DIALECT, waits_for_pause_at=50) as board:
        session, _ = connect(board)
        session.parameters.set(TABLE, {"report_every": 1})
        session.training.start()
        board.wait_for_step(50)
        session.training.pause()
        events = run_to_rest(session)
        steps = [event.step for event in events if isinstance(event, TrainingProgress)]
        assert steps == list(range(1, 51))
        result = events[-1]
        assert isinstance(result, Result)
        assert result.step == 50


def test_unplugged_while_training_keeps_what_came() -> None:
    with FakeBoard(DIALECT, faults=Faults(unplug_at_step=300)) as board:
        session, _ = connect(board)
        session.training.start()
        events: list[Event] = []
        with pytest.raises(LinkLostError, match="lost the board on the fake board"):
            events.extend(session.training.events(idle_s=0.02))
        assert [e.step for e in events if isinstance(e, TrainingProgress)] == [100, 200, 300]


def test_unplugged_while_a_command_waits_keeps_what_came() -> None:
    faults = Faults(unplug_at_step=300)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        session.training.start()
        board.wait_until_gone()  # all 300 steps are done
        with pytest.raises(LinkLostError):
            session.training.pause()
        kept = [
            e.step for e in session.training.remaining_events() if isinstance(e, TrainingProgress)
        ]
        assert kept == [100, 200, 300]


def test_restart_of_the_board_is_noticed() -> None:
    with FakeBoard(DIALECT, waits_for_pause_at=50) as board:
        session, _ = connect(board)
        session.training.start()
        board.state = State.IDLE
        with pytest.raises(LinkLostError, match="restarted and lost its training state"):
            run_to_rest(session)


def test_late_answer_does_not_tell_how_the_board_stands_now() -> None:
    """A question asked twice is answered twice: the second answer is older than the checkpoint."""
    image = build_image(FINGERPRINT, 5, initial_state(0))
    with FakeBoard(DIALECT) as board:
        session, identity = connect(board)
        assert identity.state == State.IDLE
        session.connection.request_message(DIALECT.MAVLINK_MSG_ID_RLT_IDENTITY)
        session.training.upload_checkpoint(image)
        assert session.node.identity().state == State.PAUSED


def test_refused_checkpoint_names_the_reason() -> None:
    image = build_image(FINGERPRINT, 5, bytes(100))
    with FakeBoard(DIALECT, faults=Faults(flip_upload=True)) as board:
        session, _ = connect(board)
        with pytest.raises(
            DamagedFileError,
            match="refuses the checkpoint: checkpoint refused: the payload does not match its SHA",
        ):
            session.training.upload_checkpoint(image)


# -- messages that answer nothing ------------------------------------------------------------------


def test_training_among_other_nodes_and_hosts() -> None:
    """Wrong reports, results and refusals of others come before each of the board's."""
    faults = Faults(strangers=True, repeat=0.2)
    with FakeBoard(DIALECT, faults=faults, waits_for_pause_at=150) as board:
        session, _ = connect(board)
        session.parameters.set(TABLE, {"steps": 300, "report_every": 10})
        session.training.start()
        events: list[Event] = []
        for event in session.training.events(idle_s=0.02):
            events.append(event)
            if isinstance(event, TrainingProgress) and event.step == 100:
                session.training.pause()
        paused = events.pop()
        assert isinstance(paused, Result)
        assert not paused.finished
        assert 100 <= paused.step <= 150
        assert session.training.result() == paused
        # Two answers to the same question: the second must not pass for the result of what follows.
        session.connection.request_message(DIALECT.MAVLINK_MSG_ID_RLT_RESULT)
        session.connection.request_message(DIALECT.MAVLINK_MSG_ID_RLT_RESULT)
        session.training.resume()
        events += run_to_rest(session)
        image = session.files.download("/checkpoint.rltc")
        assert parse_image(image, "the board").payload == board._payload
        session.training.upload_checkpoint(image)
    steps = [event.step for event in events if isinstance(event, TrainingProgress)]
    assert steps == list(range(10, 301, 10))
    assert not [event for event in events if isinstance(event, StatusText)]
    result = events[-1]
    assert isinstance(result, Result)
    assert (result.step, result.finished, result.state_sha256) == (300, True, board.state_sha256)
