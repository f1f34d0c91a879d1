"""`rlt study`: a whole one with real runs, and its curves."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path

import pytest

from rltools_host.commands import cli
from rltools_host.runs.folder import RunFolder
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
    words = ["study", NAME, "--seeds", "0,2", "--steps", "8000", "--out", str(group)]
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
            assert (settings["eval_freq"], settings["steps"]) == (5000, 8000)
            hashes.add(metadata["state_sha256"])
    assert len(hashes) == 8
    alone = train_here(
        "pendulum-ppo",
        "host",
        seed=2,
        steps=8000,
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
        (name, step) for name in VARIANTS for step in (5000, 8192)
    ]
    for row in rows:
        each = [
            evaluations(trained / row["variant"] / f"s{seed}")[int(row["step"])] for seed in (0, 2)
        ]
        assert [float(row["seed_0"]), float(row["seed_2"])] == each
        assert float(row["mean"]) == pytest.approx(statistics.fmean(each), rel=1e-12)
        assert float(row["deviation"]) == pytest.approx(statistics.pstdev(each), rel=1e-12)
