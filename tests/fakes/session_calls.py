"""What the tests of sessions with the fake board share."""

from __future__ import annotations

from typing import Any

import pytest

from fake_board import FakeBoard
from fake_experiment import HYPERPARAMETERS
from rltools_host.boards import connection, training
from rltools_host.boards.messages import Event, Identity
from rltools_host.boards.session import BoardSession
from rltools_host.build.cmake import load_dialect

DIALECT: Any = load_dialect()
TABLE = {parameter.name: parameter for parameter in HYPERPARAMETERS}


def shorten_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times after which a host asks again, made short."""
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT_S", 0.1)
    monkeypatch.setattr(connection, "ANSWER_LIMIT_S", 3.0)
    monkeypatch.setattr(training, "QUIET_S", 0.2)


def connect(board: FakeBoard) -> tuple[BoardSession, Identity]:
    return BoardSession.connect(board.link, DIALECT, board.address)


def run_to_rest(session: BoardSession) -> list[Event]:
    return list(session.training.events())
