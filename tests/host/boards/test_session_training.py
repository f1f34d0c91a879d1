"""Training on the fake board: restarts, late answers, refused checkpoints, other nodes."""

from __future__ import annotations

import pytest

from fake_board import FakeBoard, initial_state
from fake_experiment import FINGERPRINT
from fake_faults import Faults
from rltools_host.boards.messages import (
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
