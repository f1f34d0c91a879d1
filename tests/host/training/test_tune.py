"""Tunings with real runs: each trial is an ordinary run, and no finished one is lost."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from group_calls import ENVIRONMENT, RLT, children_of, command_of, rlt
from rltools_host.commands import cli
from rltools_host.errors import DamagedFileError, Interrupted, UsageError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.runs.inventory import entries
from rltools_host.training import tune as tune_module
from rltools_host.training.plan import TrainingRequest
from rltools_host.training.progress import GroupScreen, Member
from rltools_host.training.study import TuneRequest
from rltools_host.training.tune import tune
from run_folders import document_of
from training_calls import train_here
from tune_calls import prune_second, stored

pytestmark = pytest.mark.all  # Optuna is installed

STEPS, EVALUATED = 400, "eval_freq=100"
SHARED: dict[str, Any] = {"steps": STEPS, "settings": (EVALUATED,)}


def request(out: Path | None = None, **asked: Any) -> TuneRequest:
    fields = {name: asked.pop(name) for name in ("jobs", "seeds") if name in asked}
    fields = {"jobs": 2, "tensorboard": False, **SHARED, **fields}
    return TuneRequest(TrainingRequest("pendulum-td3", "host", out=out, **fields), **asked)


def resumed(path: Path, **asked: Any) -> TuneRequest:
    jobs = asked.pop("jobs", None)
    return TuneRequest(TrainingRequest(resume=str(path), jobs=jobs), **asked)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    path = tmp_path_factory.mktemp("tune") / "a tuning, with 100 % odd ? characters #1"
    return path, tune(request(path, trials=4, prunes=False), GroupScreen)


def test_a_trial_is_a_run_that_can_be_repeated(
    tuned: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, document = tuned
    assert [each["state"] for each in document["trials"]] == ["complete"] * 4
    runs = [RunFolder.open(path / f"t{number}/s0") for number in range(4)]
    values = [run.content.return_mean for run in runs]
    assert [each["value"] for each in document["trials"]] == values
    assert stored(path) == {number: ("COMPLETE", values[number]) for number in range(4)}
    best = document["best"]
    assert best["value"] == max(value for value in values if value is not None)
    words = shlex.split(document["command"])
    assert words[1:6] == ["train", "pendulum-td3", "--board", "host", "--steps"]
    settings = [word for word in words if "=" in word]
    assert settings == [EVALUATED, *best["settings"]]
    again = train_here("pendulum-td3", "host", steps=STEPS, settings=settings, out=tmp_path / "r")
    assert again["state_sha256"] == runs[best["trial"]].content.state_sha256


def test_commands_know_a_tuning(
    tuned: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = tuned
    assert cli.run(["report", str(path)]) == 0
    page = (path / "report.html").read_text()
    assert "trial 3" in page
    assert cli.run(["runs", "compare", str(path)]) == 0
    assert "t3" in capsys.readouterr().out
    (entry,) = entries(path.parent)
    assert (entry.state, entry.is_group) == ("finished", True)
    assert cli.run(["evaluate", str(path), "--episodes", "1"]) == 0
    assert cli.run(["train", "--resume", str(path)]) != 0
    assert "is a tuning: go on with" in capsys.readouterr().err


def test_a_tuning_goes_on_to_more_trials(
    tuned: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path = Path(shutil.copytree(tuned[0], tmp_path / "copy"))
    before = stored(path)
    document = tune(resumed(path, trials=6), GroupScreen)
    assert len(document["trials"]) == 6
    assert {number: stored(path)[number] for number in before} == before
    assert document["of"] == document_of(GroupFolder.open(path))["tune"]["trials"] == 6


def test_what_is_the_same_may_be_typed_otherwise(tmp_path: Path) -> None:
    """The very command line again, and numbers in other words; other values are refused."""
    path = tmp_path / "t"
    shared = {**SHARED, "settings": (EVALUATED, "gamma=9.9e-1"), "tensorboard": False}
    typed = ("learning_rate=1e-4..1e-2",)
    tune(TuneRequest(TrainingRequest("pendulum-td3", out=path, **shared), typed, 1), GroupScreen)

    def again(*search: str, **given: Any) -> TuneRequest:
        training = TrainingRequest("pendulum-td3", "host", resume=str(path), **SHARED | given)
        return TuneRequest(training, search, 1)

    for same in (typed, ("learning_rate=0.0001..1E-2",), ()):
        settings = (EVALUATED, "gamma=.99")
        assert len(tune(again(*same, settings=settings), GroupScreen)["trials"]) == 1
    with pytest.raises(UsageError, match="--search differs there"):
        tune(again("learning_rate=1e-4..1e-1", settings=shared["settings"]), GroupScreen)
    with pytest.raises(UsageError, match="--set differs there"):
        tune(again(settings=(EVALUATED, "gamma=0.98")), GroupScreen)
    with pytest.raises(UsageError, match="the experiment differs there"):
        tune(again(settings=(EVALUATED, "hidden=8,8")), GroupScreen)
    with pytest.raises(UsageError, match="--jobs 0: give a number from 1 to"):
        tune(resumed(path, jobs=0), GroupScreen)


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    url = "postgresql://me:secret@localhost:1/x"
    with pytest.raises((UsageError, DamagedFileError), match=r"me:\*\*\*@localhost:1/x") as refused:
        tune(request(tmp_path / "t", trials=1, storage=url), GroupScreen)
    assert "secret" not in str(refused.value)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("database", ["SQLite", "RLT_DATABASE"])
def test_trials_in_a_database_of_ones_own(database: str, tmp_path: Path) -> None:
    """Or in one of a server: RLT_DATABASE=postgresql://USER@HOST/NAME in the environment."""
    url = f"sqlite:///{tmp_path / 'mine.db'}"
    if database == "RLT_DATABASE" and not (url := os.environ.get(database, "")):
        pytest.skip("RLT_DATABASE is not set")
    document = tune(request(tmp_path / "t", trials=1, storage=url), GroupScreen)
    assert (document["of"], len(document["trials"])) == (1, 1)
    assert not (tmp_path / "t/study.db").exists()
    with pytest.raises(UsageError, match=r"are in \w+://.*: give it with --storage"):
        tune(resumed(tmp_path / "t", trials=2), GroupScreen)
    document = tune(resumed(tmp_path / "t", trials=2, storage=url), GroupScreen)
    assert [each["trial"] for each in document["trials"]] == [0, 1]


def test_a_trial_with_several_seeds_has_their_mean(tmp_path: Path) -> None:
    path = tmp_path / "t"
    document = tune(request(path, trials=2, seeds=(3, 4)), GroupScreen)
    for each in document["trials"]:
        runs = [RunFolder.open(path / f"t{each['trial']}/s{seed}").content for seed in (3, 4)]
        assert each["value"] == pytest.approx(sum(run.return_mean or 0.0 for run in runs) / 2)


def test_a_pruned_trial_is_a_paused_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prune_second(monkeypatch)
    path = tmp_path / "t"
    training = TrainingRequest(
        "pendulum-td3", "host", out=path, steps=20_000, settings=("eval_freq=200",), jobs=1
    )
    asked = TuneRequest(training, trials=2, search=("learning_rate=1e-4,1e-3",))
    document = tune(asked, GroupScreen)
    assert [each["state"] for each in document["trials"]] == ["complete", "pruned"]
    assert document["best"]["trial"] == 0
    pruned = RunFolder.open(path / "t1/s0").content
    assert pruned.state == "paused"
    assert (pruned.checkpoint_step or 0) < 20_000
    assert [run["state"] for run in document["runs"]] == ["finished", "pruned"]
    again = tune(resumed(path), GroupScreen)
    assert again["trials"] == document["trials"]
    assert [run["state"] for run in again["runs"]] == ["finished", "pruned"]


def test_a_trial_whose_training_breaks_off_is_told_as_failed(tmp_path: Path) -> None:
    """Losses that are not finite: of the settings, and no reason to end the others."""
    training = TrainingRequest(
        "pendulum-ppo",
        "host",
        out=tmp_path / "t",
        steps=5000,
        settings=("max_grad_norm=0", "normalize_advantage=0", "adaptive_lr=0"),
        jobs=1,
    )
    asked = TuneRequest(training, trials=2, search=("reward_scale=1e6,1",), prunes=False)
    document = tune(asked, GroupScreen)
    states = {each["settings"][0]: each["state"] for each in document["trials"]}
    assert len(document["trials"]) == 2
    assert set(states.values()) <= {"complete", "failed"}


def test_a_pause_and_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Pressing(GroupScreen):
        def changed(self, member: Member) -> None:
            if member.state == "finished":
                os.kill(os.getpid(), signal.SIGINT)

    path = tmp_path / "t"
    with pytest.raises(
        Interrupted, match=r"paused: \d of 3 trials done; go on with .*tune --resume"
    ):
        tune(request(path, trials=3, jobs=1), Pressing)
    assert GroupFolder.open(path).content.state == "paused"
    (entry,) = entries(tmp_path)
    assert entry.state.startswith("paused, ")
    monkeypatch.setattr(tune_module.time, "monotonic", iter(range(0, 10**6, 100)).__next__)
    document = tune(resumed(path, timeout_s=1.0), GroupScreen)
    assert (document["state"], len(document["trials"]) < 3) == ("paused", True)
    monkeypatch.undo()
    document = tune(resumed(path), GroupScreen)
    assert (document["state"], len(document["trials"])) == ("finished", 3)


def test_runs_of_another_storage_are_not_taken(
    tuned: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path = Path(shutil.copytree(tuned[0], tmp_path / "copy"))
    (path / "study.db").unlink()
    metadata = json.loads((path / "group.json").read_text())
    metadata["variants"][0]["settings"] = ["learning_rate=0.5"]
    (path / "group.json").write_text(json.dumps(metadata))
    with pytest.raises(DamagedFileError, match="trial 0 has other settings in its storage"):
        tune(resumed(path), GroupScreen)


@pytest.mark.slow
def test_sizes_of_a_task_are_searched(project_in_tree: Path) -> None:
    """Several of them, with a program for each: tests/host/build/test_sizes.py."""
    ended = rlt(
        *("tune", "gym:Pendulum-v1", "--trials", "1", "--steps", "300", "--jobs", "1"),
        *("--search", "hidden=8,16x8", "--set", "eval_freq=150", "--json", "--name", "sizes"),
        cwd=project_in_tree,
    )
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout.splitlines()[-1])
    for each in document["trials"]:
        run = RunFolder.open(project_in_tree / f"runs/sizes/t{each['trial']}/s0").content
        assert run.gymnasium is not None
        assert f"hidden={','.join(map(str, run.gymnasium.hidden))}" in each["settings"]
        assert run.state == "finished"
    words = shlex.split(document["command"])[1:]
    again = rlt(*words, "--out", "again", cwd=project_in_tree)
    assert again.returncode == 0, again.stderr
    best = RunFolder.open(project_in_tree / f"runs/sizes/t{document['best']['trial']}/s0").content
    assert RunFolder.open(project_in_tree / "again").content.state_sha256 == best.state_sha256


# -- kills -----------------------------------------------------------------------------------------


def workers_of(head: int) -> Iterator[int]:
    for child in children_of(head):
        if "parallel_runs.py" in command_of(child):
            yield child


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.exhaustive)])
def test_no_finished_trial_is_lost_whatever_is_killed(kills: int, project_in_tree: Path) -> None:
    """So many workers and as many heads, by SIGKILL, at moments that a seed draws."""
    chance = random.Random(0)
    start = [*RLT, "tune", "pendulum-td3", "--board", "host", "--trials", str(kills + 2)]
    start += ["--steps", "1500", "--set", EVALUATED, "--jobs", "2", "--name", "t"]
    path = project_in_tree / "runs/t"
    killed = {"worker": 0, "head": 0}
    known: dict[int, tuple[str, float | None]] = {}
    while True:
        head = subprocess.Popen(
            start,
            env=ENVIRONMENT,
            cwd=project_in_tree,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        begun = time.monotonic()
        with head:
            while head.poll() is None:
                time.sleep(chance.uniform(0.05, 0.4))
                workers = list(workers_of(head.pid)) if head.poll() is None else []
                if workers and killed["worker"] < kills and chance.random() < 0.4:
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    killed["worker"] += 1
                is_old = time.monotonic() - begun > chance.uniform(1.0, 2.5)
                if is_old and killed["head"] < kills and (path / "study.db").is_file():
                    head.kill()
                    killed["head"] += 1
            assert head.stdout is not None
            said = head.stdout.read().decode()
        if (path / "study.db").is_file():
            told = {
                n: each for n, each in stored(path).items() if each[0] in ("COMPLETE", "PRUNED")
            }
            assert known.items() <= told.items(), "a trial that was told stays as it was"
            known = told
        assert head.returncode in (0, -signal.SIGKILL), said
        if head.returncode == 0:
            if set(killed.values()) == {kills}:
                break
            # It was too fast: more trials, so that there is something to kill.
            start[start.index("--trials") + 1] = str(int(start[start.index("--trials") + 1]) + 4)
    total = int(start[start.index("--trials") + 1])
    found = stored(path)
    assert sum(state in ("COMPLETE", "PRUNED") for state, _ in found.values()) == total
    assert [
        state for state, _ in found.values() if state not in ("COMPLETE", "PRUNED", "RUNNING")
    ] == []
    for number, (state, value) in found.items():
        if state == "COMPLETE":
            run = RunFolder.open(path / f"t{number}/s0").content
            assert (run.state, run.return_mean) == ("finished", value)
    assert not any(name.startswith(".") for name in os.listdir(path))
