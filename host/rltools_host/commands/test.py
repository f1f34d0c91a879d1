"""`rlt test`: builds everything, runs the C++ tests, the Python tests and the style checks.

The C++ tests have a build tree of their own. They are compiled and run, and style is checked, on
what the builds of the boards and the Python tests leave of the processors.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.boards.description import Board, list_boards, load_board
from rltools_host.build import cmake, experiments, firmware, memory, platformio, subjects
from rltools_host.commands.modes import mode, require
from rltools_host.commands.options import Json, leave
from rltools_host.errors import BuildError
from rltools_host.mutants import measure
from rltools_host.project import PROJECT
from rltools_host.toolchain import tools
from rltools_host.toolchain.tools import missing_names
from rltools_host.tree import TREE

PYTEST_FOLDERS = ("tests",)
CPP_FOLDERS = (
    "lib",
    "firmware",
    "integrations",
    "experiments",
    "host/native",
    "tests",
    "benchmarks",
    "examples",
)
PYTHON_FOLDERS = (
    "host",
    "lib",
    "cmake",
    "firmware",
    "platforms",
    "tests",
    "benchmarks",
    "examples",
)
# What Python tests start of the host, beside what is built for every user.
TESTED_PROGRAMS = (
    *("roofline", "two_threads", "training_loop", "inference", "layers_16"),
    *("digits", "write_policy_images"),
)
NO_TESTS_COLLECTED = 5
MOST_WORKERS = 4
BACKGROUND = 10  # niceness of what nobody waits for


@dataclass(frozen=True)
class Outcome:
    """What one step found; a step without counts is one check that passed or failed."""

    step: str
    passed: int
    failed: int
    skipped: int
    seconds: float


def run_step(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[int, str]:
    """Runs a command and passes its output on; returns its exit code and the output."""
    output = []
    with subprocess.Popen(
        list(command),
        cwd=TREE.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
    return process.returncode, "".join(output)


def check(step: str, command: Sequence[str]) -> Outcome:
    """A style check: quiet when it passes."""
    started = time.monotonic()
    result = subprocess.run(command, cwd=TREE.root, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{step}:\n{result.stdout}{result.stderr}")
    failed = int(result.returncode != 0)
    return Outcome(step, 1 - failed, failed, 0, time.monotonic() - started)


def cpp_files() -> list[str]:
    """Every C++ file of the repository."""
    files = []
    for folder in CPP_FOLDERS:
        for pattern in ("*.h", "*.cpp"):
            files += [str(path) for path in (TREE.root / folder).rglob(pattern)]
    return sorted(files)


def python_folders() -> list[str]:
    return [folder for folder in PYTHON_FOLDERS if (TREE.root / folder).is_dir()]


def style_checks() -> list[Outcome]:
    def tool(name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", name, *arguments]

    clang_format = tools.program("clang-format")
    commands = {
        "mypy": tool("mypy", "--no-error-summary", "--cache-dir", "build/mypy"),
        "ruff check": tool("ruff", "check", "--quiet", *python_folders()),
        "ruff format": tool("ruff", "format", "--check", "--quiet", *python_folders()),
        "clang-format": [clang_format, "--dry-run", "-Werror", *cpp_files()],
    }
    with ThreadPoolExecutor(2) as pool:  # mypy takes as long as the others together
        return list(pool.map(check, commands, commands.values()))


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
            tested += [
                (program, name) for name in subjects.names(subjects.subject_of(program), board)
            ]
    return tested


def build_all() -> None:
    """For every board that CMake builds for, what the board is tested with."""
    host = load_board("host")
    cmake.build_targets(host, ["all", *TESTED_PROGRAMS], announcement="Building host")
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


def counted(step: str, report: Path, code: int, started: float) -> Outcome:
    """The outcome in a JUnit report; a step that fails without saying why counts as one failure."""
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    if report.is_file():
        for suite in ElementTree.parse(report).getroot().iter("testsuite"):
            for name in counts:
                counts[name] += int(suite.get(name, "0"))
    failed = counts["failures"] + counts["errors"]
    passed = max(0, counts["tests"] - failed - counts["skipped"])
    if code != 0 and failed == 0:
        failed = 1
    return Outcome(step, passed, failed, counts["skipped"], time.monotonic() - started)


def cpp_tests_directory() -> Path:
    return PROJECT.build / "tests"


def build_cpp_tests() -> None:
    tools.ensure_group("mujoco")
    openblas = "OFF" if missing_names(["openblas"]) else "ON"
    cmake.build_targets(
        load_board("host"),
        ["cpp_tests"],
        directory=cpp_tests_directory(),
        options={"RLT_TESTS": "ON", "RLT_OPENBLAS": openblas},
        announcement="Building the C++ tests",
        niceness=BACKGROUND,
    )


def run_cpp_tests(expression: str | None) -> Outcome:
    """Quiet when they pass."""
    started = time.monotonic()
    report = PROJECT.build / "ctest.xml"
    report.unlink(missing_ok=True)
    ctest = str(Path(tools.program("cmake")).with_name("ctest"))
    command = [
        *(ctest, "--test-dir", str(cpp_tests_directory()), "--output-on-failure"),
        *("--output-junit", str(report), f"-j{os.cpu_count() or 1}"),
    ]
    if expression:
        command += ["-R", re.escape(expression), "--no-tests=ignore"]
    result = subprocess.run(command, cwd=TREE.root, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"C++ tests:\n{result.stdout}{result.stderr}", flush=True)
    return counted("C++ tests", report, result.returncode, started)


def cpp_tests(expression: str | None) -> Outcome:
    started = time.monotonic()
    try:
        build_cpp_tests()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return Outcome("C++ tests", 0, 1, 0, time.monotonic() - started)
    return replace(run_cpp_tests(expression), seconds=time.monotonic() - started)


def python_tests(folders: Sequence[str], arguments: Sequence[str]) -> Outcome:
    started = time.monotonic()
    report = PROJECT.build / "pytest.xml"
    report.unlink(missing_ok=True)
    present = [folder for folder in folders if any((TREE.root / folder).rglob("test_*.py"))]
    workers = min(os.cpu_count() or 1, MOST_WORKERS)
    command = [
        *(sys.executable, "-m", "pytest", "-q", f"--junitxml={report}"),
        *("-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"),  # tests/conftest.py
        *(*arguments, *present),
    ]
    code, _ = run_step(command, platformio.platformio_environment("pendulum-td3"))
    return counted("Python tests", report, 0 if code == NO_TESTS_COLLECTED else code, started)


def print_summary(outcomes: Sequence[Outcome], json_output: bool = False) -> None:
    print()
    for outcome in outcomes:
        skipped = f", {outcome.skipped} skipped" if outcome.skipped else ""
        print(
            f"{outcome.step:<14} {outcome.passed:>5} passed, {outcome.failed} failed{skipped} "
            f"({outcome.seconds:.1f} s)"
        )
    passed, failed, skipped = (
        sum(getattr(outcome, name) for outcome in outcomes)
        for name in ("passed", "failed", "skipped")
    )
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    if json_output:
        steps = [asdict(outcome) for outcome in outcomes]
        counts = {"passed": passed, "failed": failed, "skipped": skipped}
        print(json.dumps({**counts, "steps": steps}))


def run(
    fast: bool = False,
    expression: str | None = None,
    slow: bool = False,
    exhaustive: bool = False,
    json_output: bool = False,
) -> int:
    """`fast` leaves the emulated board out, `expression` is pytest's -k, others add tests."""
    packages, *other_packages = tools.GROUPS
    tools.ensure_group(packages)
    tools.install_system_packages()
    arguments = [
        f"--{name}" for name, chosen in (("slow", slow), ("exhaustive", exhaustive)) if chosen
    ]
    if expression:
        arguments += ["-k", expression]
    if fast:
        arguments += ["-m", "not device"]
    code = 0
    with ThreadPoolExecutor(2) as background:
        cpp = background.submit(cpp_tests, expression)
        for group in other_packages:
            tools.ensure_group(group)
        style = None if expression else background.submit(style_checks)
        try:
            build_all()
            python = python_tests(PYTEST_FOLDERS, arguments)
        except BuildError as error:
            print(f"error: {error}", file=sys.stderr, flush=True)
            code, python = error.exit_code, Outcome("build", 0, 1, 0, 0.0)
    outcomes = [cpp.result(), python, *(style.result() if style else [])]
    print_summary(outcomes, json_output)
    return code or int(any(outcome.failed for outcome in outcomes))


def measure_tests(
    expression: str | None, json_output: bool = False, seed: int = 0, samples: int = measure.SAMPLES
) -> int:
    for group in tools.GROUPS:
        tools.ensure_group(group)
    tools.install_system_packages()
    return measure.run(expression, json_output, seed=seed, samples=samples)


EXAMPLE = "test --fast -k framing"
TESTS = mode("without --mutants", "fast", "expression", "slow", "exhaustive", "json_output")
MUTANTS = mode("with --mutants", "expression", "mutants", "seed", "samples", "json_output")
MODES = (TESTS, MUTANTS)


def command(
    context: typer.Context,
    fast: Annotated[bool, typer.Option("--fast", help="Leave the emulated board out.")] = False,
    expression: Annotated[
        str | None, typer.Option("-k", metavar="EXPRESSION", help="Only tests that match this.")
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Also the full training runs.")] = False,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Also mathematics over all floats.")
    ] = False,
    mutants: Annotated[
        bool,
        typer.Option("--mutants", help="Make small faults, and count those that tests notice."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Which faults are drawn.")] = 0,
    samples: Annotated[int, typer.Option(help="How many faults of each area.")] = measure.SAMPLES,
    json_output: Json = False,
) -> None:
    require(context, MODES, MUTANTS if mutants else TESTS)
    if mutants:
        leave(measure_tests(expression, json_output, seed, samples))
    else:
        leave(run(fast, expression, slow, exhaustive, json_output))
