"""Hyperparameters of the fake board: every bit of them, refusals, other programs that ask too."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_board import FakeBoard
from fake_faults import Faults
from rltools_host.clients.parameters import value_bits
from rltools_host.errors import VerificationError
from session_calls import DIALECT, TABLE, connect, shorten_times


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_times(monkeypatch)


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


def test_refused_hyperparameter() -> None:
    with FakeBoard(DIALECT, faults=Faults(refuse_parameter="learning_rate")) as board:
        session, _ = connect(board)
        with pytest.raises(VerificationError, match=r"refuses learning_rate=0.5: choose another"):
            session.parameters.set(TABLE, {"learning_rate": 0.5})


@given(st.floats(width=32))
def test_value_bits_of_floats(value: float) -> None:
    expected = struct.unpack("<I", struct.pack("<f", value))[0]
    assert value_bits("F32", value) == value_bits("f32", value) == expected
