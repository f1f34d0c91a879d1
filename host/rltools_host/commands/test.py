"""`rlt test`: runs the C++ tests, the Python tests and the style checks.

What a test needs of the firmware and of the host's programs is built when it asks for it. The C++
tests are compiled and run, and style is checked, on what the Python tests leave of the processors.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from rltools_host.build import cmake, firmware
from rltools_host.commands.options import Json, leave, mode, require
from rltools_host.errors import BuildError, UsageError
from rltools_host.mutants import measure
from rltools_host.toolchain import tools
from rltools_host.tree import PROJECT, TREE, VARIABLE

CPP_FOLDERS = ("lib", "firmware", "integrations", "experiments", "host", "tests", "examples")
PYTHON_FOLDERS = ("host", "peers", "lib", "cmake", "firmware", "platforms", "tests", "examples")
NO_TESTS_COLLECTED = 5
MOST_WORKERS = 4
COMPILED_WITH = ("default", "mujoco")  # groups of Python packages
GROUPS = (*COMPILED_WITH, "test")  # for any test
STYLE_GROUP = "lint"
MOST_SHOWN = 12  # files, of those that took most of the processors


@dataclass(frozen=True)
class StepResult:
    """What one step found; a step without counts is one check that passed or failed."""

    step: str
    passed: int
    failed: int
    skipped: int
    seconds: float


@dataclass(frozen=True)
class Selection:
    """Which tests: those of every day, the rest, or those that an expression names."""

    daily: bool = True
    rest: bool = False
    expression: str | None = None
    options: tuple[str, ...] = ()  # of pytest: --slow, --exhaustive

    @property
    def pytest_arguments(self) -> list[str]:
        arguments = list(self.options)
        if self.rest:
            arguments += ["--all"] if self.daily else ["--rest"]
        return [*arguments, "-k", self.expression] if self.expression else arguments

    @property
    def python_files(self) -> list[str]:
        """All, or where only some can match those with one of the words in their path or text: to
        import the others takes longer than most tests."""
        words = re.findall(r"[^\s()]+", (self.expression or "").lower())
        if not words or "not" in words:
            return ["tests"]
        words = [word for word in words if word not in ("and", "or")]
        files = sorted((TREE.root / "tests").rglob("test_*.py"))
        found = [
            str(file.relative_to(TREE.root))
            for file in files
            if any(word in f"{file}\n{file.read_text()}".lower() for word in words)
        ]
        return found if found or self.cpp_targets() else ["tests"]

    def groups(self) -> list[str]:
        """Of Python packages."""
        if self.expression is None:
            return list(tools.GROUPS if self.rest else GROUPS)
        chosen = [TREE.root / name for name in self.python_files]
        texts = [path.read_text() for path in chosen if path.is_file()]
        texts += [path.read_text() for path in cmake.tests_of(self.expression)]
        groups = ["default", *(["test"] if chosen else [])]
        return [*groups, "mujoco"] if any("mujoco" in text for text in texts) else groups

    def cpp_targets(self) -> list[str]:
        if self.expression:
            return cmake.tests_named(self.expression)
        return ["cpp_tests"] * self.daily + ["cpp_tests_all"] * self.rest

    @property
    def ctest_arguments(self) -> list[str]:
        if self.expression:
            return ["-R", f"^({'|'.join(self.cpp_targets())})$"]
        if self.daily and self.rest:
            return []
        return ["-L" if self.rest else "-LE", "^all$"]


def run_step(
    command: Sequence[str], environment: dict[str, str] | None = None, folder: Path | None = None
) -> tuple[int, str]:
    """Runs a command and passes its output on; returns its exit code and the output."""
    output = []
    with subprocess.Popen(
        list(command),
        cwd=folder or TREE.root,
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


def check(step: str, command: Sequence[str]) -> StepResult:
    """A style check: quiet when it passes."""
    started = time.monotonic()
    result = subprocess.run(command, cwd=TREE.root, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{step}:\n{result.stdout}{result.stderr}")
    failed = int(result.returncode != 0)
    return StepResult(step, 1 - failed, failed, 0, time.monotonic() - started)


def cpp_files() -> list[str]:
    """Every C++ file of the repository."""
    files = []
    for folder in CPP_FOLDERS:
        for pattern in ("*.h", "*.cpp"):
            files += [str(path) for path in (TREE.root / folder).rglob(pattern)]
    return sorted(files)


def python_folders() -> list[str]:
    return [folder for folder in PYTHON_FOLDERS if (TREE.root / folder).is_dir()]


def style_checks() -> list[StepResult]:
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


def counted(step: str, report: Path, code: int, started: float) -> StepResult:
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
    return StepResult(step, passed, failed, counts["skipped"], time.monotonic() - started)


def run_cpp_tests(selection: Selection) -> StepResult:
    """Quiet when they pass."""
    started = time.monotonic()
    report = PROJECT.build / "ctest.xml"
    report.unlink(missing_ok=True)
    try:
        cmake.build_tests(selection.cpp_targets())
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return StepResult("C++ tests", 0, 1, 0, time.monotonic() - started)
    command = cmake.ctest_command(report, selection.ctest_arguments)
    result = subprocess.run(command, cwd=TREE.root, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"C++ tests:\n{result.stdout}{result.stderr}", flush=True)
    return counted("C++ tests", report, result.returncode, started)


def pytest_report() -> Path:
    return PROJECT.build / "pytest.xml"


def python_tests(selection: Selection) -> StepResult:
    started = time.monotonic()
    files = selection.python_files
    # One more than processors: vehicles and links are played in real time, and a quarter of what
    # the tests take is waiting for them.
    workers = min((os.cpu_count() or 1) + 1, MOST_WORKERS)
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={pytest_report()}"]
    if len(files) > 1 or not selection.expression:
        command += ["-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder"]
    command += [*selection.pytest_arguments, *files]
    code, _ = run_step(command, firmware.platformio_environment("pendulum-td3"))
    return counted(
        "Python tests", pytest_report(), 0 if code == NO_TESTS_COLLECTED else code, started
    )


def python_processor_s() -> dict[str, float]:
    """Of the processors, by file, as tests/conftest.py notes it in the report."""
    used: dict[str, float] = {}
    if pytest_report().is_file():
        for entry in ElementTree.parse(pytest_report()).getroot().iter("property"):
            if entry.get("name") == "processor_s":
                seconds, _, file = entry.get("value", "").partition(" ")
                used[file] = used.get(file, 0.0) + float(seconds)
    return used


def print_processor_s(used: Mapping[str, float]) -> None:
    """What took most of the processors, and what all of it took: builds and style as well."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(each.ru_utime + each.ru_stime for each in usage)
    print(f"\nProcessor seconds: {total:.0f} in all, most of them in")
    for name, seconds in sorted(used.items(), key=lambda item: -item[1])[:MOST_SHOWN]:
        print(f"{seconds:8.1f}  {name}")


def print_summary(outcomes: Sequence[StepResult], json_output: bool = False) -> None:
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


def run(selection: Selection, json_output: bool = False) -> int:
    """An expression runs its tests alone: nothing is installed or built that they do not use."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each worker would compile all packages
    named = selection.expression is not None
    groups = [group for group in COMPILED_WITH if group in selection.groups()]
    for group in groups:
        tools.ensure_group(group)
    if not named:
        tools.install_system_packages(optional=selection.rest)
    begun = time.time()
    pytest_report().unlink(missing_ok=True)
    with ThreadPoolExecutor(2) as background:
        cpp = background.submit(run_cpp_tests, selection) if selection.cpp_targets() else None
        for group in selection.groups():  # while that compiles
            if group not in groups:
                tools.ensure_group(group)
        style = None
        if selection.daily and not named:
            tools.ensure_group(STYLE_GROUP)
            style = background.submit(style_checks)
        python = python_tests(selection) if selection.python_files else None
    outcomes = [
        *([cpp.result()] if cpp else []),
        *([python] if python else []),
        *(style.result() if style else []),
    ]
    print_processor_s({**cmake.processor_s_of_tests(begun), **python_processor_s()})
    print_summary(outcomes, json_output)
    return int(any(outcome.failed for outcome in outcomes))


def run_own(expression: str | None, json_output: bool = False) -> int:
    """The tests of a project elsewhere: those of tests/, and in the files of its tasks."""
    root, started = PROJECT.root, time.monotonic()
    tasks = [
        path for path in sorted(root.glob("experiments/*.py")) if "def test_" in path.read_text()
    ]
    places = [*([root / "tests"] if (root / "tests").is_dir() else []), *tasks]
    if not places:
        raise UsageError(f"{root} has no tests: `rlt new` writes one, in tests/")
    tools.ensure_group("test")
    report = pytest_report()
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib"]
    command += [f"--rootdir={root}", f"--junitxml={report}", *map(str, places)]
    command += ["-k", expression] if expression else []
    code, _ = run_step(command, {**os.environ, VARIABLE: str(root)}, root)
    outcome = counted("Python tests", report, code, started)
    print_summary([outcome], json_output)
    return int(outcome.failed > 0)


def measure_tests(
    expression: str | None, json_output: bool, seed: int, samples: int, everything: bool
) -> int:
    for group in tools.GROUPS:
        tools.ensure_group(group)
    tools.install_system_packages(optional=True)
    return measure.run(expression, json_output, seed=seed, samples=samples, all_tests=everything)


EXAMPLE = "test -k framing"
TESTS = mode(
    "in the checkout", "expression", "everything", "rest", "slow", "exhaustive", "json_output"
)
MUTANTS = mode(
    "in the checkout with --mutants",
    "expression",
    "everything",
    "mutants",
    "seed",
    "samples",
    "json_output",
)
OWN = mode("in a project of your own", "expression", "json_output")
MODES = (TESTS, MUTANTS, OWN)


def command(
    context: typer.Context,
    expression: Annotated[
        str | None, typer.Option("-k", metavar="EXPRESSION", help="Only tests that match this.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also other processors, PX4, sanitizers, more shapes.")
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
    mutants: Annotated[
        bool,
        typer.Option("--mutants", help="Make small faults, and count those that tests notice."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed that draws the faults.")] = 0,
    samples: Annotated[int, typer.Option(help="How many faults of each area.")] = measure.SAMPLES,
    json_output: Json = False,
) -> None:
    if PROJECT.is_elsewhere:
        require(context, MODES, OWN)
        leave(run_own(expression, json_output))
        return
    require(context, MODES, MUTANTS if mutants else TESTS)
    if mutants:
        leave(measure_tests(expression, json_output, seed, samples, everything))
        return
    options = tuple(
        f"--{name}" for name, chosen in (("slow", slow), ("exhaustive", exhaustive)) if chosen
    )
    selection = Selection(
        daily=not rest or everything,
        rest=rest or everything or expression is not None,
        expression=expression,
        options=options,
    )
    leave(run(selection, json_output))
