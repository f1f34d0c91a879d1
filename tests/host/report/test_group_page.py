"""The page about a group of runs: its curves, sentences, tiles and tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.report import group_page
from rltools_host.report.markup import Section
from rltools_host.runs.contents import Run, Variant
from rltools_host.runs.group import RunName

MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
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


def test_curves_as_csv() -> None:
    known = [curve for curve in CURVES if curve is not None]
    assert group_page.as_csv(known) == (
        "variant,step,mean,deviation,seed_0,seed_1,seed_2\n"
        "a,20,3.0,1.0,2.0,,4.0\n"
        "a,30,5.5,2.5,3.0,,8.0\n"
        "b,5,7.0,0.0,,7.0,\n"
    )


def folder(state: str = "finished", *rows: dict[str, Any]) -> Any:
    return SimpleNamespace(content=Run(state=state), read_metrics=lambda: rows)


def test_evaluations_of_runs() -> None:
    rows = [
        {"kind": "evaluation", "step": 10, "return_mean": -1.5},
        {"kind": "evaluation", "step": 20, "return_mean": None},
        {"kind": "progress", "step": 30, "return_mean": 2.0},
        {"step": 40, "return_mean": 2.0},
    ]
    runs = {3: folder("finished", *rows), 4: folder("paused", *rows[1:])}
    assert group_page.points_of(runs) == {3: {10: -1.5}}
    assert group_page.finished_where_any(runs) == {3: runs[3]}
    assert group_page.finished_where_any({4: runs[4]}) == {4: runs[4]}


def group(*labels: str, seeds: tuple[int, ...] = (0, 1), tune: object = None) -> Any:
    """With a variant for each label, by the label's name."""
    settings = [[f"gamma=0.{index}"] if index else [] for index in range(len(labels))]
    variants = [
        Variant(name=label, label=label.upper(), settings=own)
        for label, own in zip(labels, settings, strict=True)
    ]
    content = SimpleNamespace(
        tune=tune, seeds=seeds, settings=["lr=1"], x_axis="steps", y_axis="return"
    )
    names = [RunName(label, seed) for label in labels for seed in seeds]
    return SimpleNamespace(variants=variants, content=content, run_names=lambda: iter(names))


def finished(**returns: tuple[float | None, ...]) -> dict[RunName, Run]:
    return {
        RunName("" if name == "all" else name, seed): Run(
            state="finished", return_mean=value, step=1000 + seed, train_s=30.5 if seed else None
        )
        for name, values in returns.items()
        for seed, value in enumerate(values)
    }


@pytest.mark.parametrize(
    ("labels", "ended", "expected"),
    [
        (("",), {}, "0 of 2 runs have finished."),
        (("",), finished(all=(None,)), "1 of 2 runs have finished."),
        (
            ("",),
            finished(all=(-1.0,)),
            "1 of 2 runs have finished; the last evaluation of its training returned "
            f"<strong>{MINUS}1.0</strong>.",
        ),
        (
            ("",),
            finished(all=(-1.0, -3.0)),
            "2 of 2 runs have finished; the last evaluations of their training returned "
            f"<strong>{MINUS}2.0</strong> ± 1.0, mean and standard deviation over the seeds.",
        ),
        (("a", "b"), {}, "0 of 4 runs have finished."),
        (
            ("a", "b", "c<"),
            finished(a=(1.0, 2.0), b=(-3.0,)),
            "3 of 6 runs have finished. The means of their final returns lie between "
            f"<strong>{MINUS}3.0</strong> (B) and <strong>1.5</strong> (A).",
        ),
    ],
)
def test_verdict(labels: tuple[str, ...], ended: dict[RunName, Run], expected: str) -> None:
    assert group_page.verdict(group(*labels), ended) == expected


def test_a_tuning_shows_its_best_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five, of those whose seeds have all finished."""
    means = {"a": 1.0, "b": 7.0, "c": -2.0, "d": 4.0, "e": 3.0, "f": 2.0}
    ended = finished(**{name: (mean - 1, mean + 1) for name, mean in means.items()}, g=(99.0,))
    monkeypatch.setattr(group_page, "finished_runs", lambda _: ended)
    tuned = group(*"abcdefg", tune="tune")
    assert [each.name for each in group_page.shown_variants(tuned)] == ["b", "d", "e", "f", "a"]
    assert group_page.verdict(tuned, ended) == (
        "13 of 14 runs have finished. The best is <strong>B</strong> with a return of "
        "<strong>7.0</strong>: <code>gamma=0.1</code>."
    )
    assert len(group_page.shown_variants(group(*"abcdefg"))) == 7, "a study shows all"
    assert len(group_page.tiles(tuned, ended)) == 3
    monkeypatch.setattr(group_page, "finished_runs", lambda _: {})
    assert group_page.verdict(tuned, {}) == "0 of 14 runs have finished."


def cells(*texts: str) -> str:
    return "".join(f'<td class="number">{text}</td>' for text in texts)


def test_final_returns() -> None:
    section = group_page.returns_table([("a", [-2.0]), ("b", [4.0] * 4)], "lead")
    heads = ("", "runs", "mean", "deviation", "median", "worst", "IQM", "95 %")
    two = f"{MINUS}2.0"
    assert section == Section(
        "Final returns",
        "lead",
        f'<table class="figures"><thead><tr>{"".join(f"<th>{head}</th>" for head in heads)}</tr>'
        f"</thead><tbody><tr><th>a</th>{cells('1', two, DASH, two, two, two, '-')}</tr>"
        f"<tr><th>b</th>{cells('4', '4.0', '0.0', '4.0', '4.0', '4.0', '4.0 to 4.0')}</tr>"
        "</tbody></table>",
        group_page.NARROW_TABLE,
    )
    # 0, 0, 3, 9: mean 3, deviation sqrt((9 + 9 + 0 + 36) / 4), middle half 0 and 3
    (row,) = group_page.returns_table([("a", [9.0, 0.0, 3.0, 0.0])], "").body.split("<tr>")[2:]
    assert row.startswith(f"<th>a</th>{cells('4', '3.0', '3.7', '1.5', '0.0', '1.5')}")
    all_seeds = group_page.final_returns(group(""), finished(all=(1.0,)))
    assert all_seeds is not None
    assert "<th>all seeds</th>" in all_seeds.body
    named = group_page.final_returns(group("a", "b"), finished(b=(1.0,)))
    assert named is not None
    assert "<th>B</th>" in named.body
    assert "<th>A</th>" not in named.body
    assert group_page.final_returns(group(""), {}) is None


def test_every_run_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(state="paused", step=1200, return_mean=-1.26, state_sha256="0123456789abcdef" * 4)
    known = {RunName("a", 1): SimpleNamespace(content=run)}
    monkeypatch.setattr(group_page, "run_of", lambda _, name: known.get(name))
    section = group_page.runs(group("a", "b", seeds=(1,)))
    assert section.lead == (
        "Each is an ordinary run: <code>rlt report</code> and the others take its folder. "
        "All have <code>lr=1</code>. Of the variants, <strong>A</strong> has no settings of its "
        "own, <strong>B</strong> has <code>gamma=0.1</code>."
    )
    digest = f'<span class="mono" title="{"0123456789abcdef" * 4}">0123456789ab</span>'
    assert section.body.partition("<tbody>")[2] == (
        f"<tr><th>a/s1</th><td>paused</td>{cells('1,200', f'{MINUS}1.3')}<td>{digest}</td></tr>"
        f"<tr><th>b/s1</th><td>not begun</td>{cells('0', DASH)}"
        '<td><span class="mono" title=""></span></td></tr></tbody></table>'
    )
    alone = group("")
    alone.content.settings = []
    assert group_page.runs(alone).lead.endswith("and the others take its folder.")


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
