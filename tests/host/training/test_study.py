"""The studies of the tree, and one across algorithms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import experiments
from rltools_host.commands import study as study_command
from rltools_host.errors import DamagedFileError
from rltools_host.report.group_page import write_group_report
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.training.group import train_group
from rltools_host.training.group_plan import GroupRequest
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import GroupScreen
from rltools_host.training.study import Study, load_study, study_names
from rltools_host.tree import TREE
from training_calls import train_here


@pytest.mark.parametrize("name", study_names())
def test_our_studies(name: str) -> None:
    """Each can be read, and is of experiments that there are; an ablation has its four variants."""
    study = load_study(name)
    assert set(study.experiments) <= set(experiments.list_experiments())
    if "ablation" not in name:
        return
    switches = {variant.name: set(variant.settings) for variant in study.trained_variants}
    assert switches == {
        "both": set(),
        "no-adaptive-rate": {"adaptive_lr=0"},
        "no-normalization": {"norm_obs=0"},
        "neither": {"adaptive_lr=0", "norm_obs=0"},
    }


def test_a_value_that_is_no_number_is_named(project: Path) -> None:
    """It ended in a traceback."""
    folder = project / "experiments" / "studies"
    folder.mkdir(parents=True)
    text = (TREE.experiments / "studies" / "pendulum_ppo_ablation.json").read_text()
    document = json.loads(text)
    document["variants"][0]["settings"] = {"learning_rate": "1e-3"}
    (folder / "mine.json").write_text(json.dumps(document))
    with pytest.raises(DamagedFileError, match=r"mine\.json is not a study: variants.*got `str`"):
        load_study("mine")


# -- across algorithms -----------------------------------------------------------------------------


def request_of(study: Study, out: Path, **given: Any) -> GroupRequest:
    return study_command.request_of(
        study, TrainingRequest(out=out, seeds=(3,), tensorboard=False, **given)
    )


@pytest.mark.all
def test_variants_of_different_experiments(tmp_path: Path) -> None:
    """A run has the bits of one that is trained alone; a resumed study goes on with all."""
    study = load_study("pendulum-algorithms")
    assert study.experiments == ["pendulum-td3", "pendulum-sac", "pendulum-ppo"]
    path, steps = tmp_path / "group", 600  # PPO does whole iterations of 2,048
    document = train_group(request_of(study, path, steps=steps), GroupScreen)
    assert [run["state"] for run in document["runs"]] == ["finished"] * 3
    runs = {
        variant: RunFolder.open(path / variant / "s3").content for variant in ("td3", "sac", "ppo")
    }
    assert [run.experiment for run in runs.values()] == study.experiments
    settings = ["eval_freq=1000"]
    alone = train_here(
        "pendulum-sac", "host", seed=3, steps=steps, settings=settings, out=tmp_path / "alone"
    )
    assert runs["sac"].state_sha256 == alone["state_sha256"]
    request = GroupRequest(TrainingRequest(resume=str(path), steps=2049))
    document = train_group(request, GroupScreen)
    assert [run["step"] for run in document["runs"]] == [2049, 2049, 4096]
    assert RunFolder.open(path / "sac/s3").content.experiment == "pendulum-sac"
    page, _ = write_group_report(GroupFolder.open(path))
    assert "SAC" in page.read_text()
