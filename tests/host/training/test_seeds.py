"""Seeds as they are typed, and how many runs go on at once."""

from __future__ import annotations

import pytest

from fake_experiment import fake_experiment
from rltools_host.build.boards import Board, load_board
from rltools_host.errors import UsageError
from rltools_host.runs.group import seed_ranges
from rltools_host.training import group_plan
from rltools_host.training.group_plan import jobs_of, parse_seeds
from rltools_host.training.plan import Plan, TrainingRequest


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,3,5-7", (0, 3, 5, 6, 7)),
        ("7,1", (7, 1)),
        (" 2 , 4-5 ", (2, 4, 5)),
        ("4294967295", (4294967295,)),
        ("0-999", tuple(range(1000))),
        ("3-3", (3,)),
    ],
)
def test_seeds(text: str, expected: tuple[int, ...]) -> None:
    assert parse_seeds(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", 'seeds "": write seeds and ranges, as in 0-9 or 0,3,5-7'),
        ("a", 'seeds "a": write seeds'),
        ("1,", 'seeds "1,": write seeds'),
        ("-3", 'seeds "-3": write seeds'),
        ("1-2-3", "write seeds and ranges"),
        ("1.5", "write seeds and ranges"),
        ("٣", "write seeds and ranges"),
        ("5-3", "the range 5-3 runs backwards"),
        ("1,0-2", "1 is given twice: give each seed once"),
        ("4294967296", "4294967296 is too large, the largest seed is 4294967295"),
        ("0-99999999999", "99999999999 is too large"),
        ("0-1000", "these are more than 1,000 seeds"),
        ("0-4294967295", "these are more than 1,000 seeds"),
    ],
)
def test_what_are_no_seeds(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_seeds(text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((4,), "4"),
        ((0, 1), "0 and 1"),
        ((0, 1, 2), "0 to 2"),
        ((0, 3, 5, 6, 7), "0, 3 and 5 to 7"),
        ((3, 2, 1), "3, 2 and 1"),
    ],
)
def test_spoken(given: tuple[int, ...], expected: str) -> None:
    assert seed_ranges(given) == expected


def plan(board: Board, port: str | None = None, threads: int | None = None) -> Plan:
    request = TrainingRequest(port=port, threads=threads)
    return Plan(fake_experiment(), board, {"seed": 0, "steps": 1}, request)


@pytest.mark.parametrize(
    ("board", "port", "threads", "given", "expected"),
    [
        ("host", None, None, None, 8),
        ("host", None, None, 3, 3),
        ("host", None, None, 20, 20),
        ("host-threads", None, None, None, 4),  # which takes two threads unless told otherwise
        ("host-threads", None, 1, None, 8),
        ("host-threads", None, 3, None, 2),
        ("host-threads", None, 64, None, 1),
        ("qemu-cortex-m7", None, None, None, 8),
        ("qemu-cortex-m7", "/dev/pts/3", None, None, 1),
        ("teensy41", None, None, None, 1),
        ("teensy41", "/dev/ttyACM0", None, 1, 1),
    ],
)
def test_jobs(
    monkeypatch: pytest.MonkeyPatch,
    board: str,
    port: str | None,
    threads: int | None,
    given: int | None,
    expected: int,
) -> None:
    monkeypatch.setattr(group_plan, "processors", lambda: 8)
    assert jobs_of(plan(load_board(board), port, threads), given) == expected


@pytest.mark.parametrize(
    ("board", "port", "given", "sentence"),
    [
        ("host", None, 0, "--jobs 0: at least 1 is needed"),
        ("teensy41", None, 2, "--jobs 2 does not go with board teensy41 on a port"),
        ("host", "socket://x:1", 2, "--jobs 2 does not go with board host on a port"),
    ],
)
def test_jobs_that_cannot_be(board: str, port: str | None, given: int, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        jobs_of(plan(load_board(board), port), given)
