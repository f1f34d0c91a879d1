"""`rlt test`: what fails is shown, and `--rest` runs what was skipped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rltools_host.build import cmake, firmware, tools
from rltools_host.commands import cli
from rltools_host.commands import test as test_command
from rltools_host.errors import MissingToolError
from rltools_host.tree import MARKER, PROJECT, TREE

CTEST_FILE = """
add_test(test_good "/bin/true")
add_test(test_other "/bin/{program}")
set_tests_properties(test_other PROPERTIES LABELS "all")
"""
PYTHON_TESTS = """
import os, pytest
def test_a(): assert not os.path.exists("fault")
def test_b(): os.path.exists("tool") or pytest.skip("no tool")
@pytest.mark.all
def test_c(): assert os.path.exists("tool")
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with two C++ tests, which are built, and three Python tests."""
    monkeypatch.setattr(TREE, "root", tmp_path)
    monkeypatch.setattr(PROJECT, "root", tmp_path)
    (tmp_path / MARKER).touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/conftest.py").write_text(
        (Path(__file__).parents[2] / "conftest.py").read_text()
    )
    (tmp_path / "tests/test_x.py").write_text(PYTHON_TESTS)
    cmake.tests_directory().mkdir(parents=True)
    (cmake.tests_directory() / "CTestTestfile.cmake").write_text(CTEST_FILE.format(program="true"))
    monkeypatch.setattr(test_command, "MAX_WORKERS", 1)
    monkeypatch.setattr(test_command, "run_pytest", in_folder(tmp_path))
    monkeypatch.setattr(test_command, "style_checks", lambda: {"style": [sys.executable, "-V"]})
    monkeypatch.setattr(cmake, "build_tests", lambda _: None)
    monkeypatch.setattr(firmware, "platformio_environment", lambda _: {"PATH": "/usr/bin:/bin"})
    monkeypatch.setattr(tools, "ensure_group", lambda _: None)
    monkeypatch.setattr(tools, "install_system_packages", lambda **_: None)
    return tmp_path


def in_folder(folder: Path) -> object:
    original = test_command.run_pytest
    return lambda arguments, environment: original(arguments, environment, folder)


def test_what_was_skipped_for_lack_of_a_tool_is_of_the_rest(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["test"]) == 0
    output = capfd.readouterr().out
    assert "1 passed, 1 skipped" in output
    assert output.splitlines()[-1] == "all passed"
    (tree / "tool").touch()
    assert cli.run(["test", "--rest"]) == 0
    assert "2 passed" in capfd.readouterr().out


@pytest.mark.parametrize("fault", ["Python tests", "C++ tests"])
def test_a_fault_is_shown_and_tells_by_the_exit_code(
    fault: str, tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if fault == "Python tests":
        (tree / "fault").touch()
    else:
        file = cmake.tests_directory() / "CTestTestfile.cmake"
        file.write_text(CTEST_FILE.format(program="false").replace("all", "daily"))
    assert cli.run(["test"]) == 1
    output, errors = capfd.readouterr()
    assert output.splitlines()[-1] == f"failed: {fault}"
    assert ("test_a" if fault == "Python tests" else "test_other") in output + errors


@pytest.mark.usefixtures("tree")
def test_a_step_that_cannot_run_is_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: object) -> None:
        raise MissingToolError("ctest is not installed")

    monkeypatch.setattr(cmake, "ctest_command", missing)
    assert cli.run(["test"]) == MissingToolError.exit_code
