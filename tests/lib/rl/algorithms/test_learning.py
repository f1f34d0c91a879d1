"""The core learns: TD3 on the host, 10,000 steps of Pendulum-v1, evaluated in gymnasium."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from rltools_host.commands import cli


def learned(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What `rlt evaluate --json` says after a training: 100 episodes, from seed 0."""
    train = ["train", "pendulum-td3", "--board", "host", "--no-tensorboard", "--out", str(folder)]
    assert cli.run([*train, *words]) == 0
    assert cli.run(["evaluate", str(folder), "--in", "gymnasium", "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return document


def test_one_seed_learns_to_swing_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seed 0 of docs/results.md; an untrained policy returns about -1,200."""
    result = learned(tmp_path / "run", capsys, "--seed", "0")
    assert result["return_mean"] >= -200
    assert min(result["returns"]) >= -700


def test_policy_after_few_steps_has_not_learned_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the measure says of a policy that is none, so that the figures above mean something."""
    assert learned(tmp_path / "run", capsys, "--steps", "300")["return_mean"] < -800


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_seeds_learn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Median at least -160, at most one seed below -260; no seed is picked."""
    document = learned(tmp_path / "group", capsys, "--seeds", "0-9")
    means = [evaluation["return_mean"] for evaluation in document["evaluations"]]
    assert len(set(means)) == 10
    assert statistics.median(means) >= -160
    assert sum(mean < -260 for mean in means) <= 1
