"""docs/recipes.json has the figures of the table of docs/results.md, for programs."""

from __future__ import annotations

import json
import re
from statistics import fmean
from typing import Any

import pytest

from rltools_host.tree import TREE

ROWS: list[dict[str, Any]] = json.loads((TREE.root / "docs/recipes.json").read_text("utf-8"))


def table() -> dict[str, list[str]]:
    """The other cells of the table's rows, by the first one."""
    text = (TREE.root / "docs/results.md").read_text(encoding="utf-8")
    section = text.partition("### Recipes on held-out seeds")[2].partition("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    cells = [re.split(r" \| ", line.strip("| ")) for line in lines[1:]]
    return {first: others for first, *others in cells}


def seeds(text: str) -> list[int]:
    """The seeds of "200 to 219" or "200 and 1001"."""
    numbers = [int(word) for word in re.findall(r"\d+", text)]
    return list(range(numbers[0], numbers[1] + 1)) if " to " in text else numbers


def number(text: str) -> float:
    return float(text.replace("\u2212", "-").removesuffix(" %"))


def test_every_row_is_in_both() -> None:
    assert [row["row"] for row in ROWS] == list(table())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["row"])
def test_the_table_has_these_figures(row: dict[str, Any]) -> None:
    chosen_on, measured_on, mean, worst, passes = table()[row["row"]]
    assert (chosen_on, seeds(measured_on)) == (row["chosen_on"], row["measured_on"])
    assert (number(mean), number(worst)) == (row["mean"], row["worst"])
    assert passes.startswith(f"{row['passed']} of {len(row['measured_on'])}")


def test_means_are_those_of_the_seeds() -> None:
    """Where the figure of each seed is known."""
    known = [row for row in ROWS if row["figures"] is not None]
    assert known
    for row in known:
        figures = row["figures"]
        assert len(figures) == len(row["measured_on"]), row["row"]
        assert round(fmean(figures), 1) == row["mean"], row["row"]
        assert round(min(figures), 1) == row["worst"], row["row"]
        assert sum(figure >= row["threshold"] for figure in figures) == row["passed"], row["row"]
