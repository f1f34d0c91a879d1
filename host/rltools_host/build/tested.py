"""The C++ tests, which `rlt test` builds and runs, in a build tree of their own, build/tests
(cmake/host.cmake)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from rltools_host.boards.description import load_board
from rltools_host.build import cmake
from rltools_host.toolchain import tools
from rltools_host.toolchain.tools import missing_names
from rltools_host.tree import PROJECT, TREE

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
