"""Output that cannot be written, a terminal that closes and Ctrl-C at any time cost no run."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rltools_host.runs.folder import RunFolder
from rltools_host.runs.saves import is_whole
from rltools_host.tree import TREE
from run_folders import document_of

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
        pytest.param("> /dev/full", "No space left on device", marks=pytest.mark.all),
        pytest.param("--json >&9", "Broken pipe", marks=pytest.mark.all),
    ],
)
def test_output_that_cannot_be_written(redirection: str, reason: str, tmp_path: Path) -> None:
    run = tmp_path / "run"  # long enough for `head` to end before the last line
    result = shell(f"{RLT} {TRAIN} --steps 4000 --out {run} {redirection}")
    last = result.stderr.splitlines()[-1]
    assert last == f"error: the output could not be written ({reason}), but run {run} is complete"
    assert "Traceback" not in result.stderr
    assert "Exception" not in result.stderr
    assert result.returncode == 8
    assert saved(run, "finished")["step"] == 4000


@pytest.mark.all
@pytest.mark.parametrize("redirection", [">&- 2>&-", "<&- >&- 2>/dev/full", "2>/dev/full"])
def test_streams_that_are_closed_or_full(redirection: str, tmp_path: Path) -> None:
    """No file of the run takes the number of a closed stream, and nothing else goes wrong."""
    run = tmp_path / "run"
    result = shell(f"{RLT} {TRAIN} --steps 400 --out {run} {redirection}")
    assert (result.returncode, result.stderr) == (0, "")
    saved(run, "finished")
    files = [path for path in run.rglob("*") if path.is_file()]
    assert len(files) == 7
    assert not any(b"steps/s" in path.read_bytes() for path in files if "sources" not in path.name)


def test_progress_that_cannot_be_shown_fails_nothing() -> None:
    """As where something has to be compiled first, which a line on the error stream says."""
    script = (
        "import sys; from rltools_host.commands import cli\n"
        "def run(words, *_):\n"
        "    for _ in range(2): print('Building', file=sys.stderr, flush=True)\n"
        "    print('done'); return 0\n"
        "cli.run = run; cli.main(['boards'])"
    )
    result = shell(f"{shlex.join([sys.executable, '-c', script])} 2>/dev/full")
    assert (result.returncode, result.stdout) == (0, "done\n")


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("boards > /dev/full", 8, "error: cannot write the output: No space left on device"),
        ("boards >&9", 1, ""),
        ("train --resume no-such-run --json > /dev/full", 3, 'error: unknown run "no-such-run"'),
        ("train --resume no-such-run 2> /dev/full", 3, ""),
        ("--help >&-", 0, ""),
    ],
)
def test_other_commands_say_it_in_one_line(command: str, code: int, sentence: str) -> None:
    result = shell(f"{RLT} {command}")
    assert result.returncode == code
    assert result.stderr.startswith(sentence)
    assert result.stderr.count("\n") == (1 if sentence else 0)


class TerminalRun:
    """A long run on a terminal of its own."""

    def __init__(self, run: Path, environment: dict[str, str]) -> None:
        self.run = run
        self.process_id, self.terminal = pty.fork()
        if self.process_id == 0:
            command = shlex.split(f"{RLT} {TRAIN} --steps 1000000 --out {run}")
            os.execvpe(command[0], command, environment)

    def wait_for_reports(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            metrics = self.run / "metrics.jsonl"
            if metrics.is_file() and metrics.stat().st_size:
                return
            time.sleep(0.02)
        raise AssertionError("training does not begin")

    def wait(self) -> int:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            process_id, status = os.waitpid(self.process_id, os.WNOHANG)
            if process_id:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.process_id, signal.SIGKILL)
        raise AssertionError("the run does not end")


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_closing_terminal_pauses_and_saves(term: str, tmp_path: Path) -> None:
    """With the live screen and with plain lines: SIGHUP comes, and writing fails."""
    run = TerminalRun(tmp_path / "run", {**ENVIRONMENT, "TERM": term})
    run.wait_for_reports()
    os.close(run.terminal)
    assert run.wait() == 130
    metadata = saved(run.run, "paused")
    assert metadata["checkpoint_step"] > 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_signals_that_come_several_times_pause_once(number: int, tmp_path: Path) -> None:
    """A shell and the kernel both tell a process that its terminal closes."""
    run = TerminalRun(tmp_path / "run", ENVIRONMENT)
    run.wait_for_reports()
    for _ in range(3):
        os.kill(run.process_id, number)
        time.sleep(0.001)
    code = run.wait()
    os.close(run.terminal)
    assert code == 130
    saved(run.run, "paused")


def test_run_that_nohup_started_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = (
        f"trap '' HUP; {RLT} {TRAIN} --steps 3000 --out {run} & "
        f"while [ ! -s {run}/metrics.jsonl ]; do sleep 0.02; done; kill -HUP $!; wait $!"
    )
    result = shell(command)
    assert result.returncode == 0, result.stderr
    assert saved(run, "finished")["step"] == 3000


@pytest.mark.parametrize(
    "words",
    [
        ["train", "--resume", "none"],
        *(pytest.param(each, marks=pytest.mark.all) for each in (["boards"], ["evaluate", "none"])),
    ],
)
def test_interrupt_at_any_time_shows_no_traceback(words: list[str]) -> None:
    """From cli.main on: the process says `interrupted`, has done its work or ends silently."""
    program = (
        "import os, signal, sys, threading, time\n"
        "from rltools_host.commands import cli\n"
        "delay = float(sys.argv[1])\n"
        "def press():\n"
        "    time.sleep(delay)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "threading.Thread(target=press, daemon=True).start()\n"
        "cli.main(sys.argv[2:])\n"
    )

    def run(delay: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, str(delay), *words],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=60,
        )

    whole = run(1000.0).stderr  # what it says without Ctrl-C
    chance = random.Random(len(words))
    for _ in range(6):
        delay = 0.25 * chance.random()
        result = run(delay)
        assert "Traceback" not in result.stderr, f"after {delay} s"
        assert "Exception" not in result.stderr, f"after {delay} s"
        assert result.returncode in (0, 3, 130, -signal.SIGINT)
        if result.returncode == 130:
            assert whole.startswith(result.stderr.removesuffix("interrupted\n"))


FIRST_INTERRUPT = """
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    finally:
        print("cleaned up")
"""
SECOND_INTERRUPT = """
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGINT)
"""
INTERRUPT_IN_A_DESTRUCTOR = """
    class Closing:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
    Closing()
"""


@pytest.mark.parametrize(
    ("interrupts", "code", "output"),
    [
        (FIRST_INTERRUPT, 130, "cleaned up\n"),
        (SECOND_INTERRUPT, -signal.SIGINT, ""),
        (INTERRUPT_IN_A_DESTRUCTOR, -signal.SIGINT, ""),
    ],
)
def test_interrupt_lets_a_command_clean_up_and_another_ends_it(
    interrupts: str, code: int, output: str
) -> None:
    program = (
        "import os, signal, time\n"
        "from rltools_host.commands import cli\n"
        f"def run(words, *_):{interrupts}    time.sleep(10)\n"
        "cli.run = run\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "cli.main(['boards'])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT, timeout=60
    )
    assert (result.returncode, result.stdout) == (code, output)
    assert "Traceback" not in result.stderr


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
    while not (run / "metrics.jsonl").is_file():
        time.sleep(0.02)
        assert process.poll() is None
    process.terminate()
    out, _ = process.communicate(timeout=60)
    document = json.loads(out.splitlines()[-1])
    assert process.returncode == 130
    assert re.search(r"rlt train pendulum-td3 --board host --resume ", document["resume"])
    saved(run, "paused")
