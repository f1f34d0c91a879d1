"""How `rlt tune` tells of its trials, the best first."""

from __future__ import annotations

from typing import Any

from rltools_host.commands import study
from rltools_host.tree import command_line

NEXT = [
    "  runs  g",
    f"  next  {command_line('report', 'g')}",
    f"        {command_line('compare', 'g')}",
]


def trial(number: int, value: float | None, state: str = "complete") -> dict[str, Any]:
    return {"trial": number, "value": value, "state": state, "settings": [f"x={number}", "y=1"]}


def told(trials: list[dict[str, Any]], best: Any = None, width: int = 10_000) -> list[str]:
    document = {"trials": trials, "of": 20, "group": "g", "best": best, "command": "rlt train x"}
    return study.tune_lines(document, width)


def test_the_best_first_and_those_that_ended_early_say_so() -> None:
    trials = [trial(0, -5.06), trial(1, None, "failed"), trial(2, 7.0, "pruned"), trial(3, 9.0)]
    head, *rows = told(trials, trials[3])
    assert head == "4 of 20 trials: 2 complete, 1 failed, 1 pruned"
    assert [[word.strip() for word in row.split("  ") if word] for row in rows[:4]] == [
        ["trial", "return", "settings"],
        ["trial 3", "9.0", "x=3, y=1"],
        ["trial 2", "7.0", "pruned", "x=2, y=1"],
        ["trial 0", "-5.1", "x=0, y=1"],
    ]
    assert rows[4:] == ["", "  best  trial 3, return 9.0", "        rlt train x", *NEXT]
    assert told(trials)[5:] == ["", *NEXT]
    width = max(map(len, rows[:4]))
    assert told(trials, trials[3], width) == [head, *rows]
    assert told(trials, width=width - 1)[1] == "  trial 3"


def test_ten_are_shown() -> None:
    for count in (10, 11):
        text = told([trial(number, float(number)) for number in range(count)])
        assert sum("x=" in line for line in text) == 10
        assert any("x=0," in line for line in text) == (count == 10)


def test_without_a_value_there_is_no_table() -> None:
    assert told([]) == ["no trial has finished yet", "", "  runs  g"]
    assert told([trial(0, None, "failed")]) == ["1 of 20 trials: 1 failed", "", "  runs  g"]
