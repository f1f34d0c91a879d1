"""What `rlt check` prints, and its exit code."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from rltools_host.commands import cli
from rltools_host.errors import EnvironmentFaultError

TASK = """
import gymnasium, numpy as np

class Drifting(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = self.np_random.uniform(-0.5, 0.5), 0
        return np.array([self.place], np.float32), {}

    def step(self, action):
        self.steps += 1
        self.place += FACTOR * float(action[0])
        over = self.steps >= 25
        return np.array([self.place], np.float32), -abs(self.place), False, over, {}
"""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, project: Path) -> Path:
    monkeypatch.chdir(project)
    return project


def write(folder: Path, factor: float) -> None:
    (folder / "drifting.py").write_text(TASK.replace("FACTOR", str(factor)))


def test_the_exit_code_says_whether_something_is_wrong(
    short: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The task's code runs in a process of its own, because the user names it."""
    write(short, 3.0)
    code = cli.run(["check", "gym:drifting.py:Drifting", "--set", "episode_steps=25", "--json"])
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert code == EnvironmentFaultError.exit_code
    assert not document["ok"]
    (finding,) = document["findings"]
    assert (finding["check"], finding["level"]) == ("range", "fault")
    assert document["figures"]["episode_steps_mean"] == 25
    assert "fault: observation_0 left its range -1 to 1 in" in printed.err
    assert "drifting" not in sys.modules

    write(short, 0.01)
    assert cli.run(["check", "gym:drifting.py:Drifting", "--set", "episode_steps=25"]) == 0
    printed = capsys.readouterr()
    assert printed.out.rstrip().endswith("nothing is wrong")
    assert printed.err == ""
    # Its policy goes to a board, and nobody says how fast it is called there.
    assert "assumed: a step takes 20,000 us" in printed.out
    assert "where something is wrong a board does action_0 0" in printed.out


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    cli.run(["check", *words, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.all
def test_an_environment_is_checked_with_its_settings(capsys: pytest.CaptureFixture[str]) -> None:
    figures = [
        checked(capsys, "quadrotor-ppo", *words)["figures"]
        for words in ((), ("--set", "limit_rate=1"), ("--set", "learning_rate=0.001"))
    ]
    length = "episode_steps_mean"
    assert figures[0][length] == figures[2][length] != figures[1][length]


@pytest.mark.all
@pytest.mark.parametrize(
    "experiment", ["pendulum-sac", "pendulum-xqc", "pendulum-ppo", "cartpole-dqn"]
)
def test_experiments_of_the_tree_are_in_order(experiment: str) -> None:
    assert cli.run(["check", experiment]) == 0


@pytest.mark.all
@pytest.mark.parametrize(
    ("experiment", "board"),
    [
        ("pendulum-td3", "qemu-cortex-m7"),
        ("racing-car-ppo", "qemu-cortex-m7"),
    ],
)
def test_memory_is_that_of_the_linked_program(
    experiment: str,
    board: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before it is linked never less, and not by more than a bank of 32 KB and 3 % of a memory."""
    from rltools_host.build import firmware
    from rltools_host.build.boards import load_board
    from rltools_host.build.firmware import memory_usage
    from rltools_host.checks import memory as board_memory

    def checked(is_younger: bool) -> dict[str, float]:
        youngest = 0.0 if is_younger else math.inf
        monkeypatch.setattr(board_memory, "last_change_s", lambda: youngest)
        cli.run(["check", experiment, "--json"])
        boards = json.loads(capsys.readouterr().out)["boards"]
        (found,) = [each for each in boards if each["board"] == board]
        assert found["linked"] is is_younger
        memory: dict[str, float] = found["memory"]
        return memory

    program = firmware.build_firmware(load_board(board), experiment)
    computed, known = checked(False), checked(True)
    for memory in memory_usage(load_board(board), program):
        linked, bank = memory["used_bytes"] / memory["bytes"], 32 * 1024 / memory["bytes"]
        assert known[memory["name"]] == linked
        assert linked <= computed[memory["name"]] <= linked + bank + 0.03
