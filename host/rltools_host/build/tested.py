"""What `rlt test` builds: the C++ tests, which it runs, too; with --all what each board is tested
with.

The C++ tests have a build tree of their own, build/tests (cmake/host.cmake).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from rltools_host.boards.description import Board, list_boards, load_board
from rltools_host.build import cmake, experiments, firmware, memory
from rltools_host.errors import BuildError
from rltools_host.project import PROJECT
from rltools_host.toolchain import tools
from rltools_host.toolchain.tools import missing_names
from rltools_host.tree import TREE

FOLDERS = ("lib", "firmware", "integrations")  # of tests/
MORE = re.compile(r"^// Test: .*\bmore\b")  # a first line: there is a second program
BACKGROUND = 10  # niceness of what nobody waits for


def directory() -> Path:
    return PROJECT.build / "tests"


def matches(expression: str, name: str) -> bool:
    """As pytest's -k: words that a name contains or not, with and, or, not and parentheses."""

    def word(match: re.Match[str]) -> str:
        text = match.group()
        return text if text in ("and", "or", "not") else str(text.lower() in name.lower())

    truth = re.sub(r"[^\s()]+", word, expression)
    try:
        return bool(eval(truth, {"__builtins__": {}}))
    except SyntaxError:  # pytest says what is wrong
        return False


def files(expression: str) -> list[Path]:
    """The tests whose path matches."""
    root = TREE.root / "tests"
    return [
        path
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("test_*.cpp"))
        if matches(expression, str(path.relative_to(root)))
    ]


def named(expression: str) -> list[str]:
    """The programs of the tests whose path matches."""
    names = []
    for path in files(expression):
        names.append(path.stem)
        with open(path, encoding="utf-8") as file:
            if MORE.match(file.readline()):
                names.append(f"{path.stem}_all")
    return names


def build(targets: Sequence[str]) -> None:
    tools.require("doctest")
    openblas = "OFF" if missing_names(["openblas"]) else "ON"
    cmake.build_targets(
        load_board("host"),
        targets,
        directory=directory(),
        options={"RLT_TESTS": "ON", "RLT_OPENBLAS": openblas},
        announcement="Building the C++ tests",
        niceness=BACKGROUND,
    )


def ctest_command(report: Path, selection: Sequence[str]) -> list[str]:
    ctest = str(Path(tools.program("cmake")).with_name("ctest"))
    return [
        *(ctest, "--test-dir", str(directory()), "--output-on-failure"),
        *("--output-junit", str(report), f"-j{os.cpu_count() or 1}", *selection),
    ]


def processor_s(since: float) -> dict[str, float]:
    """What compiling and running each test took of the processors since this time.

    cmake/measured.sh leaves a file for each command: the shell's `times`.
    """
    used: dict[str, float] = {}
    for path in (directory() / "measured").glob("*"):
        if path.stat().st_mtime < since:
            continue
        own_and_children = path.read_text().splitlines()
        name = path.name.partition(".")[0]
        for minutes, seconds in re.findall(r"(\d+)m([\d.]+)s", own_and_children[-1]):
            used[name] = used.get(name, 0.0) + 60 * float(minutes) + float(seconds)
    return used


def tested_experiments(board: Board) -> list[str]:
    """Those that its tests train: all that fit, unless its description names fewer."""
    if cmake.TRAIN not in cmake.programs_of(board):
        return []
    fitting = experiments.list_experiments(board)
    if board.tested_with is None:
        return fitting
    if unknown := [name for name in board.tested_with if name not in fitting]:
        raise BuildError(
            f'boards/{board.name}.json: tested_with: no experiment "{unknown[0]}" fits it'
        )
    return list(board.tested_with)


def tested_firmware(board: Board) -> list[tuple[str, str]]:
    """Programs, and the experiment or contract of each."""
    tested = [(cmake.TRAIN, name) for name in tested_experiments(board)]
    for program in cmake.programs_of(board):
        if program != cmake.TRAIN:
            subject = experiments.subject_of(program)
            tested += [(program, name) for name in experiments.names(subject, board)]
    return tested


def build_all() -> None:
    """For every board that CMake builds for, what the board is tested with."""
    host = load_board("host")
    cmake.build_targets(host, ["all"], announcement="Building host")
    for board in list_boards():
        if not cmake.builds(board) or board.name == host.name:
            continue
        if missing := cmake.missing_optional_tools(board):
            print(f"{board.name} is not built: {', '.join(missing)} is not installed")
            continue
        tested = tested_firmware(board)
        if not tested:
            continue
        targets = [cmake.firmware_target(name, program) for program, name in tested]
        cmake.build_targets(board, targets, announcement=f"Building {board.name}")
        for program, name in tested:
            file = firmware.program_path(board, name, program)
            print(f"{program} {name} on {board.name}")
            print("\n".join(memory.memory_lines(memory.memory_usage(board, file))))
