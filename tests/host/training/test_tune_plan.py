"""What a tuning that goes on may be asked for, without Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policy_run import GROUP
from rltools_host.errors import UsageError
from rltools_host.runs.group import TUNE, GroupFolder
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.study import TuneRequest, resume_tuning
from run_folders import new_group

URL = "sqlite:///mine.db"
TUNED: dict[str, Any] = {
    "mark": "0123456789abcdef",
    "study": "t",
    "search": ["gamma=0.9..0.99"],
    "trials": 4,
    "prunes": False,
}
ASKED = {**GROUP, "kind": TUNE, "seeds": [0], "settings": ["eval_freq=100"], "variants": []}

RUNS: dict[str, Any] = {"variants": [{"name": "", "label": "", "settings": []}]}


def refusal(path: Path, training: dict[str, Any] | None = None, **asked: Any) -> str:
    request = TuneRequest(TrainingRequest(resume=str(path), **(training or {})), **asked)
    with pytest.raises(UsageError) as refused:
        resume_tuning(request)
    GroupFolder.open(path).lock()  # it was given back
    return str(refused.value)


def made(path: Path, storage: str | None, tune: bool = True) -> Path:
    tuned = {**TUNED, "storage": storage}
    return new_group(path, {**ASKED, "tune": tuned} if tune else {**ASKED, **RUNS}).path


@pytest.mark.parametrize(
    ("training", "asked", "sentence"),
    [
        ({"seeds": (1,)}, {}, "--seeds differs there"),
        ({}, {"search": ("gamma=0.9..0.98",)}, "--search differs there"),
        ({}, {"prunes": True}, "--prune differs there"),
        ({"board": "qemu-cortex-m7"}, {}, "--board differs there"),
        ({"settings": ("eval_freq=50",)}, {}, "--set differs there"),
        ({}, {"storage": URL}, "lie in its folder: leave --storage out"),
    ],
)
def test_it_goes_on_as_it_began(
    training: dict[str, Any], asked: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    assert sentence in refusal(made(tmp_path / "t", None), training, **asked)


def test_trials_elsewhere_are_asked_for(tmp_path: Path) -> None:
    path = made(tmp_path / "t", URL)
    assert f"are in {URL}: give it with --storage" in refusal(path)


def test_a_group_of_runs_is_no_tuning(tmp_path: Path) -> None:
    path = made(tmp_path / "g", None, tune=False)
    assert "g is not a tuning: continue it with `" in refusal(path)
