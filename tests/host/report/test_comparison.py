"""What a comparison says, figure by figure; `rlt runs compare` is in commands/test_compare.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rltools_host.report import comparison
from rltools_host.report.comparison import Reached

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def test_when_a_threshold_is_reached() -> None:
    most = Reached(-150.0, (10, None, 30), (1.0, None, 3.0))
    assert most.document() == {
        "threshold": -150.0,
        "reached": 2,
        "steps": [10, None, 30],
        "seconds": [1.0, None, 3.0],
        "median_steps": 30,
        "median_s": 3.0,
    }
    half = Reached(-150.0, (None, 10), (None, 1.0))
    assert (half.median(half.steps), half.median(half.seconds)) == (None, None)
    first = Reached(0.0, (0, 20), (0.0, 2.0))
    assert (first.count, first.median(first.steps), first.median(first.seconds)) == (2, 10, 1.0)


def evaluation(step: int, mean: float | None, kind: str = "evaluation") -> dict[str, Any]:
    return {"kind": kind, "step": step, "time_s": step / 10, "return_mean": mean}


def test_the_first_evaluation_that_is_as_high() -> None:
    rows = [
        [evaluation(10, -1.0), evaluation(40, 3.0), evaluation(30, 0.0), {"step": 1}],
        [evaluation(10, 9.0, "progress"), evaluation(20, None), evaluation(30, -0.1)],
    ]
    runs: Any = [SimpleNamespace(read_metrics=lambda each=each: each) for each in rows]
    assert comparison.reached_by(runs, 0.0) == Reached(0.0, (30, None), (3.0, None))
