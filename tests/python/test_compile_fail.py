"""The mistakes that users make: what the compiler shows is one sentence that names the mistake, and little else.

Each file of tests/compile_fail states the mistake, and what must be said, in its first lines:
  // says: TEXT        must be in the compiler's output; several lines are several texts
  // variant: MACRO    the file has several mistakes, each behind a macro; the says: lines below belong to it
With RLT_CORRECTED the same file compiles. A header of experiments/ is compiled as the firmware that trains it.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rltools_host import build, paths, toolchain
from rltools_host.boards import load_board

DIRECTORY = paths.TESTS_DIRECTORY / "compile_fail"
MAXIMUM_BYTES = 2000
COMPILERS = ["g++"] + (["clang++"] if shutil.which("clang++") else [])
COMMON = json.loads(paths.FIRMWARE_BUILD_FILE.read_text())
# Checked by the linker: only a board with a linker script has a budget.
LINKED = {"replay_too_large"}


@dataclass(frozen=True)
class Mistake:
    path: Path
    variant: str | None
    says: tuple[str, ...]

    def __str__(self) -> str:
        return self.path.stem if self.variant is None else f"{self.path.stem}-{self.variant}"


def mistakes_of(path: Path) -> list[Mistake]:
    mistakes: dict[str | None, list[str]] = {}
    variant = None
    for keyword, text in re.findall(r"^// (variant|says): (.+)$", path.read_text(), re.MULTILINE):
        if keyword == "variant":
            variant = text
        else:
            mistakes.setdefault(variant, []).append(text)
    return [Mistake(path, variant, tuple(says)) for variant, says in mistakes.items()]


SOURCES = sorted([*DIRECTORY.glob("*.cpp"), *DIRECTORY.glob("experiments/*.h")])
MISTAKES = [mistake for path in SOURCES for mistake in mistakes_of(path)]
COMPILED = [mistake for mistake in MISTAKES if mistake.path.stem not in LINKED]


def include_flags() -> list[str]:
    return [f"-I{directory}" for directory in COMMON["include_directories"]]


def experiment_type(path: Path) -> str:
    return "".join(word.capitalize() for word in path.stem.split("_"))


def firmware_flags(board_name: str, experiment: Path) -> list[str]:
    """As CMake compiles a firmware's main file."""
    board = load_board(board_name)
    protocol = build.generate_protocol() / "c"
    return [
        *("-isystem", str(protocol.relative_to(paths.REPOSITORY))),
        f'-DRLT_EXPERIMENT_HEADER="{experiment.relative_to(paths.REPOSITORY)}"',
        f"-DRLT_EXPERIMENT={experiment_type(experiment)}",
        f'-DRLT_DEVICE_HEADER="{board.device_header}"',
        f"-DRLT_DEVICE={board.device}",
        f'-DRLT_BOARD_NAME="{board.name}"',
        "-I.",
    ]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """In the tree's root, by relative paths, so that the output's length does not depend on where the tree lies."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
    return subprocess.run(
        command,
        cwd=paths.REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )


@functools.cache
def compile_mistake(
    compiler: str, mistake: Mistake, corrected: bool
) -> subprocess.CompletedProcess[str]:
    toolchain.require("g++")
    source = mistake.path.relative_to(paths.REPOSITORY)
    command = [compiler, *COMMON["flags"], *include_flags(), "-fsyntax-only"]
    if mistake.path.suffix == ".h":
        command += [*firmware_flags("host", mistake.path), "firmware/host/main.cpp"]
    else:
        command.append(str(source))
    if mistake.variant is not None:
        command.append(f"-D{mistake.variant}")
    if corrected:
        command.append("-DRLT_CORRECTED")
    return run(command)


def check_message(mistake: Mistake, output: str) -> None:
    for text in mistake.says:
        assert text in output
    assert len(output.encode()) < MAXIMUM_BYTES, output
    assert output.count("error: ") == 1, output


@pytest.mark.parametrize("mistake", COMPILED, ids=str)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_mistake_is_named_in_one_sentence(compiler: str, mistake: Mistake) -> None:
    result = compile_mistake(compiler, mistake, corrected=False)
    assert result.returncode != 0
    check_message(mistake, result.stdout)


@pytest.mark.parametrize("mistake", COMPILED, ids=str)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_corrected_twin_compiles_in_silence(compiler: str, mistake: Mistake) -> None:
    result = compile_mistake(compiler, mistake, corrected=True)
    assert result.returncode == 0, result.stdout
    assert result.stdout == ""
