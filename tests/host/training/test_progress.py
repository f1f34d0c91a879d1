"""How the runs of a group stand, by their folders."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from fake_board import policy_of
from rltools_host.runs.group import RunName
from rltools_host.runs.saves import (
    state_of_policy,
)
from rltools_host.training.progress import (
    COMPILING,
    FAILED,
    FINISHED,
    PAUSED,
    STARTING,
    WAITING,
    Member,
)
from run_folders import new_run
from training_bench import final_state


def member(state: str = WAITING, seed: int = 0, label: str = "", **known: Any) -> Member:
    name = RunName("v" if label else "", seed)
    return Member(name, label, Path("g") / name.folder, 1000, state, **known)


def made_run(path: Path, **changes: Any) -> None:
    payload = final_state(0, 400)
    policy = policy_of(payload)
    document = {"format": 4, "experiment": "fake-td3", "seed": 0, "state": "finished", **changes}
    known: dict[str, Any] = {"step": 400, "return_mean": -5.0, "return_std": 0.5, "train_s": 1.5}
    folder = new_run(path, document)
    files = {"checkpoint.safetensors": b"c", "policy.rltp": policy}
    run = structs.replace(folder.content, **known)
    folder.commit(400, state_of_policy(policy) or "", files, run)
    folder.close()


@pytest.mark.parametrize(
    ("of_run", "asked", "expected"),
    [
        ({"steps": 400}, None, (FINISHED, 400)),
        ({"steps": 400}, 400, (FINISHED, 400)),
        ({"steps": 400}, 401, (PAUSED, 401)),  # it goes on
        ({"steps": 400}, 300, (FINISHED, 400)),
        ({"steps": 500, "state": "paused"}, None, (PAUSED, 500)),
        ({}, None, (FINISHED, 1000)),  # of a tool that did not write it down: what was planned
    ],
)
def test_a_look_into_a_folder(
    of_run: dict[str, Any], asked: int | None, expected: tuple[str, int], tmp_path: Path
) -> None:
    run = member()
    run.path = tmp_path / "s0"
    made_run(run.path, **of_run)
    run.look(asked)
    assert (run.state, run.steps) == expected
    assert (run.step, run.return_mean, run.return_std, run.train_s) == (400, -5.0, 0.5, 1.5)
    assert math.isnan(run.steps_per_s)
    assert len(run.state_sha256) == 64
    assert (run.environment_faults, run.observations_outside) == (None, None)


def test_folders_that_a_look_cannot_go_on_with(tmp_path: Path) -> None:
    run = member(FINISHED)
    run.path = tmp_path / "s0"
    run.look(None)
    assert (run.state, run.error) == (WAITING, "")
    made_run(run.path)
    checkpoint = next(run.path.glob("save-*")) / "checkpoint.safetensors"
    checkpoint.unlink()
    run.look(None)
    assert (run.state, run.error, run.step) == (WAITING, "", 0), "it starts over"
    (run.path / "run.json").write_text("{")
    run.look(None)
    assert run.state == FAILED
    assert "is damaged" in run.error
    (run.path / "run.json").unlink()
    run.look(None)
    assert run.state == FAILED
    missing = f"{run.path} holds a save and no run.json"
    assert run.error == f"{missing}: restore that, or move the save away"


def test_a_run_that_compiles_says_so() -> None:
    run = member(STARTING)
    run.take({"activity": COMPILING})
    assert (run.state, run.is_running) == ("compiling", True)
    run.take({"step": 0, "steps": 100, "steps_per_s": None, "activity": ""})
    assert run.state == STARTING
    assert run.compiling_s > 0
    run.take({"step": 1, "steps": 100, "steps_per_s": 9.0, "activity": ""})
    assert run.state == "training"
