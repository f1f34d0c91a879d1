"""Seeds as they are typed."""

from __future__ import annotations

import pytest

from fake_experiment import fake_experiment
from rltools_host.build.boards import Board
from rltools_host.errors import UsageError
from rltools_host.training.group_plan import parse_seeds
from rltools_host.training.plan import Plan, TrainingRequest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,3,5-7", (0, 3, 5, 6, 7)),
        ("4294967295", (4294967295,)),
    ],
)
def test_seeds(text: str, expected: tuple[int, ...]) -> None:
    assert parse_seeds(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", 'seeds "": write seeds and ranges, as in 0-9 or 0,3,5-7'),
        ("a", 'seeds "a": write seeds'),
        ("5-3", "the range 5-3 runs backwards"),
        ("1,0-2", "1 is given twice: give each seed once"),
        ("4294967296", "4294967296 is too large, the largest seed is 4294967295"),
        ("0-16384", "these are more than 16,384 seeds"),
    ],
)
def test_what_are_no_seeds(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_seeds(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def plan(board: Board, port: str | None = None, threads: int | None = None) -> Plan:
    request = TrainingRequest(port=port, threads=threads)
    return Plan(fake_experiment(), board, {"seed": 0, "steps": 1}, request)
