"""`rlt test`: every failure is counted, and the exit code and the last line tell."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rltools_host.boards.description import Board, load_board
from rltools_host.commands import test as test_command
from rltools_host.commands.test import Outcome
from rltools_host.errors import BuildError
from rltools_host.project import PROJECT
from rltools_host.toolchain import tools
from rltools_host.tree import TREE

REPORT = """<testsuites>
<testsuite name="a" tests="7" failures="1" errors="1" skipped="2"></testsuite>
<testsuite name="b" tests="3" failures="0" errors="0" skipped="0"></testsuite>
</testsuites>"""


def test_report_is_summed(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    outcome = test_command.counted("x", tmp_path / "report.xml", 1, time.monotonic())
    assert (outcome.passed, outcome.failed, outcome.skipped) == (6, 2, 2)


def test_step_that_ends_without_a_report_has_failed(tmp_path: Path) -> None:
    outcome = test_command.counted("x", tmp_path / "none.xml", 139, time.monotonic())
    assert (outcome.passed, outcome.failed) == (0, 1)


def test_step_that_fails_after_all_tests_passed_has_failed(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text('<testsuite tests="3" failures="0"></testsuite>')
    outcome = test_command.counted("x", tmp_path / "report.xml", 1, time.monotonic())
    assert (outcome.passed, outcome.failed) == (3, 1)


def test_style_check_is_quiet_when_it_passes(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = test_command.check("style", [sys.executable, "-c", "print('fine')"])
    assert (outcome.passed, outcome.failed) == (1, 0)
    assert capsys.readouterr().out == ""


def test_style_check_shows_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = test_command.check("style", [sys.executable, "-c", "exit('line 7 is too long')"])
    assert (outcome.passed, outcome.failed) == (0, 1)
    assert "style:\nline 7 is too long" in capsys.readouterr().out


def test_pytest_and_ctest_are_run_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(TREE, "root", tmp_path)
    monkeypatch.setattr(PROJECT, "root", tmp_path)
    (tmp_path / "tests/host").mkdir(parents=True)
    (tmp_path / "tests/host/test_x.py").write_text(
        "def test_a(): pass\ndef test_b(): assert False\n"
    )
    outcome = test_command.python_tests(["tests/host", "tests/none"], [])
    assert (outcome.passed, outcome.failed) == (1, 1)

    monkeypatch.setattr(test_command, "build_cpp_tests", lambda: None)
    test_command.cpp_tests_directory().mkdir(parents=True)
    (test_command.cpp_tests_directory() / "CTestTestfile.cmake").write_text(
        'add_test(good "/bin/true")\nadd_test(bad "/bin/false")\nadd_test(also_bad "/bin/false")\n'
    )
    capfd.readouterr()
    outcome = test_command.cpp_tests("good")
    assert (outcome.passed, outcome.failed) == (1, 0)
    assert capfd.readouterr().out == ""
    outcome = test_command.cpp_tests(None)
    assert (outcome.passed, outcome.failed) == (1, 2)
    assert "also_bad" in capfd.readouterr().out


def test_cpp_tests_that_do_not_compile_are_one_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def build_cpp_tests() -> None:
        raise BuildError("building for host failed")

    monkeypatch.setattr(test_command, "build_cpp_tests", build_cpp_tests)
    outcome = test_command.cpp_tests(None)
    assert (outcome.passed, outcome.failed) == (0, 1)
    assert "error: building for host failed" in capsys.readouterr().err


@pytest.mark.parametrize("has_openblas", [True, False])
def test_boards_whose_library_is_missing_are_left_out(
    has_openblas: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built: dict[str, dict[str, str]] = {}

    def build_targets(
        board: Board,
        targets: list[str],
        directory: Path | None = None,
        options: dict[str, str] | None = None,
        **_: object,
    ) -> None:
        where = directory or PROJECT.board_build(board.name)
        assert (where == test_command.cpp_tests_directory()) == (targets == ["cpp_tests"])
        built[where.name] = options or {}

    monkeypatch.setattr(test_command.cmake, "build_targets", build_targets)
    monkeypatch.setattr(test_command.memory, "memory_usage", lambda *_: [])
    openblas = ["openblas"]
    monkeypatch.setattr(
        test_command, "missing_names", lambda n: [] if has_openblas else openblas if n else []
    )
    monkeypatch.setattr(
        test_command.cmake,
        "missing_optional_tools",
        lambda board: openblas if board.libraries and not has_openblas else [],
    )
    test_command.build_all()
    test_command.build_cpp_tests()
    assert built["tests"] == {"RLT_TESTS": "ON", "RLT_OPENBLAS": "ON" if has_openblas else "OFF"}
    assert built["host"] == {}
    assert "qemu-cortex-m7" in built
    assert ("host-blas" in built) == has_openblas
    notice = "host-blas is not built: openblas is not installed"
    assert (notice in capsys.readouterr().out) != has_openblas


def test_a_board_is_built_with_the_experiments_that_it_is_tested_with() -> None:
    board = load_board("qemu-cortex-m7")
    fitting = test_command.experiments.list_experiments(board)
    assert len(fitting) > 1
    assert test_command.tested_experiments(board) == fitting
    assert test_command.tested_experiments(replace(board, tested_with=())) == []
    only = replace(board, tested_with=("pendulum-td3",))
    assert test_command.tested_experiments(only) == ["pendulum-td3"]
    assert test_command.tested_experiments(replace(only, programs=())) == []
    with pytest.raises(BuildError, match='tested_with: no experiment "pendulum" fits it'):
        test_command.tested_experiments(replace(board, tested_with=("pendulum",)))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[object]]:
    """Stands in for all that takes long; notes what was asked for."""
    asked: dict[str, list[object]] = {"groups": [], "pytest": []}
    monkeypatch.setattr(tools, "ensure_group", asked["groups"].append)
    monkeypatch.setattr(tools, "install_system_packages", lambda: None)
    monkeypatch.setattr(test_command, "build_all", lambda: None)
    monkeypatch.setattr(test_command, "cpp_tests", lambda _: Outcome("C++ tests", 5, 0, 0, 1.0))

    def python_tests(_: object, arguments: list[str]) -> Outcome:
        asked["pytest"] += arguments
        return Outcome("Python tests", 20, 0, 3, 2.0)

    monkeypatch.setattr(test_command, "python_tests", python_tests)
    monkeypatch.setattr(test_command, "style_checks", lambda: [Outcome("mypy", 1, 0, 0, 1.0)])
    return asked


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_all_passed(steps: dict[str, list[object]], capsys: pytest.CaptureFixture[str]) -> None:
    assert test_command.run() == 0
    assert last_line(capsys) == "26 passed, 0 failed, 3 skipped"
    assert steps["groups"] == list(tools.GROUPS)
    assert steps["pytest"] == []


def test_options_reach_pytest(steps: dict[str, list[object]]) -> None:
    test_command.run(fast=True, expression="a or b", slow=True, exhaustive=True)
    assert steps["pytest"] == ["--slow", "--exhaustive", "-k", "a or b", "-m", "not device"]


def test_one_failed(
    steps: dict[str, list[object]],  # noqa: ARG001 - replaces the steps
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(test_command, "style_checks", lambda: [Outcome("mypy", 0, 1, 0, 1.0)])
    assert test_command.run() == 1
    assert last_line(capsys) == "25 passed, 1 failed, 3 skipped"


def test_python_is_not_tested_where_a_build_fails(
    steps: dict[str, list[object]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def build_all() -> None:
        raise BuildError("building for host failed")

    monkeypatch.setattr(test_command, "build_all", build_all)
    assert test_command.run() == BuildError.exit_code
    assert last_line(capsys) == "6 passed, 1 failed"
    assert steps["pytest"] == []
