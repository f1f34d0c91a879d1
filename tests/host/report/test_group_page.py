"""The page about a group of runs: its curves, sentences, tiles and tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rltools_host.report import group_page
from rltools_host.runs.contents import Run
from rltools_host.runs.group import RunName

CURVES = [
    group_page.curve_of("a", "with", {0: {10: 1.0, 20: 2.0, 30: 3.0}, 2: {30: 8.0, 20: 4.0}}),
    group_page.curve_of("b", "without", {1: {5: 7.0}}),
]


def test_a_curve_has_the_steps_that_all_runs_have() -> None:
    curve = CURVES[0]
    assert curve is not None
    assert (curve.name, curve.label, curve.seeds) == ("a", "with", (0, 2))
    assert list(curve.steps) == [20.0, 30.0]
    assert curve.returns.tolist() == [[2.0, 3.0], [4.0, 8.0]]
    assert (list(curve.mean), list(curve.std)) == ([3.0, 5.5], [1.0, 2.5])
    assert group_page.curve_of("a", "", {}) is None
    assert group_page.curve_of("a", "", {0: {1: 1.0}, 1: {2: 1.0}}) is None


def test_a_run_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    its_group: Any = SimpleNamespace(path=tmp_path)
    name = RunName("", 0)
    assert group_page.run_of(its_group, name) is None
    (tmp_path / "s0").mkdir()
    (tmp_path / "s0" / "run.json").write_text("{")
    assert group_page.run_of(its_group, name) is None
    (tmp_path / "s0" / "run.json").write_text('{"state": "finished"}')
    found = group_page.run_of(its_group, name)
    assert found is not None
    its_group.run_names = lambda: [name, RunName("", 1)]
    assert group_page.finished_runs(its_group) == {name: Run(state="finished")}
