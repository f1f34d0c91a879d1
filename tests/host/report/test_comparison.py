"""What a comparison says, figure by figure; `rlt runs compare` is in commands/test_compare.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.errors import UsageError
from rltools_host.report import comparison
from rltools_host.report.comparison import Comparison, Contender, Improvement, Reached
from rltools_host.report.markup import Section
from rltools_host.runs.contents import Run

PENDULUM = Run(environment="Pendulum-v1", algorithm="TD3", experiment="pendulum-td3")
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"


def contender(
    name: str, *returns: float, run: Run = PENDULUM, reached: Reached | None = None
) -> Contender:
    folders: Any = tuple(SimpleNamespace(path=Path("runs") / name) for _ in returns)
    return Contender(name, folders, (run,) * len(returns), returns, None, reached)


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


def test_document_of_a_comparison() -> None:
    reached = Reached(1.5, (None,), (None,))
    runs = [
        Run(hyperparameters={"gamma": 0.9, "seed": 0, "steps": 10, "report_every": 1, "x": 1}),
        Run(hyperparameters={"seed": 1, "steps": 20, "report_every": 2, "x": 1, "gamma": 0.99}),
        Run(hyperparameters={"gamma": 0.9, "seed": 1, "x": 1, "steps": 1, "more": 2}),
    ]
    a, b, c = (
        contender(name, value, run=run)
        for name, value, run in zip("abc", (1.0, 2.0, 2.0), runs, strict=True)
    )
    document = Comparison((a, b, c), ("a note",)).document()
    figures = {"runs": 1, "mean": 1.0, "median": 1.0, "std": None, "worst": 1.0}
    assert document["contenders"][0] == {
        "name": "a",
        "algorithm": "",
        "experiment": "",
        "paths": ["runs/a"],
        "returns": [1.0],
        "iqm": 1.0,
        "iqm_interval": None,
        "length_mean": None,
        **figures,
    }
    assert document["improvements"] == [
        {"of": of, "over": over, "probability": probability, "interval": None}
        for of, over, probability in (("a", "b", 0.0), ("a", "c", 0.0), ("b", "c", 0.5))
    ]
    assert document["differences"] == {"gamma": [0.9, 0.99, 0.9]}
    assert comparison.difference_lines((a, b, c)) == ["gamma: 0.9, 0.99, 0.9"]
    assert (document["confidence"], document["resamples"]) == (0.95, 10_000)
    assert document["notes"] == ["a note"]
    with_threshold = contender("d", 1.0, run=PENDULUM, reached=reached).document()
    assert with_threshold["threshold"] == reached.document()
    assert (with_threshold["algorithm"], with_threshold["experiment"]) == ("TD3", "pendulum-td3")


def run_in(environment: str | None, steps: int | None = None, **learning: Any) -> Any:
    task = None if steps is None else SimpleNamespace(episode_steps=steps)
    return SimpleNamespace(environment=environment, gymnasium=task, learning=learning)


GRAVITY = "environment.gravity_m_s2"


@pytest.mark.parametrize(
    ("a", "b", "clause"),
    [
        (Run(), Run(), "what it does not state"),
        (PENDULUM, Run(), "Pendulum-v1 and what it does not state"),
        (Run(), PENDULUM, "what it does not state and Pendulum-v1"),
        (PENDULUM, PENDULUM, ""),
        (run_in("a", 1000), run_in("a", 500), "episodes of 1,000 and of 500 steps"),
        (run_in("a", 500), run_in("a", 500), ""),
        (run_in("a", 500), run_in("a"), ""),
        (run_in("a"), run_in("a", 500), ""),
        (
            run_in("a", **{GRAVITY: 10}),
            run_in("a", **{GRAVITY: 9.81}),
            f"{GRAVITY} was 10, is 9.81",
        ),
        (run_in("a", **{GRAVITY: 10, "of": 1}), run_in("a", **{GRAVITY: 10, "of": 2}), ""),
    ],
)
def test_how_environments_differ(a: Run, b: Run, clause: str) -> None:
    assert comparison.other_environment(a, b) == clause


def test_sections_of_the_page() -> None:
    reached = Reached(-150.0, (10, None, 30), (1.0, None, 3.25))
    never = Reached(-150.0, (None, None), (None, None))
    pair = (contender("a", 1.0, reached=reached), contender("b", 2.0, reached=never))
    assert comparison.threshold_section(pair) == Section(
        "Threshold",
        f"The first evaluation with a return of at least {MINUS}150.0: medians over all runs.",
        "<table><thead><tr><th></th><th>runs that reach it</th><th>steps</th><th>seconds</th></tr>"
        '</thead><tbody><tr><th>a</th><td class="number">2 of 3</td><td class="number">30</td>'
        '<td class="number">3.2</td></tr><tr><th>b</th><td class="number">0 of 2</td>'
        f'<td class="number">{DASH}</td><td class="number">{DASH}</td></tr></tbody></table>',
    )
    assert comparison.threshold_section((contender("a", 1.0),)) is None
    improvements = [Improvement("a", "b", 0.126, (0.0, 0.5)), Improvement("b", "a", 1.0, None)]
    assert comparison.improvement_section(improvements).body == (
        "<table><thead><tr><th></th><th>probability</th><th>95 %</th></tr></thead><tbody>"
        '<tr><th>a over b</th><td class="number">0.13</td><td class="number">0.00 to 0.50</td></tr>'
        '<tr><th>b over a</th><td class="number">1.00</td><td class="number">-</td></tr>'
        "</tbody></table>"
    )


@pytest.mark.parametrize(
    ("output", "written"), [("", "comparison.html"), ("a.HTM", "a.HTM"), ("b.html", "b.html")]
)
def test_where_the_page_is_written(tmp_path: Path, output: str, written: str) -> None:
    found = Comparison((contender("a", 1.0), contender("b", 2.0)), ())
    path = comparison.write_comparison(found, tmp_path / output)
    assert path == tmp_path / written
    assert path.read_text(encoding="utf-8") == comparison.page(found)
    with pytest.raises(UsageError, match=r"a\.pdf: the page is HTML, end its name in \.html$"):
        comparison.write_comparison(found, tmp_path / "a.pdf")
