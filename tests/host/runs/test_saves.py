"""A save is one step: killed, without space or without power at any point, a run goes on."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from disk_calls import Durability, FullDisk, ends_killed_at, watched
from fake_board import policy_of
from fake_experiment import FINGERPRINT, TENSORS
from rltools_host.errors import DiskError, UsageError
from rltools_host.runs.checkpoint import Checkpoint, parse_header, split_file, to_safetensors
from rltools_host.runs.contents import Best
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.saves import (
    is_whole,
    saves_to_resume,
    state_of_policy,
    step_of,
    write_save,
)
from run_folders import new_run
from training_bench import DIALECT, Bench, final_state, is_valid, saved_checkpoint

SEED, STEPS, PAUSED_AT = 3, 120, 40
SAVED = ("checkpoint.safetensors", "policy.rltp", "best.rltp")
BEST_AT = {PAUSED_AT: 20, STEPS: 80}  # the step of the best evaluation up to there
HYPERPARAMETERS = {"seed": SEED, "steps": STEPS, "learning_rate": 0.001}


def files_of(step: int) -> tuple[str, dict[str, bytes]]:
    """The state's hash and a save's files, as the fake board's training has them at a step."""
    payload = final_state(SEED, step)
    checkpoint = Checkpoint("fake-td3", FINGERPRINT, step, payload, HYPERPARAMETERS)
    best = policy_of(final_state(SEED, at := BEST_AT.get(step, 20)), at)
    contents = (to_safetensors(checkpoint, TENSORS), policy_of(payload, step), best)
    return checkpoint.state_sha256, dict(zip(SAVED, contents, strict=True))


def state_of(step: int) -> str:
    return hashlib.sha256(final_state(SEED, step)).hexdigest()


def evaluation_row(step: int) -> dict[str, Any]:
    moments = {"return_mean": float(step), "return_std": 1.0, "return_min": 0.0, "return_max": 99.0}
    row = {"time_s": 0.0, "kind": "evaluation", "counter": step, "step": step, "episodes": 2}
    return row | moments


def commit(path: Path, step: int) -> None:
    folder = RunFolder.open(path)
    state = "finished" if step == STEPS else "paused"
    at = BEST_AT[step]
    best = Best(at, state_of(at), float(at), 1.0)
    run = structs.replace(folder.content, state=state, steps=STEPS, best=best)
    folder.commit(step, *files_of(step), run)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has saved nothing yet."""
    path = tmp_path_factory.mktemp("runs") / "started"
    metadata = {"experiment": "fake-td3", "board": "host", "steps": STEPS, "state": "training"}
    folder = new_run(path, {"format": 4, **metadata})
    folder.append_metrics(map(evaluation_row, BEST_AT.values()))
    folder.close()
    return path


@pytest.fixture(scope="module")
def paused(started: Path) -> Path:
    """A run that was saved before its end."""
    path = started.with_name("paused")
    shutil.copytree(started, path)
    commit(path, PAUSED_AT)
    return path


def states(path: Path) -> tuple[str | None, str | None, str | None]:
    """What run.json, the checkpoint and the policy say that the run's state is."""
    folder = RunFolder.open(path)
    policy = folder.policy_path.read_bytes() if folder.policy_path.is_file() else b""
    stated = folder.content.state_sha256
    if (best := folder.content.best) is not None:
        assert best.step == BEST_AT[PAUSED_AT if stated == state_of(PAUSED_AT) else STEPS]
        assert state_of_policy(folder.best_path.read_bytes()) == best.state_sha256
    path = folder.checkpoint_path
    header = split_file(path.read_bytes(), path)[0] if path.is_file() else b""
    of_checkpoint = parse_header(header)[1].state_sha256 if header else None
    return stated, of_checkpoint, state_of_policy(policy)


def finish(bench: Bench, path: Path) -> None:
    """Goes on to the end, unless the run is there, and asserts that nothing is left over."""
    if RunFolder.open(path).content.state == "finished":
        with pytest.raises(UsageError, match=f"has done its {STEPS} steps"):
            bench.train(path, resume=str(path))
    else:
        bench.train(path, resume=str(path), tensorboard=False)
        assert [p.name for p in path.iterdir() if p.name.startswith((".", "save-"))] == [
            RunFolder.open(path).save_path.name
        ]
    assert saved_checkpoint(path).payload == final_state(SEED, STEPS)
    assert is_valid(path)["state"] == "finished"
    best = RunFolder.open(path).content.best
    assert best is not None
    assert best.return_mean in BEST_AT.values()  # the fake board keeps none, and evaluates worse
    assert RunFolder.open(path).best_path.read_bytes() == policy_of(
        final_state(SEED, best.step), best.step
    )


def killed_copies(source: Path, target: Path) -> Iterator[Path]:
    """Copies of a run whose last save was killed, at one point after another; whole at last."""
    killed, point = True, 0
    while killed:
        path = target / str(point)
        shutil.copytree(source, path)
        killed = ends_killed_at(point, lambda path=path: commit(path, STEPS))  # type: ignore[misc]
        yield path
        point += 1
    assert point > 25, "a save makes more calls than that"


def test_killed_while_saving(bench: Bench, paused: Path, tmp_path: Path) -> None:
    """The run is at the save before or at the new one, in all of its files, and goes on."""
    old, new = files_of(PAUSED_AT)[0], files_of(STEPS)[0]
    seen = []
    for path in killed_copies(paused, tmp_path):
        stated, checkpoint, policy = states(path)
        assert stated == checkpoint == policy
        seen.append(stated)
        if len(seen) % 3 == 1:
            finish(bench, path)
    assert seen == [old] * seen.count(old) + [new] * seen.count(new)
    assert min(seen.count(old), seen.count(new)) > 5


@pytest.mark.all
def test_killed_while_saving_for_the_first_time(
    bench: Bench, started: Path, tmp_path: Path
) -> None:
    """Until the save is whole there is none, and both commands say so; then the run is saved."""
    refused = 0
    for path in killed_copies(started, tmp_path):
        stated, checkpoint, policy = states(path)
        assert stated == checkpoint == policy
        if not list(path.glob("save-*")):
            refused += 1
            with pytest.raises(UsageError, match="that run saved none, start a new one"):
                bench.train(path, resume=str(path))
            continue
        finish(bench, path)
    assert refused > 5


def commit_on_full_disk(path: Path, calls: int) -> str:
    """The error's sentence, or nothing."""
    try:
        with watched(FullDisk(calls), FullDisk.NEED_SPACE):
            commit(path, STEPS)
    except DiskError as error:
        return str(error)
    return ""


def test_full_disk_at_every_point(bench: Bench, paused: Path, tmp_path: Path) -> None:
    """One sentence, the run as it was or the new save, and it goes on when there is space."""
    failed, point = True, 0
    while failed:
        path = tmp_path / str(point)
        shutil.copytree(paused, path)
        sentence = commit_on_full_disk(path, point)
        failed = sentence != ""
        assert not failed or "No space left on device; free some space" in sentence
        assert [p.name for p in path.iterdir() if p.name.endswith(".partial")] == []
        stated, checkpoint, policy = states(path)
        assert stated == checkpoint == policy
        if point % 3 == 0:
            finish(bench, path)
        point += 1
    assert point > 10


def test_power_failure(paused: Path, tmp_path: Path) -> None:
    """What a name stands for is on the disk before the name is; nothing is written in place."""
    path = tmp_path / "run"
    shutil.copytree(paused, path)
    disk = Durability()
    with watched(disk, FullDisk.NEED_SPACE):
        commit(path, STEPS)
    assert disk.at_the_end() == []
    assert len(disk.written) == 4
    assert all(p.name.startswith(".") or p.parent.name.startswith(".") for p in disk.written)


def test_power_failure_after_metrics(paused: Path, tmp_path: Path) -> None:
    """The rows up to a save are on the disk when run.json names it."""
    path = tmp_path / "run"
    shutil.copytree(paused, path)
    folder = RunFolder.open(path)
    disk = Durability()
    with watched(disk, FullDisk.NEED_SPACE):
        folder.append_metrics([{"kind": "event", "step": 50}])
        run = structs.replace(folder.content, state="finished")
        folder.commit(STEPS, *files_of(STEPS), run)
    folder.close()
    assert disk.at_the_end() == []
    assert folder.metrics_path in disk.written


# -- incomplete saves -----------------------------------------------------------------------------


def test_finished_run_without_policy_is_completed(
    bench: Bench, paused: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(paused, path)
    commit(path, STEPS)
    folder = RunFolder.open(path)
    folder.policy_path.unlink()
    assert not is_whole(folder.save_path, files_of(STEPS)[0])
    bench.train(path, resume=str(path), tensorboard=False)
    assert DIALECT.MAV_CMD_RLT_START not in bench.boards[-1].commands
    assert saved_checkpoint(path).payload == final_state(SEED, STEPS)
    assert is_valid(path)["state"] == "finished"
    assert len(list(path.glob("save-*"))) == 1


def test_damaged_save_that_run_json_does_not_name_is_passed_over(
    bench: Bench, paused: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(paused, path)
    newer = path / f"save-{STEPS}-{'0' * 12}"
    newer.mkdir()
    (newer / SAVED[0]).write_bytes(b"damaged")
    finish(bench, path)


def test_newest_of_several_saves_is_resumed_first(paused: Path, tmp_path: Path) -> None:
    """Such as are left where run.json could not be written twice; earlier ones are not taken."""
    path = tmp_path / "run"
    shutil.copytree(paused, path)
    for step in (60, 100, 80, 20):
        write_save(path, step, *files_of(step))
    run = RunFolder.open(path).content
    steps = [step_of(save) for save in saves_to_resume(path, run)]
    assert steps == [100, 80, 60, PAUSED_AT]
    shutil.rmtree(path / str(run.save))  # then the earlier ones are what is left
    steps = [step_of(save) for save in saves_to_resume(path, run)]
    assert steps == [100, 80, 60, 20, PAUSED_AT]


def test_run_that_another_process_has_changed(paused: Path, tmp_path: Path) -> None:
    """Between reading run.json and locking the folder."""
    path = tmp_path / "run"
    shutil.copytree(paused, path)
    folder = RunFolder.open(path)
    commit(path, STEPS)
    with pytest.raises(UsageError, match=r"another rlt has trained in .* run the command again"):
        folder.require_unchanged()
