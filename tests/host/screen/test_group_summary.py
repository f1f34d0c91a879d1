"""What came of a group of runs, in lines that no terminal wraps."""

from __future__ import annotations

from typing import Any

import pytest

from rltools_host.screen.group_screen import result_lines, summary_lines, with_deviation

LONG = "without observation normalization"


def document(labels: tuple[str, ...] = ("",)) -> dict[str, Any]:
    runs = [
        {
            "variant": label,
            "seed": seed,
            "state": "failed" if seed else "finished",
            "step": 100_352,
            "train_s": None if seed else 61.0,
            "return_mean": None if seed else -123.456,
            "return_std": None if seed else 7.89,
            "length_mean": None if seed else 1999.6,
            "error": "the board is gone" if seed else None,
        }
        for label in labels
        for seed in (0, 11)
    ]
    figures = {"runs": 1, "mean": -123.456, "median": -123.4, "std": 7.89, "worst": -130.0}
    summary = [{"variant": label, "label": label, **figures} for label in labels]
    return {"runs": runs, "summary": summary}


def test_all_of_it() -> None:
    assert result_lines(document()) == [
        "  seed  state     return        length  step     time",
        "  0     finished  -123.5 ± 7.9  2,000   100,352  1:01",
        "  11    failed    -             -       100,352  -",
        "",
        "  seed 11: the board is gone",
        "",
        "  return     runs  mean    deviation  worst   median",
        "  all seeds  1     -123.5  7.9        -130.0  -123.4",
    ]
    lines = result_lines(document(("with", LONG)))
    assert lines[3].split() == [
        *LONG.split(),
        "0",
        "finished",
        "-123.5",
        "±",
        "7.9",
        *lines[1].split()[-3:],
    ]
    assert f"  {LONG}, seed 11: the board is gone" in lines


@pytest.mark.parametrize(("count", "words"), [(1, "once"), (30, "30 times")])
def test_environments_that_failed(count: int, words: str) -> None:
    """Of a run that failed itself its own sentence says why."""
    runs = [{**run, "environment_faults": count} for run in document()["runs"]]
    lines = result_lines({**document(), "runs": runs})
    assert lines[4:7] == [
        f"  seed 0: the environment failed {words}, and was made again",
        "  seed 11: the board is gone",
        "",
    ]
    untroubled = [{**run, "environment_faults": 0} for run in document()["runs"]]
    assert result_lines({**document(), "runs": untroubled}) == result_lines(document())


@pytest.mark.parametrize("width", range(40, 100, 3))
@pytest.mark.parametrize("labels", [("",), ("with", LONG)])
def test_lines_fit(width: int, labels: tuple[str, ...]) -> None:
    """Nothing is cut: a row that is too long is a paragraph."""
    lines = [line for line in result_lines(document(labels), width) if "gone" not in line]
    assert all(len(line) <= width or line.strip() in labels for line in lines)
    text = "\n".join(lines)
    for whole in ("-123.5", "-130.0", "finished", *labels):
        assert whole in text
    assert "…" not in text


def test_nothing_to_sum_up() -> None:
    empty = {"variant": "", "label": "", "runs": 0, "mean": None}
    assert summary_lines([empty]) == ["  no run has a final return yet"]


def test_observations_outside_are_a_sentence_of_their_own() -> None:
    runs = [
        {**run, "observations_outside": 2 - index} for index, run in enumerate(document()["runs"])
    ]
    runs[0]["environment_faults"] = 3
    assert result_lines({**document(), "runs": runs})[4:9] == [
        "  seed 0: the environment failed 3 times, and was made again",
        "  seed 0: observations lay outside their range 2 times",
        "  seed 11: the board is gone",
        "  seed 11: observations lay outside their range once",
        "",
    ]


def test_a_single_run_has_no_deviation() -> None:
    (entry,) = document()["summary"]
    assert summary_lines([{**entry, "std": None}])[1].split()[3:6] == ["-123.5", "-", "-130.0"]


@pytest.mark.parametrize(
    ("mean", "std", "expected"),
    [(None, None, "-"), (None, 1.0, "-"), (-1.26, None, "-1.3"), (0.0, 0.0, "0.0 ± 0.0")],
)
def test_a_return_with_its_deviation(mean: float | None, std: float | None, expected: str) -> None:
    assert with_deviation(mean, std) == expected
