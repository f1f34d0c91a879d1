"""Sessions with the fake board: identity, parameters, commands, events, also over bad links."""

from __future__ import annotations

import math
import os
import struct
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_board import FINGERPRINT, FakeBoard, Faults, fake_experiment, initial_state
from rltools_host.build.protocol import load_dialect
from rltools_host.clients import session as session_module
from rltools_host.clients.session import (
    BoardSession,
    Evaluation,
    Event,
    Identity,
    Result,
    State,
    StatusText,
    TrainingProgress,
    value_bits,
)
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    LinkLostError,
    PortError,
    TrainingFaultError,
    VerificationError,
)
from rltools_host.runs.checkpoint import build_image, parse_image

DIALECT: Any = load_dialect()
EXPERIMENT = fake_experiment()
TABLE = {parameter.name: parameter for parameter in EXPERIMENT.hyperparameters}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times after which a session asks again, made short."""
    monkeypatch.setattr(session_module, "ANSWER_TIMEOUT_S", 0.1)
    monkeypatch.setattr(session_module, "ANSWER_LIMIT_S", 3.0)
    monkeypatch.setattr(session_module, "QUIET_S", 0.2)


def connect(board: FakeBoard) -> tuple[BoardSession, Identity]:
    return BoardSession.connect(board.link, DIALECT, 5.0)


def run_to_rest(session: BoardSession) -> list[Event]:
    return list(session.events(idle_s=0.02))


def test_identity() -> None:
    with FakeBoard(DIALECT) as board:
        session, identity = connect(board)
        assert identity == Identity(
            experiment="fake-td3",
            board="host",
            device="Fake",
            revision="r1",
            fingerprint=FINGERPRINT,
            protocol_version=1,
            state=State.IDLE,
            counts_instructions=False,
            learner_bytes=1000,
            replay_bytes=5000,
            scratch_bytes=2000,
            unique_id=bytes(range(16)).hex(),
        )
        session.require(identity, "fake-td3", FINGERPRINT, "host", "flash it")


def test_silent_port_is_named() -> None:
    with FakeBoard(DIALECT, talk=lambda _: None) as board:
        began = time.monotonic()
        with pytest.raises(
            PortError, match=r"no board answers on the fake board within 0.3 s: .*rlt"
        ):
            BoardSession.connect(board.link, DIALECT, 0.3)
        assert time.monotonic() - began < 2


def test_other_firmware_is_named() -> None:
    def print_text(descriptor: int) -> None:
        for _ in range(100):
            os.write(descriptor, b"Hello from the blink example!\r\n")
            time.sleep(0.005)

    with (
        FakeBoard(DIALECT, talk=print_text) as board,
        pytest.raises(BoardMismatchError, match=r"runs other firmware \(\d+ bytes came.*rlt flash"),
    ):
        BoardSession.connect(board.link, DIALECT, 0.3)


def test_other_mavlink_device_is_named() -> None:
    def beat(descriptor: int) -> None:
        encoder = session_module.FrameEncoder(DIALECT, 1, 1)
        for _ in range(100):
            os.write(
                descriptor, encoder.encode(DIALECT.MAVLink_heartbeat_message(2, 12, 0, 0, 3, 3))
            )
            time.sleep(0.005)

    with (
        FakeBoard(DIALECT, talk=beat) as board,
        pytest.raises(BoardMismatchError, match="speaks MAVLink but is not one of our boards"),
    ):
        BoardSession.connect(board.link, DIALECT, 0.3)


def test_other_protocol_version_is_refused() -> None:
    with (
        FakeBoard(DIALECT, protocol_version=2) as board,
        pytest.raises(BoardMismatchError, match=r"version 2 of the protocol, this host version 1"),
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
            session.require(identity, *expected, "flash it")


@pytest.mark.parametrize(
    "values",
    [
        {"seed": 0, "steps": 1, "learning_rate": 0.0},
        {"seed": 0xFFFFFFFF, "learning_rate": 3e-4, "adam_epsilon": 1e-30},
        {"seed": 0x7F800001},  # as a float a signalling NaN, which a Python float does not keep
        {"seed": 0xFFBFFFFF},
    ],
)
def test_hyperparameters_arrive_bit_by_bit(values: dict[str, float]) -> None:
    with FakeBoard(DIALECT) as board:
        session, _ = connect(board)
        session.set_hyperparameters(TABLE, values)
        assert board.parameters_set == list(values)
        for name, value in values.items():
            assert board.values[name] == value_bits(TABLE[name].type, value)


def test_hyperparameters_over_a_bad_link() -> None:
    faults = Faults(drop=0.3, drop_from_host=0.3, repeat=0.3, flip=0.1)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        values = {name: parameter.maximum for name, parameter in TABLE.items()}
        session.set_hyperparameters(TABLE, values)
        assert board.values == {n: value_bits(TABLE[n].type, v) for n, v in values.items()}


def test_refused_hyperparameter() -> None:
    with FakeBoard(DIALECT, faults=Faults(refuse_parameter="learning_rate")) as board:
        session, _ = connect(board)
        with pytest.raises(VerificationError, match=r"refuses learning_rate=0.5: choose another"):
            session.set_hyperparameters(TABLE, {"learning_rate": 0.5})


@given(st.floats(width=32))
def test_value_bits_of_floats(value: float) -> None:
    expected = struct.unpack("<I", struct.pack("<f", value))[0]
    assert value_bits("F32", value) == value_bits("f32", value) == expected


def test_training_from_start_to_result() -> None:
    with FakeBoard(DIALECT) as board:
        session, _ = connect(board)
        session.set_hyperparameters(TABLE, {"steps": 500, "report_every": 50})
        session.start()
        idle_calls = 0

        def idle() -> None:
            nonlocal idle_calls
            idle_calls += 1

        events = list(session.events(idle, 0.02))
    progress = [event for event in events if isinstance(event, TrainingProgress)]
    assert [event.step for event in progress] == list(range(50, 501, 50))
    assert math.isnan(progress[0].last_return)
    assert (progress[-1].last_return, progress[-1].updates, progress[-1].counter) == (
        -500,
        400,
        500_000,
    )
    evaluations = [event for event in events if isinstance(event, Evaluation)]
    assert [(e.step, e.return_mean) for e in evaluations] == [
        (step, -1000.0 + step) for step in range(100, 501, 100)
    ]
    result = events[-1]
    assert isinstance(result, Result)
    assert (result.step, result.finished, result.state_sha256) == (500, True, board.state_sha256)
    assert idle_calls > 0
    assert session.decoder.messages_lost == 0


@pytest.mark.parametrize("seed", range(4))
def test_training_over_a_bad_link(seed: int) -> None:
    """Some reports are lost, and counted; none is wrong; the result comes in any case."""
    faults = Faults(drop=0.15, flip=0.1, repeat=0.2, noise=0.2, drop_from_host=0.2, seed=seed)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        session.set_hyperparameters(TABLE, {"steps": 400, "report_every": 10})
        session.start()
        events = run_to_rest(session)
        steps = [event.step for event in events if isinstance(event, TrainingProgress)]
        assert steps == sorted(set(steps)), "a report came twice or out of order"
        assert set(steps) <= set(range(10, 401, 10))
        assert session.decoder.messages_lost >= 40 - len(steps)
        result = events[-1]
        assert isinstance(result, Result)
        assert result.state_sha256 == board.state_sha256


def test_lost_result_is_asked_for_again() -> None:
    with FakeBoard(DIALECT, faults=Faults(lose_messages={"RLT_RESULT"})) as board:
        session, _ = connect(board)
        session.start()
        assert isinstance(run_to_rest(session)[-1], Result)


def test_lost_acknowledgement_of_start() -> None:
    """The repeated command is refused by a board that trains already."""
    faults = Faults(lose_messages={"COMMAND_ACK"})
    with FakeBoard(DIALECT, seconds_per_step=0.002) as board:
        session, _ = connect(board)
        board.faults = faults
        session.start()
        assert board.commands.count(DIALECT.MAV_CMD_RLT_START) == 2
        session.pause()
        assert isinstance(run_to_rest(session)[-1], Result)


def test_pause_and_go_on() -> None:
    with FakeBoard(DIALECT, seconds_per_step=0.001) as board:
        session, _ = connect(board)
        session.start()
        for event in session.events(idle_s=0.02):
            if isinstance(event, TrainingProgress) and event.step == 200:
                session.pause()
        assert isinstance(event, Result)
        assert not event.finished
        assert 200 <= event.step < 1000
        assert session.result() == event
        # Two answers to the same question: the second must not pass for the result of what follows.
        session._request_message(DIALECT.MAVLINK_MSG_ID_RLT_RESULT)
        session._request_message(DIALECT.MAVLINK_MSG_ID_RLT_RESULT)
        session.proceed()
        last = run_to_rest(session)[-1]
        assert isinstance(last, Result)
        assert (last.step, last.finished) == (1000, True)


def test_reports_that_come_while_a_command_waits_are_kept() -> None:
    with FakeBoard(DIALECT, seconds_per_step=0.0005) as board:
        session, _ = connect(board)
        session.set_hyperparameters(TABLE, {"report_every": 1})
        session.start()
        time.sleep(0.1)
        session.pause()
        events = run_to_rest(session)
        steps = [event.step for event in events if isinstance(event, TrainingProgress)]
        result = events[-1]
        assert isinstance(result, Result)
        assert steps == list(range(1, result.step + 1))


def test_command_that_the_state_forbids() -> None:
    with FakeBoard(DIALECT) as board:
        session, _ = connect(board)
        with pytest.raises(
            TrainingFaultError, match=r"the fake board is idle and refuses to go on"
        ):
            session.proceed()


def test_not_finite_is_a_training_fault() -> None:
    with FakeBoard(DIALECT, faults=Faults(not_finite_at_step=150)) as board:
        session, _ = connect(board)
        session.start()
        events: list[Event] = []
        with pytest.raises(
            TrainingFaultError,
            match="training stopped on the fake board: critic_1 loss is not finite at",
        ):
            events.extend(session.events(idle_s=0.02))
        assert isinstance(events[0], TrainingProgress)
        assert events[-1] == StatusText(2, "critic_1 loss is not finite at step 150")


def test_fault_whose_text_is_lost() -> None:
    faults = Faults(not_finite_at_step=150, lose_messages={"STATUSTEXT"})
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        session.start()
        with pytest.raises(TrainingFaultError, match="a value is not finite"):
            run_to_rest(session)


def test_unplugged_while_training_keeps_what_came() -> None:
    with FakeBoard(DIALECT, faults=Faults(unplug_at_step=300)) as board:
        session, _ = connect(board)
        session.start()
        events: list[Event] = []
        with pytest.raises(LinkLostError, match="lost the board on the fake board"):
            events.extend(session.events(idle_s=0.02))
        assert [e.step for e in events if isinstance(e, TrainingProgress)] == [100, 200, 300]


def test_unplugged_while_a_command_waits_keeps_what_came() -> None:
    faults = Faults(unplug_at_step=300)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        session.start()
        time.sleep(0.2)  # all 300 steps are done and the board has gone
        with pytest.raises(LinkLostError):
            session.pause()
        kept = [e.step for e in session.remaining_events() if isinstance(e, TrainingProgress)]
        assert kept == [100, 200, 300]


def test_silence_is_a_lost_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "SILENCE_LIMIT_S", 0.5)
    with FakeBoard(DIALECT, faults=Faults()) as board:
        session, _ = connect(board)
        session.start()
        board.faults.drop = 1.0
        with pytest.raises(LinkLostError, match="has been silent for"):
            run_to_rest(session)


def test_restart_of_the_board_is_noticed() -> None:
    with FakeBoard(DIALECT, seconds_per_step=0.001) as board:
        session, _ = connect(board)
        session.start()
        board.state = State.IDLE
        with pytest.raises(LinkLostError, match="restarted and lost its training state"):
            run_to_rest(session)


@pytest.mark.parametrize("length", [1, 49, 50, 51, 99, 100, 101, 150])
def test_long_texts_are_put_together(length: int) -> None:
    text = ("0123456789" * 20)[:length]
    with FakeBoard(DIALECT) as board:
        session, _ = connect(board)
        board._say(4, text)
        events: list[Event] = []
        deadline = time.monotonic() + 5
        while not events and time.monotonic() < deadline:
            events += session.poll(0.05)
        assert events == [StatusText(4, text)]


def test_checkpoint_goes_round() -> None:
    with FakeBoard(DIALECT) as board, FakeBoard(DIALECT) as second:
        session, _ = connect(board)
        session.start()
        result = run_to_rest(session)[-1]
        assert isinstance(result, Result)
        image = session.download("/checkpoint.rltc")
        assert len(image) == result.checkpoint_bytes
        parsed = parse_image(image, "the board")
        other, _ = connect(second)
        other.upload_checkpoint(build_image(parsed.fingerprint, parsed.step, parsed.payload))
        assert other.result().state_sha256 == result.state_sha256


def test_late_answer_does_not_tell_how_the_board_stands_now() -> None:
    """A question asked twice is answered twice: the second answer is older than the checkpoint."""
    image = build_image(FINGERPRINT, 5, initial_state(0))
    with FakeBoard(DIALECT) as board:
        session, identity = connect(board)
        assert identity.state == State.IDLE
        session._request_message(DIALECT.MAVLINK_MSG_ID_RLT_IDENTITY)
        session.upload_checkpoint(image)
        assert session.identity().state == State.PAUSED


def test_refused_checkpoint_names_the_reason() -> None:
    image = build_image(FINGERPRINT, 5, bytes(100))
    with FakeBoard(DIALECT, faults=Faults(flip_upload=True)) as board:
        session, _ = connect(board)
        with pytest.raises(
            DamagedFileError,
            match="refuses the checkpoint: checkpoint refused: the payload does not match its SHA",
        ):
            session.upload_checkpoint(image)
