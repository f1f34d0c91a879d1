"""Words of findings, at the bounds of each form; what an examination sums up."""

from __future__ import annotations

import pytest

from rltools_host.checks.findings import (
    ADVICE,
    FAULT,
    Examination,
    Finding,
    Learning,
    listed,
    number,
    share,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (9.99e-5, "9.99e-05"),
        (1e-4, "0.0001"),
        (0.03124, "0.0312"),
        (-99.94, "-99.9"),
        (100.0, "100"),
        (-1239.6, "-1,240"),
        (9.99e11, "999,000,000,000"),
        (1e12, "1.00e+12"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 10, "less than 0.1 %"),
        (999, 1_000_000, "less than 0.1 %"),
        (1, 1000, "0.1 %"),
        (9, 100, "9 %"),
        (94, 1000, "9.4 %"),
        (10, 100, "10 %"),
        (126, 1000, "13 %"),
        (5, 5, "100 %"),
    ],
)
def test_shares_are_never_nothing(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


@pytest.mark.parametrize(
    ("count", "most", "text"),
    [
        (1, 4, "a"),
        (2, 4, "a and b"),
        (4, 4, "a, b, c and d"),
        (5, 4, "a, b, c, d and e"),  # "1 more" is no shorter
        (6, 4, "a, b, c, d and 2 more"),
        (4, 2, "a, b and 2 more"),
    ],
)
def test_names_or_the_first_of_them(count: int, most: int, text: str) -> None:
    assert listed(list("abcdef")[:count], most) == text
    if most == 4:
        assert listed(list("abcdef")[:count]) == text


def test_an_examination_counts_faults_and_names_what_is_in_order() -> None:
    found = Examination()
    fault, advice = Finding("a", "b", "c"), Finding("d", "e", "f", ADVICE)
    assert fault.level == FAULT
    assert found.tried("one", None)
    assert not found.tried("two", None, fault)
    assert not found.tried("three", advice)
    assert found.tried("four")
    assert found.note(fault, None)
    assert not found.note(None)
    assert found.findings == [fault, advice, fault]
    assert (found.passed, found.faults) == (["one", "four"], 2)
    found.figures["x"] = 1
    document = found.document()
    assert document == {
        "findings": [
            {"check": "a", "what": "b", "remedy": "c", "level": "fault"},
            {"check": "d", "what": "e", "remedy": "f", "level": "advice"},
            {"check": "a", "what": "b", "remedy": "c", "level": "fault"},
        ],
        "passed": ["one", "four"],
        "figures": {"x": 1},
    }
    assert Examination.of_document(document) == found


def test_the_usual_learning_is_that_of_a_task() -> None:
    usual = Learning()
    assert (usual.gamma, usual.steps, usual.reward_scale) == (0.99, None, 1.0)
    assert (usual.is_normalized, usual.can_scale) == (False, False)
