"""What came of a group of runs, in lines that no terminal wraps."""

from __future__ import annotations

from typing import Any

import pytest

from rltools_host.screen.group_screen import result_lines

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


@pytest.mark.parametrize("width", [40, 70])
@pytest.mark.parametrize("labels", [("",), ("with", LONG)])
def test_lines_fit(width: int, labels: tuple[str, ...]) -> None:
    """Nothing is cut: a row that is too long is a paragraph."""
    lines = [line for line in result_lines(document(labels), width) if "gone" not in line]
    assert all(len(line) <= width or line.strip() in labels for line in lines)
    text = "\n".join(lines)
    for whole in ("-123.5", "-130.0", "finished", *labels):
        assert whole in text
    assert "…" not in text
