"""A group's own files: what a killed, refused or resumed command leaves, without its processes."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from disk_calls import FullDisk, ends_killed_at, watched
from fake_board import policy_of
from fake_experiment import FINGERPRINT, TENSORS, fake_experiment
from policy_run import GROUP
from rltools_host.build.boards import load_board
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.interruption import Interruption
from rltools_host.runs.checkpoint import Checkpoint, to_safetensors
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.training import group as group_module
from rltools_host.training import group_plan
from rltools_host.training.group import GroupTraining, scratch_folder
from rltools_host.training.group_plan import GroupRequest, parse_seeds
from rltools_host.training.plan import Plan, TrainingRequest
from rltools_host.training.progress import FINISHED, GroupScreen, Member
from rltools_host.tree import command_line
from run_folders import change, new_group, new_run
from training_bench import final_state

STEPS = 40
ASKED = {**GROUP, "experiment": "fake-td3", "steps": STEPS, "jobs": 1}


def finish_run(path: Path, seed: int, anew: bool = False, resumed: bool = False) -> None:
    """A run as training leaves it at its end, in its last calls to the disk."""
    payload = final_state(seed, STEPS)
    checkpoint = Checkpoint("fake-td3", FINGERPRINT, STEPS, payload, {"steps": STEPS})
    files = {
        "checkpoint.safetensors": to_safetensors(checkpoint, TENSORS),
        "policy.rltp": policy_of(payload),
    }
    about = {"format": 4, "experiment": "fake-td3", "board": "host", "seed": seed, "steps": STEPS}
    folder = (
        RunFolder.open(path)
        if resumed
        else new_run(path, {**about, "state": "training"}, restarts=anew)
    )
    with contextlib.closing(folder):
        run = structs.replace(
            folder.content,
            state="finished",
            step=STEPS,
            return_mean=-float(seed),
            return_std=0.5,
            train_s=1.5,
        )
        folder.commit(STEPS, checkpoint.state_sha256, files, run)


class EndedRuns:
    """In place of the processes: each run is at its end at once."""

    def __init__(self, *arguments: Any, **_: Any) -> None:
        self._ended = arguments[4]

    def train(self, next_run: Callable[[], tuple[Member, TrainingRequest] | None]) -> None:
        while (following := next_run()) is not None:
            member, request = following
            assert member.path in (request.out, Path(request.resume or ""))
            finish_run(member.path, member.seed, request.restarts, request.resume is not None)
            member.state = FINISHED
            self._ended(member)


@pytest.fixture(autouse=True)
def _no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_module, "ParallelRuns", EndedRuns)


def created(path: Path) -> Path:
    new_group(path, {**ASKED, "state": "training"}).close()
    return path


def train(path: Path, make_screen: Callable[[Any], GroupScreen] = GroupScreen) -> dict[str, Any]:
    """What `rlt train --resume` does when its plan is made."""
    plan = Plan(fake_experiment(), load_board("host"), {"seed": 0, "steps": STEPS})
    group = GroupFolder.open(path)
    group.lock()
    try:
        return GroupTraining(group, plan, Interruption()).train(make_screen)
    finally:
        group.close()


def stored(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((path / "group.json").read_text())
    return document


def assert_finished(path: Path) -> None:
    document = stored(path)
    assert document["state"] == "finished"
    assert [run["state"] for run in document["runs"]] == ["finished", "finished"]
    assert [run["return_mean"] for run in document["runs"]] == [0.0, -1.0]
    assert document["summary"][0]["mean"] == -0.5
    assert "ended" in document
    assert sorted(entry.name for entry in path.iterdir()) == ["group.json", "s0", "s1"]


# -- killed, and gone on with ----------------------------------------------------------------------


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.all)])
def test_killed_before_any_call_to_the_disk(tmp_path: Path, every: int) -> None:
    """One more command always ends with a group that says that it has finished."""
    killed, point, repaired = True, 0, 0
    while killed:
        path = created(tmp_path / str(point))
        killed = ends_killed_at(point, lambda path=path: train(path))  # type: ignore[misc]
        was_said = stored(path)["state"] == "finished"
        ran = all((path / f"s{seed}/run.json").exists() for seed in (0, 1)) and all(
            json.loads((path / f"s{seed}/run.json").read_text())["state"] == "finished"
            for seed in (0, 1)
        )
        repaired += ran and not was_said
        if was_said:
            with pytest.raises(UsageError, match=r"all 2 runs of .* have finished: give a larger"):
                train(path)
        else:
            assert train(path)["state"] == "finished"
        assert_finished(path)
        shutil.rmtree(path)
        point += every
    assert point > 60, "two runs make more calls than that"
    assert repaired > 5 // every


@pytest.mark.parametrize(
    ("had", "begun", "settings", "sentence"),
    [
        ({"learning_rate": 0.002}, 1, [], "began with learning_rate=0.002, and the defaults are"),
        ({"learning_rate": 0.002}, 1, ["learning_rate=0.002"], ""),
        ({"learning_rate": 0.002}, 2, [], ""),
        ({"learning_rate": 0.001, "steps": 7, "eval_freq": 3, "gone": 1.0}, 1, [], ""),
    ],
)
def test_runs_of_a_group_have_the_same_defaults(
    had: dict[str, float],
    begun: int,
    settings: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a tree in which they are others, the runs that have not begun are no part of it."""
    plan = Plan(fake_experiment(), load_board("host"), {"seed": 0, "steps": STEPS})
    monkeypatch.setattr(group_plan, "make_plan", lambda *_, **__: plan)
    monkeypatch.setattr(group_plan, "build_program", lambda _: None)
    path = tmp_path / "group"
    new_group(path, {**ASKED, "settings": settings, "state": "paused"}).close()
    for seed in range(begun):
        finish_run(path / f"s{seed}", seed)
        change(RunFolder.open(path / f"s{seed}"), hyperparameters=had)
    request = GroupRequest(TrainingRequest(resume=str(path)))
    if not sentence:
        group_plan.resume_group(request)[0].close()
        return
    with pytest.raises(UsageError, match=sentence) as refused:
        group_plan.resume_group(request)
    assert f"train --resume {path / 's0'}`" in str(refused.value)
    GroupFolder.open(path).lock()  # it was given back


# -- what is not the tools' ------------------------------------------------------------------------


def test_a_save_without_run_json_stays(tmp_path: Path) -> None:
    path = created(tmp_path / "group")
    finish_run(path / "s0", 0)
    (path / "s0" / "run.json").unlink()
    (save,) = (path / "s0").glob("save-*")
    with pytest.raises(RltError, match=r"1 of 2 runs failed \(seed 0\)") as caught:
        train(path)
    assert caught.value.exit_code == DamagedFileError.exit_code
    assert "holds a save and no run.json: restore that" in stored(path)["runs"][0]["error"]
    assert (save / "checkpoint.safetensors").is_file()
    assert stored(path)["runs"][1]["state"] == "finished"


def test_a_users_file_in_an_older_save_stays(tmp_path: Path) -> None:
    finish_run(tmp_path / "run", 0)
    folder = RunFolder.open(tmp_path / "run")
    older = folder.save_path
    (older / "notes.txt").write_text("mine")
    folder.commit(STEPS + 1, "ab" * 32, {"policy.rltp": b""}, folder.content)
    assert [entry.name for entry in older.iterdir()] == ["notes.txt"]


def test_the_scratch_folder_has_what_is_the_tools_removed(tmp_path: Path) -> None:
    program = tmp_path / "pendulum"
    with scratch_folder(tmp_path / ".work", program) as scratch:
        for name in ("s0.job", "s0.log", "pendulum", "pendulum.map"):
            (scratch / name).write_text("")
    assert not scratch.exists()
    scratch.mkdir()
    (scratch / "notes.txt").write_text("mine")
    (scratch / "s0.job").write_text("of a command that was killed")
    with scratch_folder(tmp_path / ".work", program):
        pass
    assert [entry.name for entry in scratch.iterdir()] == ["notes.txt"]


# -- a full disk -----------------------------------------------------------------------------------


def test_full_disk_at_every_point(tmp_path: Path) -> None:
    """The sentence says what goes on, and that does."""
    failed, point = True, 0
    while failed:
        path = created(tmp_path / str(point))
        sentence = ""
        try:
            with watched(FullDisk(point), FullDisk.NEED_SPACE):
                train(path)
        except RltError as error:
            sentence = str(error)
        failed = sentence != ""
        if failed:
            assert "No space left on device" in sentence
            assert sentence.endswith(
                f"; free some space, then go on with `{command_line('train', '--resume', path)}`"
            )
            if stored(path)["state"] != "finished":  # it was written, its folder not synchronized
                train(path)
        assert_finished(path)
        shutil.rmtree(path)
        point += 1
    assert point > 25


# -- seeds as they are typed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,3,5-7", (0, 3, 5, 6, 7)),
        ("4294967295", (4294967295,)),
    ],
)
def test_seeds(text: str, expected: tuple[int, ...]) -> None:
    assert parse_seeds(text) == expected


@pytest.mark.parametrize("text", ["", "a", "5-3", "1,0-2", "4294967296", "0-16384"])
def test_what_are_no_seeds(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seeds(text)
