"""`rlt train --seeds`: many runs at once, with real ones on this machine."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from group_calls import (
    ENVIRONMENT,
    RLT,
    children_of,
    command_of,
    is_state,
    rlt,
    started,
    state_of,
    trains,
)
from rltools_host.commands import cli
from rltools_host.errors import BoardError, UsageError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import GroupFolder
from run_folders import document_of
from training_calls import train_here
from waiting import is_running, wait_for

TRAIN = ("train", "pendulum-ppo", "--board", "host")
LONG = "150000"  # steps: seconds, in which a signal comes
ENDLESS = "20000000"  # of what is not waited for


# -- whole groups ----------------------------------------------------------------------------------


def test_each_seed_is_an_ordinary_run(tmp_path: Path) -> None:
    group = tmp_path / "group"
    words = ("--steps", "6000", "--set", "learning_rate=0.002", "--out", group)
    result = rlt(*TRAIN, "--seeds", "0,3", *words, "--json")
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    document = json.loads(line)
    assert document["state"] == "finished"
    assert [run["seed"] for run in document["runs"]] == [0, 3]
    for run in document["runs"]:
        path = Path(run["run"])
        assert path == group / f"s{run['seed']}"
        alone = train_here(
            "pendulum-ppo",
            "host",
            seed=run["seed"],
            steps=6000,
            settings=["learning_rate=0.002"],
            out=tmp_path / f"alone{run['seed']}",
        )
        names = {entry.name.split(".")[0] for entry in path.iterdir()}
        assert names == {entry.name.split(".")[0] for entry in Path(alone["run"]).iterdir()}
        assert run["state_sha256"] == alone["state_sha256"] == state_of(path)
        assert run["return_mean"] == alone["return_mean"]
    returns = sorted(run["return_mean"] for run in document["runs"])
    (summary,) = document["summary"]
    assert summary["mean"] == pytest.approx(sum(returns) / 2)
    assert (summary["worst"], summary["median"], summary["runs"]) == (
        returns[0],
        pytest.approx(sum(returns) / 2),
        2,
    )
    stored = document_of(GroupFolder.open(group))
    assert (stored["state"], stored["seeds"]) == ("finished", [0, 3])
    assert stored["summary"] == document["summary"]


# -- signals ---------------------------------------------------------------------------------------


def test_pause_and_one_command_that_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = tmp_path / "group"
    words = ("--seeds", "0-2", "--steps", LONG, "--jobs", "1", "--out", group)
    process = started(*TRAIN, *words)
    wait_for(lambda: is_state(group / "s0", "finished") and trains(group / "s1"))
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    last = errors.splitlines()[-1]
    sentence = "paused: 1 of 3 runs have finished, 1 saved on the way, 1 not begun; go on with `"
    assert last.startswith(sentence)
    command = shlex.split(last.split("`")[1])[1:]
    assert command == ["train", "--resume", str(group)]
    assert [line.split()[1] for line in output.splitlines() if line[:5] == "  1  "] == ["paused"]
    assert GroupFolder.open(group).content.state == "paused"
    assert not (group / "s2").exists()
    before = (group / "s0" / "run.json").read_bytes()
    paused = RunFolder.open(group / "s1").content.checkpoint_step
    assert 0 < paused < int(LONG)

    result = rlt(*command, "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert [run["state"] for run in document["runs"]] == ["finished"] * 3
    assert document["jobs"] == 1, "what was asked for holds"
    assert (group / "s0" / "run.json").read_bytes() == before
    sessions = document_of(RunFolder.open(group / "s1"))["sessions"]
    assert [session["first_step"] for session in sessions] == [0, paused]
    whole = train_here("pendulum-ppo", "host", seed=1, steps=int(LONG), out=tmp_path / "whole")
    assert state_of(group / "s1") == whole["state_sha256"]

    assert cli.run(["train", "--resume", str(group)]) == UsageError.exit_code
    error = capsys.readouterr().err
    assert "all 3 runs of" in error
    assert "have finished: give a larger total with --steps" in error


@pytest.mark.all
@pytest.mark.parametrize(
    "delay_s", [0.1, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in (0.0, 0.3, 0.5))]
)
def test_pause_at_any_moment(tmp_path: Path, delay_s: float) -> None:
    """Also while processes start, before there is anything to save."""
    group = tmp_path / "group"
    words = ("--seeds", "0-1", "--steps", "120000", "--jobs", "2", "--out", group)
    process = started(*TRAIN, *words)
    wait_for((group / "group.json").is_file)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith(f"train --resume {group}`")
    states = [run["state"] for run in document_of(GroupFolder.open(group))["runs"]]
    assert set(states) <= {"waiting", "paused", "finished"}
    result = rlt("train", "--resume", group)
    assert result.returncode == 0, result.stderr
    whole = train_here("pendulum-ppo", "host", seed=1, steps=120000, out=tmp_path / "whole")
    assert state_of(group / "s1") == whole["state_sha256"]


@pytest.mark.all
def test_second_interrupt_quits(tmp_path: Path) -> None:
    """Nothing is saved, nothing is left running, and the same command goes on."""
    group = tmp_path / "group"
    process = started(*TRAIN, "--seeds", "5,6", "--steps", "4000000", "--jobs", "2", "--out", group)
    wait_for(lambda: trains(group / "s5") and trains(group / "s6"))
    boards = [board for worker in children_of(process.pid) for board in children_of(worker)]
    assert len(boards) == 2
    for pid in boards:
        os.kill(pid, signal.SIGSTOP)  # a board that does not pause
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    wait_for(lambda: "pausing; Ctrl-C once more" in process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith(
        "quit without saving the runs in training; go on with `"
    )
    wait_for(lambda: not any(is_running(pid) for pid in boards), 10)
    assert GroupFolder.open(group).content.state == "interrupted"
    for seed in (5, 6):  # each was told, and said so: none was killed for not answering
        assert RunFolder.open(group / f"s{seed}").content.state == "interrupted"
    result = rlt("train", "--resume", group, "--steps", "6000")
    assert result.returncode == 0, result.stderr
    assert RunFolder.open(group / "s5").content.step == 6144


@pytest.mark.all
def test_terminal_that_closes(tmp_path: Path) -> None:
    """On a terminal there is a table; when it goes all are paused, whatever may be printed."""
    group = tmp_path / "group"
    main, side = pty.openpty()
    process = subprocess.Popen(
        [*RLT, *TRAIN, "--seeds", "0-1", "--steps", ENDLESS, "--out", str(group)],
        stdin=side,
        stdout=side,
        stderr=side,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "90", "LINES": "24"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(side)
    shown = b""
    while not (b"training" in shown and trains(group / "s0") and trains(group / "s1")):
        shown += os.read(main, 4096)
    os.close(main)
    assert process.wait(60) == 130
    assert b"steps/s" in shown
    assert b"\x1b[" in shown
    assert is_state(group / "s0", "paused")
    assert is_state(group / "s1", "paused")


def test_command_that_is_killed(tmp_path: Path) -> None:
    """Nothing is left running, and the group can be gone on with."""
    group = tmp_path / "group"
    words = ("--steps", ENDLESS, "--set", f"eval_freq={ENDLESS}")  # no save beyond the steps below
    process = started(*TRAIN, "--seeds", "0-1", *words, "--jobs", "2", "--out", group)
    wait_for(lambda: trains(group / "s0") and trains(group / "s1"))
    workers = children_of(process.pid)
    everything = [*workers, *(board for worker in workers for board in children_of(worker))]
    assert len(everything) == 4
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: not any(is_running(pid) for pid in everything), 10)
    result = rlt("train", "--resume", group, "--steps", "6000")
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in group.iterdir()) == ["group.json", "s0", "s1"]
    whole = train_here("pendulum-ppo", "host", seed=1, steps=6000, out=tmp_path / "whole")
    assert state_of(group / "s1") == whole["state_sha256"]


# -- failures --------------------------------------------------------------------------------------


def test_a_process_that_is_killed_is_a_run_that_failed(tmp_path: Path) -> None:
    group = tmp_path / "group"
    process = started(*TRAIN, "--seeds", "0-1", "--steps", LONG, "--jobs", "1", "--out", group)
    wait_for(lambda: trains(group / "s0"))
    (worker,) = children_of(process.pid)
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "error: 1 of 2 runs failed (seed 0): try it again with `" in errors
    assert is_state(group / "s1", "finished")
    stored = document_of(GroupFolder.open(group))["runs"]
    assert stored[0]["error"] == "its process gave no result, it was ended by SIGKILL"
    assert [run["state"] for run in stored] == ["failed", "finished"]


# -- what makes no sense ---------------------------------------------------------------------------


def test_a_folder_of_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    assert cli.run([*TRAIN, "--seeds", "0-1", "--out", str(tmp_path)]) == UsageError.exit_code
    assert "is not empty: choose another folder with --out" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.all
def test_a_seed_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    group = tmp_path / "group"
    words = ("--seeds", "0-2", "--steps", LONG, "--jobs", "2", "--out", group)
    process = started(*TRAIN, *words, "--json")
    wait_for(lambda: trains(group / "s1"))
    (worker,) = [pid for pid in children_of(process.pid) if "s1.job" in command_of(pid)]
    (board,) = children_of(worker)
    os.kill(board, signal.SIGKILL)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == BoardError.exit_code
    document = json.loads(output.splitlines()[-1])
    assert [run["state"] for run in document["runs"]] == ["finished", "failed", "finished"]
    assert document["state"] == "failed"
    assert (document["summary"][0]["runs"], document["summary"][0]["failed"]) == (2, 1)
    assert " 2 of 3 " in errors
    said = "  1 run failed: mean, deviation, worst and median are of the others"
    assert said in errors.splitlines()
    sentence = document["runs"][1]["error"]
    assert "it was ended by SIGKILL" in sentence
    assert f"  seed 1: {sentence}" in errors.splitlines()
    assert "\n" not in sentence
    last = errors.splitlines()[-1]
    assert last.startswith("error: 1 of 3 runs failed (seed 1): try it again with `")
    result = rlt(*shlex.split(last.split("`")[1])[1:])
    assert result.returncode == 0, result.stderr
    whole = train_here("pendulum-ppo", "host", seed=1, steps=int(LONG), out=tmp_path / "whole")
    assert state_of(group / "s1") == whole["state_sha256"]
