"""Studies as data: what a file must have, and where it is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import experiments
from rltools_host.commands import study as study_command
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.report.group_page import write_group_report
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.training.group import train_group
from rltools_host.training.group_plan import GroupRequest
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import GroupScreen
from rltools_host.training.study import Study, load_study, study_names
from training_calls import train_here

STUDY: dict[str, Any] = {
    "title": "A title",
    "experiment": "pendulum-ppo",
    "seeds": "0-2,7",
    "variants": [
        {"name": "with", "label": "with it", "settings": {}},
        {"name": "without", "label": "without it", "settings": {"adaptive_lr": 0, "gamma": 0.9}},
    ],
}


@pytest.fixture
def studies(project: Path) -> Path:
    """Where a project's studies lie."""
    folder = project / "experiments" / "studies"
    folder.mkdir(parents=True)
    return folder


def written(folder: Path, text: str) -> Path:
    path = folder / "a_study.json"
    path.write_text(text)
    return path


def test_what_a_file_says(studies: Path) -> None:
    written(studies, json.dumps(STUDY))
    assert "a-study" in study_names()
    study = load_study("a-study")
    assert (study.name, study.title, study.experiment) == ("a-study", "A title", "pendulum-ppo")
    assert study.all_seeds == (0, 1, 2, 7)
    assert (study.board, study.steps, study.threads, study.shared_settings) == (
        None,
        None,
        None,
        (),
    )
    assert (study.x_axis, study.y_axis) == ("environment steps", "return")
    assert [variant.settings for variant in study.trained_variants] == [
        (),
        ("adaptive_lr=0", "gamma=0.9"),
    ]
    given = {"board": "host", "steps": 5, "threads": 2, "settings": {"eval_freq": 7}}
    written(studies, json.dumps({**STUDY, **given}))
    study = load_study("a-study")
    assert (study.board, study.steps, study.threads) == ("host", 5, 2)
    assert study.shared_settings == ("eval_freq=7",)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"titel": "x"}, "Object contains unknown field `titel`"),
        ({"title": ""}, "title: Expected `str` in one line"),
        ({"seeds": "5-3"}, "--seeds: the range 5-3 runs backwards"),
        ({"variants": []}, "variants: Expected `array` of length >= 1"),
        ({"variants": [{"name": "A", "label": "a", "settings": {}}]}, "variants[0].name: Expected"),
        ({"variants": [{"name": "", "label": "a", "settings": {}}]}, "variants[0].name: Expected"),
        ({"variants": [{"name": "a", "settings": {}}]}, "variants[0]: Object missing required"),
        (
            {"variants": [{"name": "a", "label": "a", "settings": {"gamma": "no"}}]},
            "variants[0].settings[...]: Expected `int | float`, got `str`",
        ),
        (
            {"variants": [{"name": "a", "label": "a", "settings": {"seed": 3}}]},
            "variants[0].settings.seed is for the whole study",
        ),
        ({"variants": [STUDY["variants"][0]] * 2}, 'variants[1].name is "with" once more'),
        ({"settings": {"steps": 3}}, "settings.steps is a field of the study"),
        ({"settings": {"gamma": 0.9}}, "variants[1].settings.gamma is for the whole study"),
    ],
)
def test_what_is_wrong_is_named(studies: Path, changes: dict[str, Any], reason: str) -> None:
    path = written(studies, json.dumps({**STUDY, **changes}))
    with pytest.raises(DamagedFileError) as caught:
        load_study("a-study")
    assert str(caught.value).startswith(f"{path} is not a study: {reason}")
    assert "\n" not in str(caught.value)


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


@pytest.mark.all
def test_variants_of_different_environments_are_refused(studies: Path, tmp_path: Path) -> None:
    variants = [
        {"name": "pendulum", "label": "a", "experiment": "pendulum-td3", "settings": {}},
        {"name": "drone", "label": "b", "experiment": "crazyflie-ppo", "settings": {}},
    ]
    written(studies, json.dumps({**STUDY, "board": "host", "variants": variants}))
    with pytest.raises(UsageError, match=r"variants\[1\] \(drone\): crazyflie-ppo is of "):
        train_group(request_of(load_study("a-study"), tmp_path / "g"), GroupScreen)
    assert not (tmp_path / "g").exists()
