"""What a run shows to type next works with this run; on a terminal of 60 columns."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rltools_host.tree import LAUNCHER, MARKER, PROJECT, TREE, VARIABLE
from terminal import on_terminal

WIDTH = 60
BALL = "ball-on-beam"  # as in test_your_environment.py, so that ccache has it for one of them
FOREIGN = TREE.root / "tests" / "goldens" / "foreign"
CALLED = shlex.quote(str(LAUNCHER))  # by its whole path, as it lies elsewhere
PYTHON = "rlt.evaluate("
TASK = """\
import gymnasium
import rlt
def make_env():
    return gymnasium.make("Pendulum-v1")
"""
FUNCTION = "rlt.train(make_env, steps=300, algorithm='td3', hidden=(8, 8)"


class User:
    """Somebody in a project, with a narrow terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {name: os.environ[name] for name in os.environ if name != VARIABLE}
        self.environment |= {"PYTHONPATH": str(TREE.root / "host"), "TERM": "xterm"}
        self.environment["RLT_COMMAND"] = str(LAUNCHER)
        self.launcher = [sys.executable, "-m", "rltools_host"]

    def sees(self, *words: str | Path, width: int = WIDTH, code: int = 0) -> list[str]:
        """The lines of `rlt WORDS`, none of them cut or broken where that must not be."""
        command = [*self.launcher, *words]
        if words[0] == "-c":
            command = [sys.executable, *words]
        found, lines = on_terminal(command, width, self.folder, self.environment)
        said = "\n".join([f"{command} ended with {found}:", *lines])
        assert found == code, said
        assert [line for line in lines if len(line) > width and not is_whole(line)] == [], said
        return lines

    def does(self, line: str) -> None:
        """What a hint says, typed as it stands there."""
        if line.startswith(PYTHON):
            words = [sys.executable, "-c", f"{TASK}{line}"]
        else:
            (launcher, *words) = shlex.split(line)
            assert launcher == str(LAUNCHER), line
            words = [*self.launcher, *words]
        try:
            result = subprocess.run(
                words, cwd=self.folder, env=self.environment, capture_output=True, timeout=280
            )
        except subprocess.TimeoutExpired as late:
            pytest.fail(f"{line} has not ended:\n{late.stdout!r}\n{late.stderr!r}")
        said = (result.stdout + result.stderr).decode()
        assert result.returncode == 0, f"{line} ended with {result.returncode}:\n{said}"


def is_whole(line: str) -> bool:
    """Whether a line is longer because of a command, a path or a hash, to be copied."""
    return CALLED in line or PYTHON in line or max(map(len, line.split())) > WIDTH // 2


def hints(lines: list[str]) -> list[str]:
    """What stands behind `next`, and beneath it; the best settings of a tuning, too."""
    found, is_next = [], False
    for line in lines:
        word, text = line[:8].strip(), line[8:].strip()
        is_next = word in ("next", "best") or (is_next and not word)
        if is_next and (text.startswith((CALLED, PYTHON))):
            found.append(text)
    return found


@pytest.fixture(scope="module")
def user() -> Iterator[User]:
    """In a project, with a run of its own experiment and an imported one."""
    PROJECT.build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="user-", dir=PROJECT.build) as folder:
        somebody = User(Path(folder))
        (somebody.folder / MARKER).touch()
        somebody.sees("new", BALL, "--contract")
        somebody.sees("train", BALL, "--board", "host", "--steps", "600", "--out", "runs/ball")
        shutil.copytree(somebody.folder / "runs/ball", somebody.folder / "runs/copy of it")
        yield somebody


PPO = FOREIGN / "sb3_ppo_vec_normalize"
PPO = ("import", f"{PPO}.zip", "--normalizer", f"{PPO}.pkl", "--contract", "quadrotor")
TRAIN_FEW = ("--steps", "300", "--board")
KINDS = {
    "own": ("train", BALL, *TRAIN_FEW, "host"),
    "group": ("train", BALL, *TRAIN_FEW, "host", "--seeds", "0-1"),
    "tuning": ("tune", BALL, *TRAIN_FEW, "host", "--trials", "2", "--jobs", "2"),
    "functions": ("-c", f"{TASK}{FUNCTION}, seeds=[0, 1])"),
    "imported for a contract": PPO,
}


@pytest.mark.all
@pytest.mark.parametrize("kind", KINDS)
def test_what_to_type_next_works(kind: str, user: User) -> None:
    lines = user.sees(*KINDS[kind])
    found = hints(lines)
    assert found, "\n".join(lines)
    for line in found:
        user.does(line)
