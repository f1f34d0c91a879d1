"""Finding a board on a link, and what every board tells."""

from __future__ import annotations

import os
import threading
import time

import pytest

from fake_board import ADDRESS, FakeBoard
from fake_experiment import FINGERPRINT
from fake_faults import Faults
from rltools_host.boards import session as session_module
from rltools_host.boards.connection import Address, Connection
from rltools_host.boards.framing import FrameEncoder
from rltools_host.boards.messages import Identity, State
from rltools_host.boards.session import CONNECT_TIMEOUT_S, BoardSession, NodeClient
from rltools_host.errors import BoardMismatchError, LinkLostError, PortError
from scripted_link import BOARD, ScriptedLink
from session_calls import DIALECT, connect, shorten_times


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_times(monkeypatch)


def test_identity() -> None:
    with FakeBoard(DIALECT) as board:
        session, identity = connect(board)
        assert identity == Identity(
            experiment="fake-td3",
            board="host",
            device="Fake",
            revision="r1",
            fingerprint=FINGERPRINT,
            protocol_version=3,
            state=State.IDLE,
            counts_instructions=False,
            learner_bytes=1000,
            replay_bytes=5000,
            scratch_bytes=2000,
            unique_id=bytes(range(16)).hex(),
            program="train",
        )
        session.node.require(identity, "fake-td3", FINGERPRINT, "host", "flash it")


def test_silent_port_is_named() -> None:
    with FakeBoard(DIALECT, talk=lambda _: None) as board:
        began = time.monotonic()
        with pytest.raises(
            PortError, match=r"no board answers on the fake board within 0.3 s: .*rlt"
        ):
            BoardSession.connect(board.link, DIALECT, ADDRESS, 0.3)
        assert time.monotonic() - began < CONNECT_TIMEOUT_S  # of who gives none


def connect_to(says: bytes) -> None:
    """To something that says this again and again, and has begun to."""
    has_begun = threading.Event()

    def talk(descriptor: int) -> None:
        for _ in range(100):
            os.write(descriptor, says)
            has_begun.set()
            time.sleep(0.005)

    with FakeBoard(DIALECT, talk=talk) as board:
        assert has_begun.wait(60)
        BoardSession.connect(board.link, DIALECT, ADDRESS, 0.3)


def test_other_firmware_is_named() -> None:
    sentence = r"runs other firmware \(\d+ bytes came.*rlt flash"
    with pytest.raises(BoardMismatchError, match=sentence):
        connect_to(b"Hello from the blink example!\r\n")


def test_other_mavlink_device_is_named() -> None:
    heartbeat = DIALECT.MAVLink_heartbeat_message(2, 12, 0, 0, 3, 3)
    with pytest.raises(BoardMismatchError, match="speaks MAVLink but is not one of our boards"):
        connect_to(FrameEncoder(DIALECT, 1, 1).encode(heartbeat))


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_board_that_falls_silent_is_not_called_another_device(is_cut: bool) -> None:
    """Its link is cut after a heartbeat; a device that does not know the question goes on."""
    link = ScriptedLink(DIALECT)
    heartbeat = DIALECT.MAVLink_heartbeat_message(18, 8, 0, 0, 3, 3)
    link.put(heartbeat)
    if not is_cut:
        link.answer = lambda _: link.put(heartbeat)
    sentence = "on the script has stopped answering: its last message came 10 s ago, check"
    with pytest.raises(
        LinkLostError if is_cut else BoardMismatchError,
        match=sentence if is_cut else "not one of our boards",
    ):
        NodeClient(Connection(link, DIALECT, BOARD, link.clock)).find(10.0)


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
