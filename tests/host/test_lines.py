"""Output that cannot be written, a terminal that closes and Ctrl-C cost no run."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rltools_host.errors import DiskError
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.saves import is_whole
from rltools_host.tree import TREE
from run_folders import document_of
from waiting import wait_for

RLT = shlex.join([sys.executable, "-m", "rltools_host"])
TRAIN = "train pendulum-td3 --board host --set report_every=50"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TREE.root / "host"), "TERM": "xterm"}


# Opens descriptor 9 on a pipe whose reader has ended.
CLOSED_PIPE = (
    'fifo=$(mktemp -u) && mkfifo "$fifo" && { true <"$fifo" & } && exec 9>"$fifo" && wait $! && '
    'rm "$fifo" && '
)


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """In bash, where the exit code is that of the last command that fails."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", (CLOSED_PIPE if ">&9" in command else "") + command],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=120,
    )


def saved(run: Path, state: str) -> dict[str, Any]:
    """Asserts that the run has a whole save; returns run.json."""
    folder = RunFolder.open(run)
    assert folder.content.state == state
    assert is_whole(folder.save_path, document_of(folder)["state_sha256"])
    return document_of(folder)


@pytest.mark.parametrize(
    ("redirection", "reason"),
    [
        ("| head -1", "Broken pipe"),
        ("--json > /dev/full", "No space left on device"),
    ],
)
def test_output_that_cannot_be_written(redirection: str, reason: str, tmp_path: Path) -> None:
    run = tmp_path / "run"  # long enough for `head` to end before the last line
    result = shell(f"{RLT} {TRAIN} --steps 4000 --out {run} {redirection}")
    last = result.stderr.splitlines()[-1]
    assert last == f"error: the output could not be written ({reason}), but run {run} is complete"
    assert "Traceback" not in result.stderr
    assert "Exception" not in result.stderr
    assert result.returncode == DiskError.exit_code
    assert saved(run, "finished")["step"] == 4000


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("runs > /dev/full", 5, "error: cannot write: No space left on device"),
        ("runs >&9", 1, ""),
        ("runs 2>&-", 0, ""),
    ],
)
def test_other_commands_say_it_in_one_line(command: str, code: int, sentence: str) -> None:
    result = shell(f"{RLT} {command}")
    assert result.returncode == code
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == (1 if sentence else 0)


def test_closing_terminal_pauses_and_saves(tmp_path: Path) -> None:
    """SIGHUP comes, and writing fails."""
    run = tmp_path / "run"
    process_id, terminal = pty.fork()
    if process_id == 0:
        command = shlex.split(f"{RLT} {TRAIN} --steps 1000000 --out {run}")
        os.execvpe(command[0], command, ENVIRONMENT)
    metrics = run / "metrics.jsonl"
    wait_for(lambda: metrics.is_file() and metrics.stat().st_size)
    os.close(terminal)
    ended, status = 0, 0

    def has_ended() -> bool:
        nonlocal ended, status
        ended, status = os.waitpid(process_id, os.WNOHANG)
        return ended != 0

    try:
        wait_for(has_ended, 60)
    finally:
        if not ended:
            os.kill(process_id, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(status) == 130
    assert saved(run, "paused")["checkpoint_step"] > 0


def test_pause_says_how_to_go_on_to_a_script_too(tmp_path: Path) -> None:
    """SIGTERM of a run whose output is a pipe: the last line is JSON with the command."""
    run = tmp_path / "run"
    process = subprocess.Popen(
        shlex.split(f"{RLT} {TRAIN} --steps 1000000 --json --out {run}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
        text=True,
    )
    wait_for((run / "metrics.jsonl").is_file)
    process.terminate()
    out, _ = process.communicate(timeout=60)
    document = json.loads(out.splitlines()[-1])
    assert process.returncode == 130
    assert re.search(r"rlt train pendulum-td3 --board host --resume ", document["resume"])
    saved(run, "paused")
