"""Environments that do not return, that stray, and that share a name: by the real programs."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gymnasium_points
from gymnasium_points import NeverMade, NeverReset, Point, StrayPoint, StuckPoint, WidePoint
from rltools_host.boards.description import load_board
from rltools_host.build import experiments, firmware
from rltools_host.commands.train import closing_lines
from rltools_host.errors import EnvironmentLostError, RltError, UsageError
from rltools_host.gymnasium_tasks.environment_server import (
    LIMIT_VARIABLE,
    EnvironmentServer,
    call_limit_s,
)
from rltools_host.gymnasium_tasks.header import headers_of
from rltools_host.gymnasium_tasks.play_state import STEP, PlayState
from rltools_host.gymnasium_tasks.process import ServerProcess
from rltools_host.gymnasium_tasks.server import ServerInThread, begin
from rltools_host.gymnasium_tasks.task import Task, TaskRequest
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.sources import read_sources
from rltools_host.training.gymnasium_runs import evaluate_gymnasium
from rltools_host.training.plan import Built
from rltools_host.tree import TREE
from training_calls import train_task

POINTS = Path(gymnasium_points.__file__)
# The experiment of test_training.py, which is compiled once for both.
TRAIN = functools.partial(
    train_task,
    name="dot",
    hidden=(8,),
    hyperparameters={"learning_starts": 50, "eval_every": 250, "eval_episodes": 2},
    sizes={"batch_size": 32, "replay_capacity": 2000, "rollout_steps": 32},
    tensorboard=False,
)


def source_of(environment: type[Point], place: str) -> Any:
    """Played by a thread of this process, or by a process."""
    return environment if place == "thread" else f"{POINTS}:{environment.__name__}"


# -- one name, two tasks ---------------------------------------------------------------------------


def test_two_trainings_of_one_name_at_once_are_of_their_own_ranges(tmp_path: Path) -> None:
    """As threads, begun together; each environment asserts that its actions are within its box."""
    results: dict[str, dict[str, Any]] = {}
    together = threading.Barrier(2)

    def train(environment: type[Point]) -> None:
        together.wait()
        name = environment.__name__
        results[name] = TRAIN(environment, steps=400, seed=1, out=tmp_path / name)

    threads = [threading.Thread(target=train, args=(each,)) for each in (Point, WidePoint)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: result["environment_faults"] for name, result in results.items()} == {
        "Point": 0,
        "WidePoint": 0,
    }
    assert len({result["experiment"] for result in results.values()}) == 1
    tasks = [RunFolder.open(tmp_path / name).metadata["gymnasium"] for name in results]
    assert {task["actions"][0]["maximum"] for task in tasks} == {1.5, 150.0}
    alone = TRAIN(Point, steps=400, seed=1, out=tmp_path / "alone")
    assert alone["state_sha256"] == results["Point"]["state_sha256"]
    assert evaluate_gymnasium(WidePoint, tmp_path / "WidePoint", episodes=2).episodes == 2


def test_a_program_of_another_task_is_refused(tmp_path: Path) -> None:
    TRAIN(Point, steps=100, out=tmp_path / "first")
    task = RunFolder.open(tmp_path / "first").metadata["gymnasium"]
    subject = headers_of(Task.of_document(task)).experiment
    program = firmware.build_firmware(load_board("host-threads"), subject)
    built = Built(experiments.describe(subject), program, read_sources())
    with pytest.raises(EnvironmentLostError, match="was compiled for another task"):
        TRAIN(WidePoint, steps=100, out=tmp_path / "second", built=built)


# -- what does not return --------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["thread", "process"])
def test_a_step_that_does_not_return_ends_the_run_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "3")
    run = tmp_path / "run"
    with pytest.raises(EnvironmentLostError) as raised:
        TRAIN(source_of(StuckPoint, place), steps=600, out=run)
    said = str(raised.value)
    assert "the environment dot has not returned from step for 3 s: find out why it waits" in said
    assert LIMIT_VARIABLE in said
    assert "checkpoint saved; go on with" in said
    monkeypatch.delenv(LIMIT_VARIABLE)
    if place == "thread":
        assert train_task(Point, resume=str(run), steps=600)["step"] == 600
    assert (run / RunFolder.open(run).checkpoint_path).is_file()


@pytest.mark.parametrize("place", ["thread", "process"])
@pytest.mark.parametrize(
    ("environment", "what"),
    [(NeverMade, "has not been made"), (NeverReset, "has not returned from reset")],
)
def test_what_never_begins_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, environment: type[Point], what: str, place: str
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    request = TaskRequest(f"gym:{source_of(environment, 'process')}", name="dot")
    if place == "thread":
        request = TaskRequest("f", environment, name="dot")
    start = ServerProcess if place == "process" else ServerInThread
    with pytest.raises(EnvironmentLostError, match=f"the environment dot {what} for 1 s"):
        start(request)


class Played(EnvironmentServer):
    """Whose calls the test makes."""

    def __init__(self) -> None:
        self.state = PlayState()
        super().__init__("dot", self.state)
        self.state.answered()
        self.broken_off, self.lost = 0, ""

    def _ended(self) -> str:
        return self.lost

    def _break_off(self) -> None:
        self.broken_off += 1

    def close(self) -> None:
        raise NotImplementedError


def test_a_board_may_be_silent_while_an_environment_takes_its_time() -> None:
    played = Played()
    assert played.is_awaited()  # it has answered since the beginning
    assert not played.is_awaited()
    played.state.call(STEP)
    assert played.is_awaited()
    assert played.is_awaited()
    played.state.answered()
    assert played.is_awaited()
    assert not played.is_awaited()
    played.state.call(STEP)
    played.lost = "it has ended"
    assert not played.is_awaited()
    assert played.broken_off == 0


def test_a_call_that_takes_too_long_is_broken_off_once(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played()
    played.state.call(STEP)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 119.0)
    assert played.is_awaited()
    monkeypatch.setattr(time, "monotonic", lambda: now + 121.0)
    assert not played.is_awaited()
    assert not played.is_awaited()
    assert played.broken_off == 1
    assert "has not returned from step for 120 s" in played.failure()


@pytest.mark.parametrize("text", ["0", "-1", "soon", "nan"])
def test_a_limit_is_a_number_of_seconds(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(UsageError, match="give seconds above zero"):
        call_limit_s()
    monkeypatch.setenv(LIMIT_VARIABLE, "0.5")
    assert call_limit_s() == 0.5


# -- what strays -----------------------------------------------------------------------------------


def test_observations_beyond_their_range_are_an_event_and_counted(tmp_path: Path) -> None:
    result = TRAIN(StrayPoint, steps=400, out=tmp_path / "run")
    first = "observation_1 was 2.125, and its range is -2 to 2"
    assert result["environment_faults"] == 0
    assert result["observations_outside"] >= 400 // 20 * 4
    assert result["observation_outside"] == first
    folder = RunFolder.open(tmp_path / "run")
    assert folder.observations_outside == result["observations_outside"]
    events = [row["text"] for row in folder.read_metrics() if row["kind"] == "event"]
    assert events == [f"an observation lies outside its range: {first}"]
    (line,) = [line for line in closing_lines(result).splitlines() if "outside" in line]
    assert "where a board takes the safe action: give wider ranges with channels" in line
    assert first in line


# -- what is left, and what is suggested -----------------------------------------------------------


def test_the_next_command_is_one_of_this_environment(tmp_path: Path) -> None:
    of_function = TRAIN(Point, steps=100, out=tmp_path / "function")
    of_file = TRAIN(source_of(Point, "process"), steps=100, out=tmp_path / "file")
    lines = [closing_lines(each) for each in (of_function, of_file)]
    assert f"rlt.evaluate_gymnasium(make_env, '{tmp_path / 'function'}')" in lines[0]
    assert "--in gymnasium" not in lines[0] + lines[1]
    assert f"evaluate {tmp_path / 'file'}\n" in lines[1]


KILLED = """
import os, signal, sys, tempfile
sys.path.insert(0, {folder!r})
from gymnasium_points import Point
from rltools_host.gymnasium_tasks.process import ServerProcess
from rltools_host.gymnasium_tasks.server import ServerInThread
from rltools_host.gymnasium_tasks.task import Task, TaskRequest
made = []
tempfile.mkdtemp = lambda *words, **options: made.append(words) or os.abort()
servers = [ServerInThread(TaskRequest("f", Point)), ServerProcess(TaskRequest({source!r}))]
print(*(server.address for server in servers), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_nothing_behind(tmp_path: Path) -> None:
    script = KILLED.format(folder=str(POINTS.parent), source=f"gym:{POINTS}:Point")
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=TREE.root,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    addresses = result.stdout.split()
    assert len(addresses) == 2
    assert list(tmp_path.iterdir()) == []
    until(lambda: not any(name in Path("/proc/net/unix").read_text() for name in addresses))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


INTERRUPTED = """
import signal, sys
sys.path.insert(0, {folder!r})
import rlt
from gymnasium_points import NeverMade
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 1.0)
try:
    rlt.train_gymnasium({make}, out={out!r}, quiet=True)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("make", ["NeverMade", "{points!r} + ':NeverMade'"])
def test_ctrl_c_while_a_run_is_prepared_is_one_of_python(tmp_path: Path, make: str) -> None:
    """It ends what was begun: the process that plays, and the wait for a thread."""
    script = INTERRUPTED.format(
        folder=str(POINTS.parent), make=make.format(points=str(POINTS)), out=str(tmp_path / "run")
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (result.stdout, result.returncode) == ("interrupted\n", 0), result.stderr
    assert not (tmp_path / "run").exists()


def test_an_environment_that_fails_when_it_is_made_has_one_sentence() -> None:
    def leaving() -> Any:
        raise SystemExit(3)

    with pytest.raises(RltError, match="the environment ended its thread by SystemExit: 3"):
        ServerInThread(TaskRequest("f", leaving))
    with pytest.raises(UsageError, match="it raised ValueError"):
        begin(lambda: int("a"), TaskRequest("f"), None, PlayState())
