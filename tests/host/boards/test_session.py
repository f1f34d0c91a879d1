"""A session on the fake board: the right board, hyperparameters bit by bit, training."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_board import FakeBoard, initial_state
from fake_experiment import FINGERPRINT
from fake_faults import Faults
from rltools_host.boards import session as session_module
from rltools_host.boards.connection import Address, Connection
from rltools_host.boards.messages import Event, Result, State, StatusText, TrainingProgress
from rltools_host.boards.session import BoardSession, ParameterClient, value_bits
from rltools_host.errors import BoardMismatchError, DamagedFileError, LinkLostError, RefusedError
from rltools_host.runs.checkpoint import build_image, parse_image
from scripted_link import BOARD, ScriptedLink
from session_calls import DIALECT, TABLE, connect, run_to_rest, shorten_times


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_times(monkeypatch)


def test_other_protocol_version_is_refused() -> None:
    with (
        FakeBoard(DIALECT, protocol_version=1) as board,
        pytest.raises(BoardMismatchError, match=r"version 1 of the protocol, this host version 3"),
    ):
        connect(board)


@pytest.mark.parametrize(
    ("expected", "sentence"),
    [
        (("other", FINGERPRINT, "host"), r'"fake-td3", not "other": flash it'),
        (
            ("fake-td3", 1, "host"),
            r"fingerprint 1234abcd, here 00000001\): flash it",
        ),
        (
            ("fake-td3", FINGERPRINT, "teensy41"),
            r'is a "host", not a "teensy41": give --board host',
        ),
    ],
)
def test_mismatch_names_both(expected: tuple[str, int, str], sentence: str) -> None:
    with FakeBoard(DIALECT) as board:
        session, identity = connect(board)
        with pytest.raises(BoardMismatchError, match=sentence):
            session.node.require(identity, *expected, "flash it")


# -- several nodes on the link ---------------------------------------------------------------------


def test_board_whose_address_is_not_known_is_asked_for() -> None:
    address = Address(7, 191)
    with FakeBoard(DIALECT, address=address) as board:
        session, identity = BoardSession.connect(board.link, DIALECT)
        assert (session.connection.target, identity.board) == (address, "host")
        assert session.node.identity() == identity


def test_board_at_another_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be that of another vehicle: it must not be commanded."""
    monkeypatch.setattr(session_module, "OTHER_LIMIT_S", 0.2)
    with (
        FakeBoard(DIALECT, address=Address(2, 191), board="teensy41") as board,
        pytest.raises(
            BoardMismatchError,
            match='is a "teensy41" with system id 2 and component id 191, not 1 and 191: give its',
        ),
    ):
        BoardSession.connect(board.link, DIALECT, Address(1, 191), 5.0)


def test_board_is_found_among_others() -> None:
    """The others answer first, with identities of their own."""
    with FakeBoard(DIALECT, faults=Faults(strangers=True)) as board:
        session, identity = connect(board)
        assert (identity.board, identity.state) == ("host", State.IDLE)
        assert session.connection.target == board.address
        assert session.node.identity() == identity
        assert session.node.stack_use() == {"stack": 4096, "stack_peak": 1024}


# -- hyperparameters: every bit of them, refusals, other programs that ask too ---------------------


@pytest.mark.parametrize(
    "values",
    [
        {"seed": 0, "steps": 1, "learning_rate": 0.0},
        {"seed": 0xFFFFFFFF, "learning_rate": 3e-4, "adam_epsilon": 1e-30},
        {"seed": 0x7F800001},  # as a float a signaling NaN, which a Python float does not keep
        {"seed": 0xFFBFFFFF},
    ],
)
def test_hyperparameters_arrive_bit_by_bit(values: dict[str, float]) -> None:
    with FakeBoard(DIALECT) as board:
        session, _ = connect(board)
        session.parameters.set(TABLE, values)
        assert board.parameters_set == list(values)
        for name, value in values.items():
            assert board.values[name] == value_bits(TABLE[name].type, value)


@pytest.mark.parametrize(
    ("is_silent", "reason"),
    [(True, ""), (False, r' \(it says "hyperparameter refused: out of bounds"\)')],
)
def test_refusal_with_and_without_its_reason(is_silent: bool, reason: str) -> None:
    """Whose text may be lost: then the value counts as refused when it is stated again."""
    faults = Faults(refuse_parameter="learning_rate", silent_refusals=is_silent)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        with pytest.raises(RefusedError, match=rf"refuses learning_rate=0.5: .* --set{reason}$"):
            session.parameters.set(TABLE, {"learning_rate": 0.5})


def parameter_value(name: str, value: float) -> Any:
    return DIALECT.MAVLink_param_value_message(name.encode(), value, 9, 7, 0)


def test_one_old_value_without_an_answer_is_no_refusal() -> None:
    """The board has gone after another program was answered."""
    link = ScriptedLink(DIALECT)
    link.put(parameter_value("learning_rate", 0.25))
    answers = [[parameter_value("learning_rate", 0.25)]]
    link.answer = lambda _: link.put(*(answers.pop() if answers else []))
    connection = Connection(link, DIALECT, BOARD, link.clock)
    with pytest.raises(LinkLostError, match="does not answer for hyperparameter learning_rate"):
        ParameterClient(connection).set(TABLE, {"learning_rate": 0.5})


@given(st.lists(st.sampled_from(["ours", "old", "other", "text"]), max_size=6), st.booleans())
def test_order_of_messages_does_not_matter(before: list[str], accepts: bool) -> None:
    """Whatever else comes, a value that the board took is accepted and another is refused."""
    messages = {
        "old": parameter_value("learning_rate", 0.25),
        "ours": parameter_value("learning_rate", 0.5 if accepts else 0.25),
        "other": parameter_value("adam_epsilon", 0.5),
        "text": DIALECT.MAVLink_statustext_message(3, b"checkpoint refused: damaged"),
    }
    link = ScriptedLink(DIALECT)
    link.answer = lambda _: link.put(*(messages[name] for name in [*before, "ours"]))
    client = ParameterClient(Connection(link, DIALECT, BOARD, link.clock))
    with contextlib.nullcontext() if accepts else pytest.raises(RefusedError):
        client.set(TABLE, {"learning_rate": 0.5})


# -- training: restarts, late answers, refused checkpoints -----------------------------------------


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
        for event in session.training.events():
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
