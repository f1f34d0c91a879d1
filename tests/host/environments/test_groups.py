"""`rlt train gym:ID --seeds`: a group of runs whose episodes Python plays, with real programs.

All are one experiment, gym-point-sac of small networks, so that it is compiled once.
"""

from __future__ import annotations

import json
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

import gymnasium_points
from group_calls import (
    children_of,
    command_of,
    is_state,
    rlt,
    started,
    state_of,
    trains,
)
from gymnasium_points import Point
from policy_run import GROUP
from rltools_host.build import experiments
from rltools_host.commands import cli
from rltools_host.environments.headers import headers_of
from rltools_host.environments.server_start import PROGRAM, open_task
from rltools_host.environments.task import TaskRequest
from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from rltools_host.runs.task import Task
from rltools_host.training import parallel_runs
from rltools_host.training.plan import TrainingRequest
from run_folders import document_of, new_group
from waiting import is_running, wait_for

SMALL = (
    *("--set", "hidden=8", "--no-tensorboard"),
    *("--set", "learning_starts=50", "--set", "eval_freq=1000000"),
)
POINT = ("train", f"gym:{gymnasium_points.__file__}:Point", *SMALL)
LONG = "5000"  # steps: seconds, in which a signal comes


def players_of(pid: int) -> dict[str, int]:
    """The processes that play the episodes of a group's runs, by the runs' names."""
    found = {}
    for process in children_of(pid):
        job = re.search(r"/(\w+)\.job\0", command_of(process))
        for child in children_of(process) if job else ():
            if PROGRAM in command_of(child):
                found[str(job[1])] = child
    return found


def processes_below(pid: int) -> list[int]:
    below = children_of(pid)
    return [*below, *(process for child in below for process in processes_below(child))]


@pytest.mark.all
def test_a_pause_and_one_command_that_goes_on(tmp_path: Path) -> None:
    """From the group's folder alone, in any folder."""
    group = tmp_path / "group"
    (tmp_path / "tasks.py").write_text(Path(gymnasium_points.__file__).read_text())
    words = ("--seeds", "5-7", "--steps", LONG, "--jobs", "1", "--out", group)
    process = started("train", "gym:tasks.py:Point", *SMALL, *words, cwd=tmp_path)
    wait_for(lambda: is_state(group / "s5", "finished") and trains(group / "s6"))
    players = players_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    last = errors.splitlines()[-1]
    assert "paused: 1 of 3 runs have finished, 1 saved on the way, 1 not begun; go on" in last
    assert not any(is_running(pid) for pid in players.values())
    paused = RunFolder.open(group / "s6").content.checkpoint_step
    stored = document_of(GroupFolder.open(group))

    result = rlt("train", "--resume", group, "--json")
    assert result.returncode == 0, result.stderr
    assert [run["state"] for run in json.loads(result.stdout)["runs"]] == ["finished"] * 3
    gone_on = RunFolder.open(group / "s6")
    assert [session["first_step"] for session in document_of(gone_on)["sessions"]] == [0, paused]
    texts = [row["text"] for row in gone_on.read_metrics() if row["kind"] == "event"]
    assert [text[:18] for text in texts] == ["new episodes begin"]
    alone = rlt(*POINT, "--seed", "7", "--steps", LONG, "--out", tmp_path / "alone")
    assert alone.returncode == 0, alone.stderr
    assert state_of(group / "s7") == state_of(tmp_path / "alone")
    assert document_of(GroupFolder.open(group))["gymnasium"] == stored["gymnasium"]

    more = rlt("train", "--resume", group, "--steps", "5100", "--board", "host")
    assert more.returncode == 0, more.stderr
    runs = [document_of(RunFolder.open(group / f"s{seed}")) for seed in (5, 6, 7)]
    assert [(run["step"], run["gymnasium"]) for run in runs] == [(5100, stored["gymnasium"])] * 3

    evaluated = json.loads(rlt("evaluate", group, "--episodes", "2", "--json").stdout)
    assert [entry["training_seed"] for entry in evaluated["evaluations"]] == [5, 6, 7]
    assert {entry["environment"] for entry in evaluated["evaluations"]} == {"Point"}
    refused = rlt("evaluate", group, "--in", "core")
    assert refused.returncode == UsageError.exit_code
    assert "s5: --in core: Point is played by Gymnasium" in refused.stderr
    assert rlt("report", group).returncode == 0
    assert "3 of 3 runs have finished" in (group / "report.html").read_text()


@pytest.mark.parametrize("moment", ["player", pytest.param("training", marks=pytest.mark.all)])
def test_a_pause_leaves_nothing_running_whenever_it_comes(tmp_path: Path, moment: str) -> None:
    """Also while environments are made, where there is nothing to save."""
    group = tmp_path / "group"
    words = ("--seeds", "0-1", "--steps", "400000", "--jobs", "2", "--out", group)
    process = started(*POINT, *words)
    wait_for((group / "group.json").is_file)
    wait_for(lambda: len(players_of(process.pid)) == 2)
    players = players_of(process.pid).values()
    if moment == "training":
        wait_for(lambda: trains(group / "s0") and trains(group / "s1"))
    below = processes_below(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith(f"train --resume {group}`")
    wait_for(lambda: not any(is_running(pid) for pid in (*below, *players)), 10)
    states = {run["state"] for run in document_of(GroupFolder.open(group))["runs"]}
    assert states == {"paused"} if moment == "training" else states <= {"waiting", "paused"}
    assert not (group / ".work").exists()


def test_a_run_that_is_paused_before_it_trains_closes_what_it_opened(tmp_path: Path) -> None:
    file = tmp_path / "tasks.py"
    file.write_text("import time\ntime.sleep(100)\n")
    job = tmp_path / "s0.job"
    job.write_bytes(pickle.dumps(TrainingRequest(task=TaskRequest(f"gym:{file}:Point"))))
    command = [sys.executable, "-I", parallel_runs.__file__, str(job)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(
        lambda: any("environments.server_socket" in command_of(p) for p in children_of(process.pid))
    )
    (player,) = children_of(process.pid)
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert json.loads(output) == {"state": "waiting", "exit_code": 130, "error": ""}
    assert (process.returncode, errors) == (130, "")
    wait_for(lambda: not is_running(player), 10)  # where it had just begun, Linux ends it


@pytest.fixture
def task() -> Iterator[Task]:
    server = open_task(TaskRequest("f", Point, name="elsewhere"))
    server.close()
    yield server.task
    headers = headers_of(server.task)
    experiment = experiments.generated_header(headers.experiment)
    for path in (experiment, experiments.generated_header(headers.contract, experiments.CONTRACT)):
        path.unlink(missing_ok=True)


def test_what_group_json_must_say_of_a_task(
    tmp_path: Path, task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {**to_builtins(task), "source": "gym:Point"}
    document = {**GROUP, "experiment": task.experiment, "seeds": [0], "gymnasium": named}
    far = f"gym:{'/a-folder' * 100}/tasks.py:Point"  # a path may be longer than other texts
    for index, source in enumerate(("gym:Point", far)):
        whole = {**named, "source": source}
        new_group(tmp_path / f"whole{index}", {**document, "gymnasium": whole})
        assert document_of(GroupFolder.open(tmp_path / f"whole{index}"))["gymnasium"] == whole
    changes: list[tuple[Any, str]] = [
        (
            {**named, "source": "gym:"},
            'gymnasium.source is "gym:", not a task\'s name such as gym:',
        ),
        (
            {**named, "experiment": "gym-other-sac"},
            'gymnasium.experiment is "gym-other-sac", not the experiment gym-elsewhere-sac',
        ),
        ({"source": "gym:Point"}, "gymnasium: Object missing required field `environment`"),
    ]
    for index, (value, sentence) in enumerate(changes):
        path = new_group(tmp_path / f"g{index}", document).path / "group.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "gymnasium": value}))
        code = cli.run(["train", "--resume", str(tmp_path / f"g{index}")])
        assert code == DamagedFileError.exit_code
        (error,) = capsys.readouterr().err.splitlines()
        assert sentence in error
