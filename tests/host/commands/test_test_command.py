"""`rlt test`: every failure is counted, and the exit code and the last line tell."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from rltools_host import cli
from rltools_host.build import cmake
from rltools_host.commands import test as test_command
from rltools_host.commands.test import Selection, StepResult
from rltools_host.errors import BuildError
from rltools_host.toolchain import tools
from rltools_host.tree import MARKER, PROJECT, TREE

REPORT = """<testsuites>
<testsuite name="a" tests="7" failures="1" errors="1" skipped="2"></testsuite>
<testsuite name="b" tests="3" failures="0" errors="0" skipped="0"></testsuite>
</testsuites>"""


@pytest.mark.parametrize(
    ("report", "code", "counts"),
    [
        (REPORT, 1, (6, 2, 2)),
        (None, 139, (0, 1, 0)),  # it ended without a report
        ('<testsuite tests="3" failures="0"></testsuite>', 1, (3, 1, 0)),
    ],
)
def test_report_is_summed(
    report: str | None, code: int, counts: tuple[int, int, int], tmp_path: Path
) -> None:
    if report is not None:
        (tmp_path / "report.xml").write_text(report)
    outcome = test_command.counted("x", tmp_path / "report.xml", code, time.monotonic())
    assert (outcome.passed, outcome.failed, outcome.skipped) == counts


def test_style_check_is_quiet_when_it_passes(capsys: pytest.CaptureFixture[str]) -> None:
    for program, failed, shown in (
        ("print('fine')", 0, ""),
        ("exit('line 7 is too long')", 1, "style:\nline 7 is too long\n\n"),
    ):
        outcome = test_command.check("style", [sys.executable, "-c", program])
        assert (outcome.passed, outcome.failed) == (1 - failed, failed)
        assert capsys.readouterr().out == shown


CTEST_FILE = """
add_test(test_good "/bin/true")
add_test(test_bad "/bin/false")
add_test(test_also_bad "/bin/false")
set_tests_properties(test_also_bad PROPERTIES LABELS "all")
"""
TESTS = {"test_good": "", "test_bad": "-O1 more", "test_also_bad": "all"}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With three C++ tests that are built, and a Python test of each selection."""
    monkeypatch.setattr(TREE, "root", tmp_path)
    monkeypatch.setattr(PROJECT, "root", tmp_path)
    (tmp_path / "tests/lib/core").mkdir(parents=True)
    for name, words in TESTS.items():
        line = f"// Test: {words}\n" if words else ""
        (tmp_path / f"tests/lib/core/{name}.cpp").write_text(f"{line}// More about it.\n")
    conftest = (Path(__file__).parents[2] / "conftest.py").read_text()
    conftest = re.sub(r"FIRST_FILES = \(.*?\n\)", "FIRST_FILES = ()", conftest, flags=re.DOTALL)
    (tmp_path / "tests/conftest.py").write_text(conftest)
    (tmp_path / "tests/test_x.py").write_text(
        "import pytest\n"
        "def test_a(): pass\n"
        "def test_b(): assert False\n"
        "@pytest.mark.all\n"
        "def test_c(): sum(range(10_000_000))\n"
    )
    monkeypatch.setattr(cmake, "build_tests", lambda _: None)
    cmake.tests_directory().mkdir(parents=True)
    (cmake.tests_directory() / "CTestTestfile.cmake").write_text(CTEST_FILE)
    return tmp_path


def test_the_rest_runs_what_was_skipped_for_lack_of_a_tool(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_command, "MOST_WORKERS", 1)
    (tree / MARKER).touch()
    (tree / "tests/test_x.py").write_text(
        "import os, pytest\n"
        "def test_a(): pass\n"
        "def test_b(): os.path.exists('tool') or pytest.skip('no tool')\n"
        "@pytest.mark.all\n"
        "def test_c(): pass\n"
        "@pytest.mark.slow\n"
        "def test_d(): pass\n"
    )
    outcome = test_command.python_tests(Selection())
    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, 0, 2)
    (tree / "tool").touch()
    outcome = test_command.python_tests(Selection(daily=False, rest=True))
    assert (outcome.passed, outcome.failed, outcome.skipped) == (2, 0, 0)


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("selection", "python", "cpp"),
    [
        (Selection(), (1, 1), (1, 1)),
        pytest.param(*(Selection(daily=False, rest=True), (1, 0), (0, 1)), marks=pytest.mark.all),
        (Selection(rest=True, expression="test_c or good"), (1, 0), (1, 0)),
    ],
)
def test_pytest_and_ctest_are_run_and_counted(
    selection: Selection,
    python: tuple[int, int],
    cpp: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(test_command, "MOST_WORKERS", 1)
    outcome = test_command.run_cpp_tests(selection)
    assert (outcome.passed, outcome.failed) == cpp
    assert ("test_also_bad" in capfd.readouterr().out) == (selection.rest and cpp[1] > 0)
    outcome = test_command.python_tests(selection)
    assert (outcome.passed, outcome.failed) == python
    used = test_command.python_processor_s()
    assert set(used) == {"test_x.py"}
    assert (used["test_x.py"] > 0.05) == selection.rest


def test_an_expression_names_programs_by_their_files(tree: Path) -> None:
    assert cmake.tests_named("core") == ["test_also_bad", "test_bad", "test_bad_all", "test_good"]
    assert cmake.tests_named("Core and not bad") == ["test_good"]
    assert cmake.tests_named("(also or good) and lib") == ["test_also_bad", "test_good"]
    assert Selection(expression="good").python_files == []  # no text of a Python test has it
    assert Selection(expression="Test_B or good").python_files == ["tests/test_x.py"]
    for rest in ("nothing", "not test_b", None):
        assert Selection(expression=rest).python_files == ["tests"]
    assert Selection(expression="good").groups() == ["default"]
    assert Selection(expression="Test_B").groups() == ["default", "test"]
    (tree / "tests/lib/core/test_bad.cpp").write_text("// Requires: mujoco\n")
    assert Selection(expression="bad").groups() == ["default", "mujoco"]
    assert cmake.tests_named("push") == cmake.tests_named("and (") == []


def test_cpp_tests_that_do_not_compile_are_one_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(_: object) -> None:
        raise BuildError("building for host failed")

    monkeypatch.setattr(cmake, "build_tests", build)
    outcome = test_command.run_cpp_tests(Selection())
    assert (outcome.passed, outcome.failed) == (0, 1)
    assert "error: building for host failed" in capsys.readouterr().err


@pytest.fixture
def steps(tree: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Stands in for all that takes long; notes what was asked for."""
    assert tree  # no file of it has the word that is asked for
    asked: list[object] = []

    def python_tests(selection: Selection) -> StepResult:
        asked.append(selection.pytest_arguments)
        return StepResult("Python tests", 20, 0, 3, 2.0)

    monkeypatch.setattr(tools, "ensure_group", asked.append)
    monkeypatch.setattr(
        tools, "install_system_packages", lambda *, optional: asked.append(("apt", optional))
    )
    monkeypatch.setattr(
        test_command, "run_cpp_tests", lambda _: StepResult("C++ tests", 5, 0, 0, 1.0)
    )
    monkeypatch.setattr(test_command, "python_tests", python_tests)
    monkeypatch.setattr(test_command, "style_checks", lambda: [StepResult("mypy", 1, 0, 0, 1.0)])
    return asked


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


DAILY = ["default", "mujoco", ("apt", False), "test", "lint", []]
OTHERS = [group for group in tools.GROUPS if group not in ("default", "mujoco")]
REST = ["default", "mujoco", ("apt", True), *OTHERS]


@pytest.mark.parametrize(
    ("line", "asked", "end"),
    [
        ("", DAILY, "26 passed, 0 failed, 3 skipped"),
        ("--all", [*REST, "lint", ["--all"]], "26 passed, 0 failed, 3 skipped"),
        ("--rest", [*REST, ["--rest"]], "25 passed, 0 failed, 3 skipped"),
        (
            "--slow --exhaustive -k nothing",
            ["default", "test", ["--slow", "--exhaustive", "--all", "-k", "nothing"]],
            "20 passed, 0 failed, 3 skipped",
        ),
    ],
)
def test_what_each_option_installs_and_runs(
    line: str,
    asked: list[object],
    end: str,
    steps: list[object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["test", *line.split()]) == 0
    assert steps == asked
    assert last_line(capsys) == end


@pytest.mark.usefixtures("steps")
def test_one_failed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(test_command, "style_checks", lambda: [StepResult("mypy", 0, 1, 0, 1.0)])
    assert test_command.run(Selection()) == 1
    assert last_line(capsys) == "25 passed, 1 failed, 3 skipped"


def test_processor_seconds_name_the_files_that_took_most(
    capsys: pytest.CaptureFixture[str],
) -> None:
    test_command.print_processor_s({f"test_{i}": float(i) for i in range(20)})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("Processor seconds: ")
    assert lines[2].split() == ["19.0", "test_19"]
    assert len(lines) == 2 + test_command.MOST_SHOWN
