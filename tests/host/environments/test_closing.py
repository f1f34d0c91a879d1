"""Every way out closes the environments: what they hold, a plant for example, is switched off."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import closing_tasks
from closing_tasks import VARIABLE, Plant, PlantThatHangs, PlantThatRaises
from rltools_host.checks.process import examine_task
from rltools_host.environments.environment_server import LIMIT_VARIABLE
from rltools_host.environments.player import flat_maker
from rltools_host.environments.server_start import ServerInThread, ServerProcess, open_task
from rltools_host.environments.task import TaskRequest, task_of
from rltools_host.errors import EnvironmentLostError, RltError, UsageError
from rltools_host.policies.episodes import gymnasium_episodes
from rltools_host.tree import TREE
from waiting import is_running, wait_for

FILE = Path(closing_tasks.__file__)


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    file = tmp_path / "noted"
    monkeypatch.setenv(VARIABLE, str(file))
    return file


def words(noted: Path) -> list[str]:
    return noted.read_text().split("\n")[:-1] if noted.exists() else []


def source(name: str) -> str:
    return f"gym:{FILE}:{name}"


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_a_run_that_ends_closes_each_environment_once(kind: str, noted: Path) -> None:
    request = TaskRequest(source("Plant"), Plant if kind == "thread" else None, environments=3)
    server = open_task(request)
    assert words(noted) == ["on"] * 3
    server.close()
    server.close()
    assert words(noted) == ["on"] * 3 + ["off"] * 3


@pytest.mark.parametrize("name", ["RefusedPlant", "UnresettablePlant"])
def test_what_cannot_be_learned_is_closed(name: str, noted: Path) -> None:
    with pytest.raises(UsageError):
        ServerProcess(TaskRequest(source(name)))
    with pytest.raises(UsageError):
        ServerInThread(TaskRequest("f", getattr(closing_tasks, name)))
    assert words(noted) == ["on", "off"] * 2


@pytest.mark.parametrize("start", [ServerProcess, ServerInThread])
def test_what_never_begins_is_closed(
    start: Any, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    make = None if start is ServerProcess else closing_tasks.PlantThatNeverBegins
    request = TaskRequest(source("PlantThatNeverBegins"), make, environments=2)
    with pytest.raises(EnvironmentLostError, match="has not returned from reset for 1 s"):
        start(request)
    wait_for(lambda: words(noted) == ["on"] * 2 + ["off"] * 2, 30)


PARENT = """
import os, signal, sys
sys.path[:0] = [{folder!r}]
from rltools_host.environments.server_start import ServerProcess
from rltools_host.environments.task import TaskRequest
server = ServerProcess(TaskRequest({source!r}, environments=2))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_command_that_is_killed_leaves_nothing_on(noted: Path) -> None:
    script = PARENT.format(folder=str(FILE.parent), source=source("Plant"))
    result = subprocess.run([sys.executable, "-c", script], cwd=TREE.root, timeout=120)
    assert result.returncode == -signal.SIGKILL
    wait_for(lambda: words(noted) == ["on"] * 2 + ["off"] * 2, 30)


@contextlib.contextmanager
def playing(server: ServerProcess) -> Iterator[Any]:
    """A program that has begun an episode."""
    import socket

    from rltools_host.environments.server_socket import GREETING, REQUEST, greeting_of

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as program:
        program.settimeout(30.0)
        program.connect(f"\0{server.address}")
        program.sendall(greeting_of(server.task))
        program.recv(GREETING.size, socket.MSG_WAITALL)
        program.sendall(REQUEST.pack(1, 0, 1, 0))
        program.recv(4096)
        yield program


def steps_until_silent(program: Any) -> None:
    from rltools_host.environments.server_socket import REQUEST

    for _ in range(40):
        program.sendall(REQUEST.pack(2, 0, 0, 1) + np.float32(0.5).tobytes())
        if not program.recv(4096):
            return


def test_a_plant_whose_step_does_not_return_is_closed(
    noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "2")
    server = ServerProcess(TaskRequest(source("PlantThatIsStuck"), environments=2))
    with playing(server) as program:
        program.settimeout(1.0)
        with contextlib.suppress(TimeoutError):
            steps_until_silent(program)
        wait_for(lambda: (server.look(), "has not returned from step" in server.failure())[1], 30)
    server.close()
    assert words(noted) == ["on"] * 2 + ["off"] * 2


def test_what_a_simulator_that_crashes_leaves_behind_is_ended(noted: Path) -> None:
    server = ServerProcess(TaskRequest(source("PlantThatCrashes")))
    process = int(words(noted)[1].split()[1])
    assert is_running(process)
    with playing(server) as program, contextlib.suppress(ConnectionResetError):
        steps_until_silent(program)
    wait_for(lambda: not is_running(process), 30)
    assert "SIGABRT" in server.failure()
    server.close()


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_a_close_that_raises_is_said_and_loses_nothing(
    kind: str, noted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make = PlantThatRaises if kind == "thread" else None
    server = open_task(TaskRequest(source("PlantThatRaises"), make, environments=2))
    server.close()
    server.close()
    assert words(noted) == ["on"] * 2 + ["off"] * 2
    note = "may not be closed: close raised RuntimeError: the switch is stuck\n"
    assert capsys.readouterr().err.count(note) == 1


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_a_close_that_hangs_is_said_after_its_time(
    kind: str, noted: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make = PlantThatHangs if kind == "thread" else None
    server = open_task(TaskRequest(source("PlantThatHangs"), make))
    monkeypatch.setenv(LIMIT_VARIABLE, "1")
    begun = time.monotonic()
    server.close()
    assert time.monotonic() < begun + 30
    assert words(noted)[:2] == ["on", "off"]
    assert "may not be closed: close has not returned for 1 s\n" in capsys.readouterr().err
    if isinstance(server, ServerProcess):
        assert not is_running(server.process_id)


def test_a_check_closes_what_it_makes(noted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLT_TEST_STEPS", "1")
    found = examine_task(TaskRequest(source("Plant")))
    assert found.figures.steps > 0
    assert sorted(words(noted)) == ["off"] * 2 + ["on"] * 2


def test_an_evaluation_closes_what_it_makes(noted: Path) -> None:
    """Also where it is refused, or fails on its way."""
    task = task_of(TaskRequest("f", name="Plant"), Plant())
    noted.unlink()

    class Failing:
        recurrence = None
        added_inputs: tuple[()] = ()

    with pytest.raises(AttributeError):
        gymnasium_episodes(Failing(), 3, 0, flat_maker(task, Plant))  # type: ignore[arg-type]
    assert words(noted) == ["on"] * 3 + ["off"] * 3
    other = task_of(TaskRequest("f", name="Plant"), Plant())
    made = flat_maker(other, closing_tasks.UnresettablePlant)()
    with pytest.raises(RltError):
        made.reset(seed=0)
    made.close()
    assert words(noted).count("on") == words(noted).count("off") + 1  # that of task_of() above
