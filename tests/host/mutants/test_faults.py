"""A fault in words, Wilson's interval, and the table of what was noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rltools_host.mutants import areas, faults
from rltools_host.mutants.faults import Fault, Verdict, exchanges, fault_at
from rltools_host.runs.aggregates import wilson_interval

SOURCE = "a\nb = f(1)\nc = 2\n"
FAULT = fault_at(Path("x.py"), SOURCE, (8, 9), "2", "constant", "f")


def test_a_fault_says_where_and_what_it_is() -> None:
    assert Fault(Path("x.py"), 8, 9, "2", "constant", "f", "1", 2) == FAULT
    assert fault_at(Path("x.py"), SOURCE, (2, 10), "", "statement", "f", "g").token == "g"
    assert fault_at(Path("x.py"), SOURCE, (11, 12), "", "x", "f").line == 3
    assert FAULT.place == "x.py:2"
    assert FAULT.apply(SOURCE) == "a\nb = f(2)\nc = 2\n"
    assert FAULT.described(SOURCE) == "f: constant: 1 -> 2"
    assert replace(FAULT, becomes="").described(SOURCE) == "f: constant: 1 -> nothing"
    assert replace(FAULT, sentence="It is lost.").described(SOURCE) == "It is lost."
    assert replace(FAULT, start=0, end=10).described(SOURCE) == "f: constant: a b = f(1) -> 2"
    for letters, shown in ((60, "x" * 60), (61, "x" * 59 + "…")):
        long = replace(FAULT, start=0, end=letters, becomes="y" * letters)
        assert long.described("x" * 99) == f"f: constant: {shown} -> {shown.replace('x', 'y')}"


def test_exchanges() -> None:
    assert exchanges("< to <=, is not to is") == {"<": "<=", "is not": "is"}


def verdict(area: str, noticed: bool, **changes: bool) -> Verdict:
    return replace(Verdict(area, FAULT, "It is lost.", noticed, "test_x", 1.0625), **changes)


VERDICTS = [
    *(verdict("lib/core", True), verdict("lib/core", True, is_daily=False)),
    *(verdict("lib/core", False), verdict("lib/core", False, is_valid=False)),
    *(verdict("host/ui", False) for _ in range(40)),
    verdict("host/runs", False, is_valid=False),
]
GOALS = {"lib/core": 0.95, "host/ui": 0.9, "host/runs": 0.9, "kept": 0.95}


def test_rows_are_of_areas_of_which_something_was_tried() -> None:
    core, ui = faults.table(GOALS, VERDICTS)
    low, high = wilson_interval(2, 3)
    assert core == {
        "area": "lib/core",
        "noticed": 2,
        "noticed_daily": 1,
        "tried": 3,
        "not_compiling": 1,
        "share": 2 / 3,
        "low": low,
        "high": high,
        "goal": 0.95,
        "missed": high < 0.95,
    }
    assert core["missed"]  # by a hundredth
    assert not faults.table({"lib/core": 0.93}, VERDICTS)[0]["missed"]
    assert (ui["noticed"], ui["tried"], ui["missed"]) == (0, 40, True)


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    faults.print_result(faults.table(GOALS, VERDICTS), VERDICTS, all_tests=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:5]] == [
        ["lib/core", *["2", "of", "3", "66.7%", "20.8%", "to", "93.9%", "95%", "missed"]],
        ["host/ui", *["0", "of", "40", "0.0%", "0.0%", "to", "8.8%", "90%", "missed"]],
        ["all", *["2", "of", "43", "4.7%", "1.3%", "to", "15.5%"]],
    ]
    assert lines[5] == "of these by the tests of every day: 1 of 2, 50.0% (9.5% to 90.5%)"
    assert lines[6:8] == ["", "unnoticed:"]
    assert lines[8:] == ["  x.py:2: It is lost. (test_x)"] * 41
    faults.print_result([], [], all_tests=True)
    assert len(capsys.readouterr().out.splitlines()) == 2
    faults.print_result([], VERDICTS[:1], all_tests=False)
    assert "every day" not in capsys.readouterr().out


def test_document() -> None:
    document = faults.document([], VERDICTS[1:2], 7)
    assert document == {
        "seed": 7,
        "areas": [],
        "faults": [
            {
                "area": "lib/core",
                "file": "x.py",
                "line": 2,
                "function": "f",
                "operator": "constant",
                "token": "1",
                "fault": "It is lost.",
                "noticed": True,
                "by": "test_x",
                "daily": False,
                "compiles": True,
                "seconds": 1.062,
            }
        ],
    }


def test_the_order_is_that_of_seed_and_area() -> None:
    many = [replace(FAULT, start=start) for start in range(20)]
    first = faults.shuffled(many, 1, "lib")
    assert first == faults.shuffled(reversed(many), 1, "lib")
    assert first not in (many, faults.shuffled(many, 2, "lib"), faults.shuffled(many, 1, "host"))
    assert sorted(first) == many


def test_goals() -> None:
    expected = {"kept": 0.95, "lib/core": 0.95, "host/ui": 0.9, "firmware": 0.9}
    assert {area: areas.goal(area) for area in expected} == expected
