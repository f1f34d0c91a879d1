"""The policy of a task in Python that SAC or XQC has learned, with its normalizer: the same bits
here and on an emulated Cortex-M7, in firmware for the task's contract."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boards_under_test import EMULATED
from gymnasium_points import Point
from rltools_host.commands import cli
from rltools_host.policies.image import read_run_policy
from training_calls import train_task

SETTINGS = {"learning_starts": 50, "eval_freq": 250, "n_eval_episodes": 2}


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("algorithm", "more"),
    [pytest.param("sac", {"norm_obs": 1}, marks=pytest.mark.slow), ("xqc", {})],
)
def test_a_normalized_policy_has_the_same_bits(
    algorithm: str, more: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    asked = {"name": "Point", "hidden": (8,), "tensorboard": False}
    settings = {**SETTINGS, **more}
    train_task(Point, algorithm=algorithm, steps=100, out=run, hyperparameters=settings, **asked)
    image = read_run_policy(run)
    assert image.normalizer is not None
    assert (image.normalizer[1] != 1).all()
    documents = []
    for board in ("host", EMULATED):
        capsys.readouterr()
        assert cli.run(["hil", "--board", board, "--run", str(run), "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out.splitlines()[-1]))
    for document in documents:
        assert document["policy_sha256"] == image.sha256
        assert document["max_abs_diff"] == 0.0
        assert document["parity"]["mismatches"] == 0
    assert documents[0]["outputs_sha256"] == documents[1]["outputs_sha256"]
