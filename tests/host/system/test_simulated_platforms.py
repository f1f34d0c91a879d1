"""Commands with the functions of Windows and of macOS alone (tests/fakes/simulated_platform.py)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import simulated_platform
from foreign_files import FOLDER
from rltools_host.tree import TREE
from waiting import wait_for

SYSTEMS = ("windows", "macos")
STATE = "1c4d11e54c2e"  # of 300 steps of pendulum-td3, on each system
Rlt = Callable[..., str]


def simulated(system: str, *words: str, folder: Path = TREE.root, code: int = 0) -> str:
    """What Python prints on a system."""
    command = [sys.executable, "-I", str(simulated_platform.__file__), system, *words]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "TERM": "dumb"},
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_is_trained_with_the_same_bits(system: str, tmp_path: Path) -> None:
    words = ("train", "pendulum-td3", "--steps", "300", "--out", str(tmp_path / "run"))
    assert f"state {STATE}" in simulated(system, "-m", "rltools_host", *words)


ROOM = "import rltools_host.system as s; print(s.lock.__module__, s.processors() > 0)"


@pytest.mark.parametrize(("system", "file"), [("windows", "windows"), ("macos", "posix")])
def test_what_the_package_asks_for_is_taken_away(system: str, file: str) -> None:
    assert simulated(system, "-c", ROOM) == f"rltools_host.system.{file} True\n"
    if system == "windows":
        code = "exec('import fcntl', {'__name__': 'rltools_host.boards.link'})"
        assert "No module named 'fcntl'" in simulated(system, "-c", code, code=1)


@pytest.fixture(scope="module", params=SYSTEMS)
def rlt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rlt:
    """A command in a project of one system, in which a run was trained."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "rlt.toml").touch()

    def command(*words: str, code: int = 0) -> str:
        return simulated(request.param, "-m", "rltools_host", *words, folder=folder, code=code)

    command("train", "pendulum-td3", "--steps", "300", "--out", "runs/one")
    return command


@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--help", "Start with"),
        ("doctor", "Process on this machine"),
        ("train pendulum-td3 --steps 300 --seeds 0-1 --out runs/group", "seed 1: finished"),
        ("train pendulum-td3 --steps 400 --resume one", "finished 400 steps"),
        ("evaluate one --episodes 2", "2 deterministic episodes"),
        ("export one --output policy.rltp", "policy.rltp"),
        ("report one", "wrote"),
        ("push one --board host", "confirmed: active in slot 0"),
        ("hil --board host --run one", "same bits"),
        ("runs", "one"),
        ("runs rename one two", "two"),
        ("runs rename two one", "one"),
        ("check pendulum-td3", "pendulum"),
        ("new ball-on-beam", "ball-on-beam"),
        ("import {sac} --contract pendulum", "Stable-Baselines3 SAC"),
    ],
)
def test_a_command_works(rlt: Rlt, line: str, expected: str) -> None:
    words = line.format(sac=FOLDER / "sb3_sac.zip").split()
    assert expected in rlt(*words)


@pytest.mark.all
def test_one_of_two_commands_has_a_run(tmp_path: Path) -> None:
    """Whatever a lock is made of."""
    folder = tmp_path / "held"
    folder.mkdir()
    code = (
        "import sys, pathlib; from rltools_host.files import FolderLock as L;"
        "one, two = (L(pathlib.Path(sys.argv[1])) for _ in range(2)); one.take();"
        "print(two.is_taken()); one.release(); print(two.is_taken())"
    )
    for system in SYSTEMS:
        assert simulated(system, "-c", code, str(folder)) == "True\nFalse\n"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("function", "of_os"), [("replace", "replace"), ("rename_folder", "rename")]
)
def test_windows_waits_for_who_has_a_file_open(function: str, of_os: str, tmp_path: Path) -> None:
    """As virus scanners do with what is new."""
    (tmp_path / "new").mkdir()
    code = (
        "import os, pathlib, sys, rltools_host.system as system\n"
        f"renamed, tries = os.{of_os}, []\n"
        "def rename(source, target):\n"
        "    tries.append(source)\n"
        "    if len(tries) < 3: raise PermissionError('it is open')\n"
        "    renamed(source, target)\n"
        f"os.{of_os} = rename\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        f"system.{function}(folder / 'new', folder / 'kept')\n"
        "print(len(tries), os.listdir(folder))"
    )
    assert simulated("windows", "-c", code, str(tmp_path)) == "3 ['kept']\n"


@pytest.mark.all
@pytest.mark.parametrize("system", SYSTEMS)
def test_ctrl_c_pauses_a_group_and_each_run_goes_on_from_there(system: str, tmp_path: Path) -> None:
    """The command passes it on: by Ctrl-Break on Windows, where no process takes SIGTERM."""
    group = tmp_path / "group"
    words = ["-m", "rltools_host", "train", "pendulum-td3", "--seeds", "0-1", "--out", str(group)]
    command = [sys.executable, "-I", str(simulated_platform.__file__), system, *words]
    with subprocess.Popen(
        command, cwd=TREE.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        wait_for(lambda: len(list(group.glob("s*/metrics.jsonl"))) == 2, 120)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    states = [json.loads((group / f"s{seed}/run.json").read_text())["state"] for seed in range(2)]
    assert states == ["paused", "paused"], said
