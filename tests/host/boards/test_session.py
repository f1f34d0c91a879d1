"""Finding the right board on a link."""

from __future__ import annotations

import pytest

from fake_board import FakeBoard
from fake_experiment import FINGERPRINT
from fake_faults import Faults
from rltools_host.boards import session as session_module
from rltools_host.boards.connection import Address
from rltools_host.boards.messages import State
from rltools_host.boards.session import BoardSession
from rltools_host.errors import BoardMismatchError
from session_calls import DIALECT, connect, shorten_times


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
