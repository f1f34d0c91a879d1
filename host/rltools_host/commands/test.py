"""`rlt test`: ctest, pytest and the style checks, with what they need installed.

A test builds the firmware and the programs that it uses. C++ tests and style checks run on what the
Python tests leave of the processors.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.build import cmake, firmware, tools
from rltools_host.commands.options import leave, refuse
from rltools_host.errors import MissingToolError, RltError, UsageError
from rltools_host.tree import PROJECT, TREE, VARIABLE

PYTHON_FOLDERS = (
    *("host", "benchmarks", "lib", "cmake", "firmware", "platforms", "tests", "examples"),
)
GROUPS = ("default", "mujoco", "test")  # of Python packages, for any test
NO_TESTS_COLLECTED = 5
# Its script in .venv/bin breaks where the tree is moved.
LINT_IMPORTS = "from importlinter.cli import lint_imports_command as main; main()"
MAX_WORKERS = 4


def run_quietly(command: Sequence[str]) -> bool:
    """Run a command, show its output where it fails, and return whether it succeeded."""
    result = subprocess.run(
        command, cwd=TREE.root, capture_output=True, text=True, errors="replace"
    )
    if result.returncode != 0:
        print(f"{result.stdout}{result.stderr}", flush=True)
    return result.returncode == 0


def run_cpp_tests(targets: Sequence[str], selection: Sequence[str]) -> bool:
    """Build and run C++ tests; return whether none failed."""
    try:
        cmake.build_tests(targets)
    except RltError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return False
    return run_quietly(cmake.ctest_command(selection))


def run_pytest(
    arguments: Iterable[str], environment: dict[str, str], folder: Path = TREE.root
) -> int:
    """Run pytest with its output on the screen; return its exit code."""
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL).returncode


def style_checks() -> dict[str, list[str]]:
    """Return the commands of the style checks by their names."""
    listed = ["git", "-C", str(TREE.root), "ls-files", "-z", "--cached", "--others"]
    listed += ["--exclude-standard", "*.h", "*.cpp"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")
    cpp = [name for name in names if (TREE.root / name).is_file()]
    folders = [folder for folder in PYTHON_FOLDERS if (TREE.root / folder).is_dir()]
    python = [sys.executable, "-m"]
    return {
        "mypy": [*python, "mypy", "--no-error-summary", "--cache-dir", "build/mypy"],
        "ruff check": [*python, "ruff", "check", "--quiet", *folders],
        "ruff format": [*python, "ruff", "format", "--check", "--quiet", *folders],
        "imports": [*python[:1], "-c", LINT_IMPORTS, "--no-cache", "--no-logo"],
        "clang-format": [tools.program("clang-format"), "--dry-run", "-Werror", *cpp],
    }


def run(daily: bool, rest: bool, expression: str | None, options: Sequence[str]) -> int:
    """Run the everyday tests, the rest, or those that an expression names; return the exit code."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each worker would compile all packages
    missing = "" if expression else tools.install_system_packages(optional=rest)
    for group in tools.GROUPS if rest and not expression else (*GROUPS, "lint"):
        tools.ensure_group(group)
    targets = ["cpp_tests"] * daily + ["cpp_tests_all"] * rest
    labels = [] if daily and rest else ["-L" if rest else "-LE", "^all$"]
    workers = min((os.cpu_count() or 1) + 1, MAX_WORKERS)  # one more: some tests wait in real time
    pytest = ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]
    pytest += [*options, "tests"]  # in the order of tests/conftest.py: the longest first
    pytest += ["--all"] if daily and rest else ["--rest"] if rest else []
    if expression:
        try:
            targets = cmake.tests_named(expression)
        except MissingToolError as error:
            targets, missing = [], str(error)
        labels = ["-R", f"^({'|'.join(targets)})$"]
        pytest = ["--all", "-k", expression, *options, "tests"]
    elif missing and tools.missing_names(("doctest",)):
        targets = []
    results: dict[str, tuple[bool, float]] = {}

    def do(name: str, function: Callable[..., bool], *arguments: object) -> None:
        started = time.monotonic()
        results[name] = function(*arguments), time.monotonic() - started

    def run_python() -> bool:
        code = run_pytest(pytest, environment)
        if expression and code == NO_TESTS_COLLECTED and not targets:
            raise UsageError(f'no test has "{expression}" in its name')
        return code in (0, NO_TESTS_COLLECTED)

    beside = []
    with ThreadPoolExecutor(2) as background:
        if targets:
            beside.append(background.submit(do, "C++ tests", run_cpp_tests, targets, labels))
        if daily and not expression:
            for name, command in style_checks().items():
                beside.append(background.submit(do, name, run_quietly, command))
        environment = firmware.platformio_environment("pendulum-td3")
        do("Python tests", run_python)
    for step in beside:
        step.result()  # raises what kept it from having one
    for name, (succeeded, seconds) in results.items():
        print(f"{name:<14} {'passed' if succeeded else 'FAILED'} ({seconds:.0f} s)")
    if missing:
        print(f"skipped: what lacks a tool here; {missing}")
    failed = [name for name, (succeeded, _) in results.items() if not succeeded]
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return int(bool(failed))


def run_own(expression: str | None) -> int:
    """Run the tests of a project elsewhere: those of tests/, and in the files of its tasks."""
    root = PROJECT.root
    tasks = [
        path
        for path in sorted(root.glob("experiments/*.py"))
        if "def test_" in path.read_text("utf-8")
    ]
    paths = [*([root / "tests"] if (root / "tests").is_dir() else []), *tasks]
    if not paths:
        raise UsageError(f"{root} has no tests: `rlt new` writes one, in tests/")
    tools.ensure_group("test")
    arguments = ["--import-mode=importlib", f"--rootdir={root}", *map(str, paths)]
    arguments += ["-k", expression] if expression else []
    return int(run_pytest(arguments, {**os.environ, VARIABLE: str(root)}, root) != 0)


EXAMPLE = "test -k framing"


def command(
    context: typer.Context,
    expression: Annotated[
        str | None, typer.Option("-k", metavar="EXPRESSION", help="Only tests that match this.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also other processors, PX4, sanitizers.")
    ] = False,
    rest: Annotated[
        bool,
        typer.Option(
            "--rest", help="Only what --all adds, and what the last `rlt test` had to skip."
        ),
    ] = False,
    slow: Annotated[
        bool,
        typer.Option("--slow", help="Also what takes minutes: full training runs, a bare Debian."),
    ] = False,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Also mathematics over all floats.")
    ] = False,
) -> None:
    if PROJECT.is_elsewhere:
        refuse(context, "in a project of your own", "everything", "rest", "slow", "exhaustive")
        leave(run_own(expression))
        return
    options = ["--slow"] * slow + ["--exhaustive"] * exhaustive
    leave(run(not rest or everything, rest or everything, expression, options))
