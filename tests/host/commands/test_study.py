"""`rlt study`: a whole one with real runs, its table, page and curves."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import statistics
from pathlib import Path

import pytest

from html_page import Page
from rltools_host.commands import cli
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.training import study as studies
from rltools_host.training.parallel_runs import ParallelRuns, RunProcess
from training_calls import train_here

NAME = "pendulum-ppo-ablation"
VARIANTS = {
    "both": {"adaptive_lr": 1, "norm_obs": 1},
    "no-adaptive-rate": {"adaptive_lr": 0, "norm_obs": 1},
    "no-normalization": {"adaptive_lr": 1, "norm_obs": 0},
    "neither": {"adaptive_lr": 0, "norm_obs": 0},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    group = tmp_path_factory.mktemp("study") / "group"
    words = ["study", NAME, "--seeds", "0,2", "--steps", "16000", "--out", str(group)]
    assert cli.run(words) == 0
    return group


def evaluations(run: Path) -> dict[int, float]:
    rows = RunFolder.open(run).read_metrics()
    return {row["step"]: row["return_mean"] for row in rows if row["kind"] == "evaluation"}


def test_variants_times_seeds(trained: Path, tmp_path: Path) -> None:
    hashes = set()
    for name, switches in VARIANTS.items():
        for seed in (0, 2):
            metadata = RunFolder.open(trained / name / f"s{seed}").metadata
            assert (metadata["state"], metadata["seed"]) == ("finished", seed)
            settings = metadata["hyperparameters"]
            assert {key: settings[key] for key in switches} == switches
            assert (settings["eval_freq"], settings["steps"]) == (5000, 16000)
            hashes.add(metadata["state_sha256"])
    assert len(hashes) == 8
    alone = train_here(
        "pendulum-ppo",
        "host",
        seed=2,
        steps=16000,
        settings=["adaptive_lr=0", "norm_obs=0"],
        out=tmp_path / "alone",
    )
    folder = RunFolder.open(trained / "neither" / "s2")
    assert folder.metadata["state_sha256"] == alone["state_sha256"], "evaluations change no bit"


def test_curves_are_those_of_the_runs(trained: Path) -> None:
    with open(trained / "curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["variant", "step", "mean", "deviation", "seed_0", "seed_2"]
    assert [(row["variant"], int(row["step"])) for row in rows] == [
        (name, step) for name in VARIANTS for step in (5000, 10000, 15000, 16384)
    ]
    for row in rows:
        each = [
            evaluations(trained / row["variant"] / f"s{seed}")[int(row["step"])] for seed in (0, 2)
        ]
        assert [float(row["seed_0"]), float(row["seed_2"])] == each
        assert float(row["mean"]) == pytest.approx(statistics.fmean(each), rel=1e-12)
        assert float(row["deviation"]) == pytest.approx(statistics.pstdev(each), rel=1e-12)


def read(page: Path) -> str:
    return Page(page.read_text()).words


def test_page(trained: Path) -> None:
    content = (trained / "report.html").read_text()
    shown = read(trained / "report.html")
    assert "Pendulum-v1 with PPO: what its two modifications do" in shown
    assert "the line is the mean over 2 seeds, the band one standard deviation" in shown
    for label in ("with both", "without the KL-adaptive learning rate", "without either"):
        assert content.count(f">{label}</text>") == 2, "in the wide and in the narrow plot"
    summary = {entry["variant"]: entry for entry in GroupFolder.open(trained).metadata["summary"]}
    for entry in summary.values():
        numbers = [f"{entry[key]:,.1f}".replace("-", "\N{MINUS SIGN}") for key in ("mean", "std")]
        assert f"{entry['label']} 2 {' '.join(numbers)}" in shown
    for color in ("first", "second", "third", "ink"):
        assert f"stroke: var(--{color})" in content
    dashes = set(re.findall(r"stroke-dasharray: ([\d. ,]+)", content))
    assert len(dashes) >= 3, "lines differ in more than their color"
    assert not re.search(r"<script|https?://(?!www\.w3\.org)", content)


@pytest.mark.all
def test_table(
    trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is printed again when the study goes on with more steps."""
    assert cli.run(["train", "--resume", str(trained), "--steps", "18000", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [run["step"] for run in document["runs"]] == [18432] * 8
    assert (document["report"], document["curves"]) == (
        str(trained / "report.html"),
        str(trained / "curves.csv"),
    )
    lines = captured.err.splitlines()
    for entry in document["summary"]:
        finals = [
            run["return_mean"] for run in document["runs"] if run["variant"] == entry["variant"]
        ]
        assert entry["mean"] == pytest.approx(statistics.fmean(finals))
        assert entry["std"] == pytest.approx(statistics.pstdev(finals))
        start = f"  {entry['label']} "
        (line,) = [line for line in lines if line.startswith(start) and " finished " not in line]
        words = ["2", *(f"{entry[key]:.1f}" for key in ("mean", "std", "worst", "median"))]
        assert line[len(start) :].split() == words
    monkeypatch.chdir(trained.parent)
    assert cli.run(["report", "group", "--output", "elsewhere.html"]) == 0
    assert "16,384" not in read(trained.parent / "elsewhere.html")


@pytest.mark.all
def test_interrupted_study_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = tmp_path / "group"
    ended = []
    original = ParallelRuns._end

    def end(self: ParallelRuns, heard: RunProcess) -> None:
        original(self, heard)
        ended.append(heard.member.name)
        if len(ended) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(ParallelRuns, "_end", end)
        words = ["study", NAME, "--seeds", "1", "--steps", "60000", "--out", str(group)]
        assert cli.run([*words, "--jobs", "1"]) == 130
    assert "paused: 3 of 4 runs have finished, 1 not begun" in capsys.readouterr().err
    assert not (group / "report.html").exists()
    assert cli.run(["report", str(group)]) == 0, "of what there is"
    assert "3 of 4 runs have finished" in read(group / "report.html")
    assert "not begun" in read(group / "report.html")
    assert cli.run(["train", "--resume", str(group)]) == 0
    assert "4 of 4 runs have finished" in read(group / "report.html")


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["study"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:-2]] == studies.study_names()
    assert lines[-1].endswith("study ant-ablation`")
    assert cli.run(["study", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [entry["study"] for entry in document["studies"]] == studies.study_names()
    assert document["studies"][0]["variants"] == list(VARIANTS)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("pendulum-ablation", 2, 'unknown study "pendulum-ablation": did you mean pendulum-ppo'),
        (f"{NAME} --threads 2", 2, "--threads does not go with board host"),
        (f"{NAME} --board hots", 2, 'unknown board "hots": did you mean host'),
        (f"{NAME} --out .", 2, "is not empty: choose another folder with --out"),
    ],
)
def test_what_makes_no_sense(
    words: str, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["study", *words.split()]) == code
    error = capsys.readouterr().err.splitlines()[-1]
    assert sentence in error


def test_a_setting_that_the_experiment_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variant = {"name": "typo", "label": "x", "settings": {"adapt_rat": 0}}
    document = {"title": "t", "experiment": "pendulum-ppo", "board": "host", "seeds": "0"}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({**document, "variants": [variant]}))
    monkeypatch.setattr(studies, "study_files", lambda: {"a": path})
    assert cli.run(["study", "a", "--out", str(tmp_path / "group")]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == (
        f'error: {path}, variants[0] (typo): unknown hyperparameter "adapt_rat": did you mean '
        "adaptive_lr or adam_beta2 or adam_beta1?"
    )
    assert not (tmp_path / "group").exists()
