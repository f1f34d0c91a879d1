"""Hyperparameters of the fake board: every bit of them, refusals, other programs that ask too."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_board import FakeBoard
from fake_faults import Faults
from rltools_host.boards.connection import Connection
from rltools_host.boards.session import ParameterClient, value_bits
from rltools_host.errors import LinkLostError, RefusedError
from scripted_link import BOARD, ScriptedLink
from session_calls import DIALECT, TABLE, connect, shorten_times


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_times(monkeypatch)


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


def test_hyperparameters_over_a_bad_link() -> None:
    faults = Faults(drop=0.3, drop_from_host=0.3, repeat=0.3, flip=0.1)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        values = {name: parameter.maximum for name, parameter in TABLE.items()}
        session.parameters.set(TABLE, values)
        assert board.values == {n: value_bits(TABLE[n].type, v) for n, v in values.items()}


def test_refusal_without_a_reason() -> None:
    """Its text was lost: the value counts as refused when it is stated again."""
    faults = Faults(refuse_parameter="learning_rate", silent_refusals=True)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        with pytest.raises(RefusedError, match=r"refuses learning_rate=0.5: .* --set$"):
            session.parameters.set(TABLE, {"learning_rate": 0.5})


def test_other_programs_that_ask_do_not_make_it_fail() -> None:
    """Before each answer come the old value and other nodes' and parameters' values."""
    faults = Faults(strangers=True, drop=0.1, drop_from_host=0.1)
    with FakeBoard(DIALECT, faults=faults) as board:
        session, _ = connect(board)
        values = {"seed": 5, "steps": 77, "learning_rate": 0.25}
        session.parameters.set(TABLE, values)
        assert {n: board.values[n] for n in values} == {
            n: value_bits(TABLE[n].type, v) for n, v in values.items()
        }
        faults.refuse_parameter = "learning_rate"
        with pytest.raises(RefusedError, match=r"refuses learning_rate=0\.5"):
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
