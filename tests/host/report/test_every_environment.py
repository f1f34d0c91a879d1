"""One episode is drawn of environments of every kind: choices, a picture, a drone, Gymnasium's."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltools_host.report.page import write_report
from rltools_host.report.run_data import collect
from rltools_host.runs.folder import RunFolder
from training_calls import train_here, train_task

SHORT = ["n_eval_episodes=1"]


def check_episode_is_drawn(run: Path) -> None:
    data = collect(RunFolder.open(run))
    assert data.episode is not None
    assert data.image is not None
    shown = write_report(RunFolder.open(run), run).read_text(encoding="utf-8")
    (section,) = [part for part in shown.split("<section>") if "<h2>One episode</h2>" in part]
    for channel in (*data.image.observations[:40], *data.image.actions):
        assert channel.name.replace("_", " ") in section, channel.name
    assert "return so far" in section


@pytest.mark.all
@pytest.mark.parametrize(
    "experiment",
    [
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("cartpole-ppo", "racing-car-ppo")
        ),
        "quadrotor-ppo",
    ],
)
def test_of_an_experiment(experiment: str, tmp_path: Path) -> None:
    train_here(experiment, "host", steps=256, settings=SHORT, out=tmp_path / "run")
    check_episode_is_drawn(tmp_path / "run")


@pytest.mark.all
def test_of_a_task_of_gymnasium(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_task("MountainCarContinuous-v0", algorithm="td3", steps=200, out=run, tensorboard=False)
    check_episode_is_drawn(run)
