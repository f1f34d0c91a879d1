"""The example of supervised learning: at least 95 % of the digits that it has not seen."""

from __future__ import annotations

import re
import runpy

import pytest

from rltools_host.tree import TREE


@pytest.mark.all
def test_digits_are_learned_to_95_percent() -> None:
    # Not above: it imports scikit-learn, which takes as long as all else that is collected.
    example = runpy.run_path(str(TREE.root / "examples/digits/run.py"), run_name="example")
    output = example["run"]()
    match = re.search(r"^test accuracy ([\d.]+) % \((\d+) of (\d+)\)$", output, re.MULTILINE)
    assert match is not None, output
    accuracy, correct, count = float(match[1]), int(match[2]), int(match[3])
    assert count == 360  # a fifth of 1,797
    assert accuracy >= 95
    assert accuracy == round(100 * correct / count, 1)
    assert example["run"]() == output  # the same bits
