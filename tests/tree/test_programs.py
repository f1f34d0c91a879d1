"""Every experiment and contract compiles for this machine and for a microcontroller, and fits the
boards. Those that other tests run are built whole by them; here the compiler checks syntax and
types, which takes it a fifth of the time, and writes no program.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest

from rltools_host.build import cmake, experiments, firmware
from rltools_host.build.boards import load_board
from rltools_host.build.firmware import memory_usage
from rltools_host.build.tools import missing_tools
from rltools_host.checks.memory import fits, with_code
from rltools_host.tree import TREE

pytestmark = pytest.mark.all

HOST, CORTEX_M7 = "host", "qemu-cortex-m7"
# What of a program depends on its subject; the others are the same in each.
OF_SUBJECT = ("train_step.cpp", "main.cpp")
SIMULATE = TREE.root / "host" / "native" / "simulate.cpp"  # this machine's alone: cmake/host.cmake
OF_EACH_ALGORITHM = ("pendulum-sac", "pendulum-xqc", "cartpole-dqn", "pendulum-distillation")


def programs(board: str) -> list[tuple[str, str, str]]:
    """Each program of the board with each subject that fits it."""
    description = load_board(board)
    return [
        (board, program, name)
        for program in cmake.programs_of(description)
        for name in experiments.names(experiments.subject_of(program), description)
    ]


CASES = [*programs(HOST), *programs(CORTEX_M7)]


@cache
def commands_of(board: str) -> list[dict[str, str]]:
    """Of the compiler. Asked for once, as others may hold the lock for long, to compile."""
    build = cmake.build_targets(load_board(board), ["rlt_revision"], announcement="")
    with cmake.build_lock(build):
        found: list[dict[str, str]] = json.loads((build / "compile_commands.json").read_text())
    return found


def checked(
    board_name: str, program: str, name: str, folder: Path
) -> subprocess.CompletedProcess[str]:
    """With the flags that CMake gives, the sources as one: what all of them include is read once.
    On this machine the program that simulates is among them."""
    board = load_board(board_name)
    if missing := missing_tools(cmake.required_tools(board)):
        pytest.skip(f"not installed (rlt doctor): {missing[0].name}")
    experiments.install_requirements(name, experiments.subject_of(program))
    of_target = f" -o CMakeFiles/{program}-{name}.dir/"
    found = {
        Path(each["file"]).name: each
        for each in commands_of(board_name)
        if of_target in each["command"]
    }
    files = [found[file]["file"] for file in OF_SUBJECT if file in found]
    source = folder / "all.cpp"
    text = "".join(f'#include "{file}"\n' for file in files)
    if (board_name, program) == (HOST, cmake.TRAIN):
        text += "".join(re.findall("#include .*\n", SIMULATE.read_text()))
        text += f'namespace simulate {{\n#include "{SIMULATE}"\n}}\n'
    source.write_text(text)
    words = shlex.split(found[Path(files[0]).name]["command"])
    compiler = next(place for place, word in enumerate(words) if word.endswith("++"))
    command = [*words[compiler : words.index("-o")], "-fsyntax-only", str(source)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("board", "program", "name"), CASES)
def test_it_compiles(board: str, program: str, name: str, tmp_path: Path) -> None:
    result = checked(board, program, name, tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", experiments.list_experiments(load_board(CORTEX_M7)))
def test_its_data_fit_the_boards_that_it_is_for(name: str) -> None:
    """From the sizes of what is compiled here. A policy's image is smaller than the learner, and
    no larger than a slot for it."""
    described = experiments.describe(name)
    policy = min(described.bytes_of["learner"], load_board("teensy41").policy_slot_bytes)
    sizes = {**described.bytes_of, "policy": policy}
    found = fits(name, with_code(described.algorithm, [sizes]))
    assert CORTEX_M7 in {fit.board for fit in found}
    assert [fit for fit in found if not fit.fits] == []


@pytest.mark.parametrize("name", OF_EACH_ALGORITHM)
def test_the_code_of_each_algorithm_is_linked_and_fits(name: str) -> None:
    """That of TD3 and PPO is, where boards train."""
    board = load_board(CORTEX_M7)
    for memory in memory_usage(board, firmware.build_firmware(board, name)):
        assert 0 < memory["used_bytes"] <= memory["bytes"]
