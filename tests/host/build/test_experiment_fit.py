"""What fits a board: what an experiment requires, and where MuJoCo is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from programs import require_program
from rltools_host.build.boards import load_board
from rltools_host.tree import TREE
from tree_copies import configured, copy_of_tree, ninja

EMULATED = load_board("qemu-cortex-m7")
HOSTED = "// Arms of a robot.\n// Requires: hosted\n#pragma once\nstruct RobotArm {};\n"


def test_what_platformio_runs_needs_no_package() -> None:
    """firmware/platformio_flags.py runs with PlatformIO's Python, which has none of ours."""
    script = "import sys; sys.path.insert(0, sys.argv[1]); import rltools_host.build.experiments"
    command = [sys.executable, "-I", "-S", "-c", script, str(TREE.root / "host")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what CMake and PlatformIO read, with an experiment for hosted boards."""
    names = ("CMakeLists.txt", "cmake", "boards", "toolchains", "firmware", "experiments", "lib")
    others = ("host", "platforms", "platformio.ini", "rlt.toml")
    tree = copy_of_tree(tmp_path / "tree", *names, *others)
    (tree / "experiments/robot_arm.h").write_text(HOSTED)
    return tree


def configure(tree: Path, board: str) -> subprocess.CompletedProcess[str]:
    return configured(tree, tree / "build" / board, board)


def targets(tree: Path, board: str) -> set[str]:
    result = configure(tree, board)
    assert result.returncode == 0, result.stderr
    files = json.loads((tree / "build" / board / "compile_commands.json").read_text())
    return {part[:-4] for entry in files for part in entry["output"].split("/") if ".dir" in part}


@pytest.mark.all
def test_cmake_makes_no_target_of_an_experiment_that_does_not_fit(tree: Path) -> None:
    header = tree / "experiments/robot_arm.h"
    on_board = targets(tree, EMULATED.name)
    assert "train-robot-arm" not in on_board
    assert "train-pendulum-td3" in on_board
    header.write_text("#pragma once\n")
    assert ninja(tree / "build" / EMULATED.name, "build.ninja").returncode == 0
    assert "train-robot-arm" in targets(tree, EMULATED.name)


def test_cmake_refuses_an_unknown_word(tree: Path) -> None:
    line, reason = "// Requires: hosts", 'robot_arm.h: requires "hosts", which no board'
    require_program("arm-none-eabi-g++")
    (tree / "experiments/robot_arm.h").write_text(f"{line}\n")
    result = configure(tree, EMULATED.name)
    assert result.returncode != 0
    assert reason in " ".join(result.stderr.split())


# -- MuJoCo ------------------------------------------------------------------------------------

SIMULATED = "// Requires: mujoco\n#pragma once\nstruct RobotArm {};\n"


def python_without_mujoco(folder: Path) -> Path:
    """A Python's folders, with nothing but the program, which is this Python."""
    python = folder / "bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python


def test_where_mujoco_is_missing_only_what_requires_it_says_so(tree: Path, tmp_path: Path) -> None:
    require_program("g++")
    (tree / "experiments/robot_arm.h").write_text(SIMULATED)
    (tree / "experiments/walker.h").write_text(HOSTED.replace("RobotArm", "Walker"))
    python = python_without_mujoco(tmp_path / "an environment")
    build = tmp_path / "a build"
    result = configured(tree, build, "host", f"-DRLT_PYTHON={python}")
    assert result.returncode == 0, result.stderr
    assert "MuJoCo" not in result.stdout + result.stderr
    everything = ninja(build, "-t", "inputs", "all").stdout
    for name in ("train-pendulum-td3", "train-walker", "describe-walker"):
        assert name in everything
    assert "robot-arm" not in everything
    for target in ("train-robot-arm", "describe-robot-arm", "simulate-robot-arm"):
        result = ninja(build, target)
        assert result.returncode != 0
        (line,) = [line for line in result.stdout.splitlines() if line.startswith("error: ")]
        assert line.startswith("error: robot_arm.h needs MuJoCo 4")
        assert f"{python} -m pip install mujoco-core==" in line
