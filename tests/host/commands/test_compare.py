"""`rlt runs compare`: its figures, its page, and other environments, which it refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.web import chromium
from html_page import Page
from policy_run import GROUP
from rltools_host.build import tools
from rltools_host.commands import cli
from run_folders import new_group, new_run

LEARNING = {"experiment": "x", "environment.gravity_m_s2": 10, "environment.behavior": 7}
RUN: dict[str, Any] = {
    "format": 4,
    "experiment": "pendulum-td3",
    "algorithm": "TD3",
    "environment": "Pendulum-v1",
    "state": "finished",
    "board": "host",
    "learning": LEARNING,
    "hyperparameters": {"seed": 0, "gamma": 0.99, "learning_rate": 1e-3},
    "step": 30,
}


def made(path: Path, returns: Sequence[float], seed: int | None = 0, **changes: Any) -> Path:
    """Evaluations at steps 10, 20 and so on, a second apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    last = {"return_mean": returns[-1]} if returns else {}
    folder = new_run(path, {**RUN, **last, "seed": seed, **changes})
    same = {"kind": "evaluation", "counter": 1, "episodes": 10, "return_std": 1.0}
    folder.append_metrics(
        {
            **same,
            "time_s": float(index + 1),
            "step": 10 * (index + 1),
            "return_mean": value,
            "return_min": value,
            "return_max": value,
        }
        for index, value in enumerate(returns)
    )
    folder.close()
    return path


def group(path: Path, finals: Sequence[float], **changes: Any) -> Path:
    new_group(path, {**GROUP, "seeds": list(range(len(finals)))})
    for seed, final in enumerate(finals):
        made(path / f"s{seed}", [-1000.0, -500.0 - seed, final], seed, **changes)
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    group(tmp_path / "td3", [-100.0, -110.0, -120.0, -900.0])
    sac = {"experiment": "pendulum-sac", "algorithm": "SAC"}
    settings = {"hyperparameters": {"gamma": 0.9, "alpha": 0.2, "learning_rate": 1e-3}}
    group(tmp_path / "sac", [-200.0, -210.0, -115.0], **sac, **settings)
    made(tmp_path / "one", [-300.0, -150.0, -130.0], **sac)
    return tmp_path


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert cli.run(["runs", "compare", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_figures(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    document = compared(capsys, "td3", "sac", "one", "--threshold", "-150")
    td3, sac, one = document["contenders"]
    assert (td3["name"], td3["algorithm"], sac["algorithm"]) == ("td3", "TD3", "SAC")
    assert td3["returns"] == [-100.0, -110.0, -120.0, -900.0]
    assert (td3["iqm"], td3["mean"], td3["worst"]) == (-115.0, -307.5, -900.0)
    low, high = td3["iqm_interval"]
    assert -900 <= low < -115 < high <= -100
    assert (one["iqm"], one["iqm_interval"], one["runs"]) == (-130.0, None, 1)
    assert td3["threshold"]["steps"] == [30, 30, 30, None]
    assert (td3["threshold"]["reached"], td3["threshold"]["median_steps"]) == (3, 30)
    assert (sac["threshold"]["reached"], sac["threshold"]["median_steps"]) == (1, None)
    assert one["threshold"]["steps"] == [20], "the first that is as high, not the last"
    assert one["threshold"]["seconds"] == [2.0]
    first = document["improvements"][0]
    assert (first["of"], first["over"], first["probability"]) == ("td3", "sac", 8 / 12)
    assert len(document["improvements"]) == 3
    assert document["differences"] == {"gamma": [0.99, 0.9, 0.99]}
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before


def test_a_groups_variants(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = runs / "study"
    variants = [
        {"name": "a", "label": "with", "settings": []},
        {"name": "b", "label": "without", "settings": ["gamma=0.9"]},
        {"name": "c", "label": "later", "settings": []},
    ]
    new_group(path, {**GROUP, "kind": "study", "variants": variants})
    made(path / "a" / "s0", [-5.0, -4.0])
    made(path / "a" / "s1", [-5.0], state="paused")
    made(path / "b" / "s0", [-6.0], state="paused")
    assert cli.run(["runs", "compare", "study", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [each["name"] for each in document["contenders"]] == ["study/a", "study/b"]
    assert [each["returns"] for each in document["contenders"]] == [[-4.0], [-6.0]]
    assert "note: study/a: 1 of 2 runs have finished evaluations" in captured.err
    assert "note: study/c: 0 of 2 runs" in captured.err


@pytest.mark.parametrize(
    ("returns", "changes", "verdict"),
    [
        ([-205.0, -207.0, -208.0], {}, "a is best: its interval lies above"),
        ([-104.0, -101.0, -90.0], {}, "no winner: the intervals of b and a overlap"),
        ([-205.0], {}, "no winner: b has too few runs for an interval"),
        ([-205.0, -207.0], {"step": 20}, "no winner: the runs have trained for 20 to 30 steps"),
    ],
)
def test_a_winner_is_named_where_there_is_one(
    returns: list[float],
    changes: dict[str, Any],
    verdict: str,
    runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    group(runs / "a", [-100.0, -101.0, -102.0], step=30)
    group(runs / "b", returns, **{"step": 30, **changes})
    document = compared(capsys, "a", "b")
    assert document["verdict"].startswith(verdict)
    assert document["winner"] == ("a" if verdict.startswith("a") else None)


# -- what is refused -------------------------------------------------------------------------------


def test_other_environments_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(runs / "other", [-1.0], learning={**LEARNING, "environment.behavior": 8})
    clause = "the environment's step has changed"
    assert cli.run(["runs", "compare", "one", "other"]) == 2
    error = capsys.readouterr().err
    assert f"one and other are of different environments ({clause})" in error
    assert "--any compares them" in error
    assert cli.run(["runs", "compare", "one", "other", "--any"]) == 0
    assert (
        f"note: one and other are of different environments ({clause})" in capsys.readouterr().err
    )


# -- the page --------------------------------------------------------------------------------------


def test_page(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(runs / "<b>evil", [-300.0, -150.0, -130.0])
    words = ["td3", "sac", "<b>evil", "--threshold", "-150", "--output", "."]
    assert cli.run(["runs", "compare", *words]) == 0
    assert capsys.readouterr().out.endswith("wrote comparison.html\n")
    content = (runs / "comparison.html").read_text()
    shown = Page(content).words
    assert "Learning curves" in shown
    assert content.count("fill-opacity: 0.15") == 2 * 3, "bands, narrow and wide"
    minus = "\N{MINUS SIGN}"
    assert f"td3 4 {minus}115.0 " in shown  # the IQM, with its interval: a phone shows no more
    assert f" {minus}115.0 {minus}" in shown
    assert "td3 over sac 0.67 " in shown
    assert "3 of 4 30 3.0" in shown
    assert "<b>evil 1 " in shown
    assert "<b>" not in content, "a name is text"
    assert "Written by rlt runs compare from" in shown
    assert "<script" not in content


@pytest.mark.all  # a browser
def test_a_phone_shows_both_ends_of_the_interval(tmp_path: Path) -> None:
    """Of returns of thousands it showed one."""
    if tools.missing_names(("chromium",)):
        pytest.skip("not installed (rlt doctor): chromium")
    for name in ("runs-of-td3", "runs-of-sac"):
        group(tmp_path / name, [-1343.7, -1461.1, -1578.6])
    page = tmp_path / "page.html"
    names = [str(tmp_path / name) for name in ("runs-of-td3", "runs-of-sac")]
    assert cli.run(["runs", "compare", *names, "--output", str(page)]) == 0
    with chromium() as browser:
        phone = browser.new_page(viewport={"width": 375, "height": 800})
        phone.goto(page.as_uri())
        widths = "tables => tables.map(table => [table.scrollWidth, table.clientWidth])"
        tables = phone.eval_on_selector_all("table", widths)
    assert len(tables) == 2
    for needed, shown in tables:
        assert needed <= shown


def test_runs_that_differ_in_their_seeds_alone_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(3):
        made(tmp_path / f"a{seed}", [0.0, float(seed)], seed, hyperparameters={"seed": seed})
    made(tmp_path / "old", [0.0, 3.0], None, hyperparameters={})  # it states no seed
    made(tmp_path / "twin", [0.0, 9.0], 0, hyperparameters={"seed": 0})  # the same seed once more
    made(tmp_path / "b", [0.0, 5.0], 7, hyperparameters={"seed": 7, "gamma": 0.9})
    words = ["./a0", "./a1", "./b", "./a2", "./old", "./twin"]
    rows = compared(capsys, *words, "--join")["contenders"]
    assert [(row["name"], row["runs"], row["mean"]) for row in rows] == [
        ("a0 and 3 more", 4, 1.5),
        ("b", 1, 5.0),
        ("twin", 1, 9.0),
    ]
    assert len(compared(capsys, *words)["contenders"]) == 6
    assert cli.run(["runs", "compare", "./a0", "./a1", "--join"]) != 0
    assert "a comparison takes two runs or groups" in capsys.readouterr().err
