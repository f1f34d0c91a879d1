"""`rlt study`: a whole one with real runs, its table, page and curves."""

from __future__ import annotations

import csv
import json
import os
import signal
import statistics
from pathlib import Path

import pytest

from html_page import Page
from rltools_host.commands import cli
from rltools_host.runs.folder import RunFolder
from rltools_host.training import study as studies
from rltools_host.training.parallel_runs import ParallelRuns, RunProcess
from run_folders import document_of
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
            metadata = document_of(RunFolder.open(trained / name / f"s{seed}"))
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
    assert document_of(folder)["state_sha256"] == alone["state_sha256"], "evaluations change no bit"


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
