"""`rlt test --mutants`: its list fits the tree, and its verdicts on a toy tree are right."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rltools_host import cli
from rltools_host.commands import test as test_command
from rltools_host.errors import BuildError, UsageError
from rltools_host.mutants import catalogue
from rltools_host.mutants import measure as measure_module
from rltools_host.mutants.catalogue import MutantListError
from rltools_host.mutants.measure import BaselineError
from rltools_host.tree import TREE

PYTHON_SOURCE = """
def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x
"""
PYTHON_TEST = """
from pathlib import Path
exec((Path(__file__).parents[2] / "host/clamp.py").read_text())
def test_low(): assert clamp(-1, 0, 2) == 0
def test_inside(): assert clamp(1, 0, 2) == 1
"""
HEADER = "inline int twice(int x) { return 2 * x; }\ninline int thrice(int x) { return 3 * x; }\n"
CPP_TEST = '#include "toy.h"\nint main() { return twice(2) == 4 ? 0 : 1; }\n'
OTHER_CPP_TEST = "int main() { return 0; }\n"
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(toy LANGUAGES CXX)
foreach(name IN ITEMS test_toy test_other)
  add_executable(${name} tests/lib/${name}.cpp)
  target_include_directories(${name} PRIVATE lib)
  target_compile_options(${name} PRIVATE -Wall -Wextra -Werror)
endforeach()
"""

LOW = {"fault": "The low end is lost.", "text": "return low", "becomes": "return x"}
HIGH = {"fault": "The high end is lost.", "text": "return high", "becomes": "return x"}
TWICE = {"fault": "Twice is once.", "text": "2 * x", "becomes": "x"}
UNUSED = {"fault": "Twice is five.", "text": "return 2 * x", "becomes": "return 5"}
THRICE = {"fault": "Thrice is twice.", "text": "3 * x", "becomes": "2 * x"}


@pytest.fixture(autouse=True)
def _without_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy tree's tests need none, and to load them takes pytest longer than all else."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def commit(tree: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["git", "-C", tree, "add", "-A"], check=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "toy"
    tree.mkdir()
    subprocess.run(["git", "init", "-q", tree], check=True)
    files = {
        ".gitignore": "/build/\n",
        "host/clamp.py": PYTHON_SOURCE,
        "lib/toy.h": HEADER,
        "tests/host/test_clamp.py": PYTHON_TEST,
        "tests/lib/test_toy.cpp": CPP_TEST,
        "tests/lib/test_other.cpp": OTHER_CPP_TEST,
        "CMakeLists.txt": CMAKE,
    }
    commit(tree, files)
    write_list(tree, python=[LOW])
    return tree


def write_list(
    tree: Path,
    python: list[dict[str, Any]] | None = None,
    cpp: list[dict[str, Any]] | None = None,
    goal: float = 1.0,
) -> None:
    files: list[dict[str, Any]] = []
    if python is not None:
        files.append({"file": "clamp.py", "tests": ["test_clamp.py"], "mutants": python})
    if cpp is not None:
        files.append({"file": "toy.h", "mutants": cpp})
    commit(tree, {"tests/mutants/toy.json": json.dumps({"goal": goal, "files": files})})


def contents(tree: Path) -> dict[str, bytes]:
    files = [path for path in tree.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in files}


def measure(
    tree: Path, capsys: pytest.CaptureFixture[str], expression: str | None = None
) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON and what was printed; the tree must not change."""
    before = contents(tree)
    capsys.readouterr()
    code = measure_module.run(expression, True, tree, tree.parent / "mutants")
    assert contents(tree) == before
    printed = capsys.readouterr()
    return code, json.loads(printed.out.splitlines()[-1]), printed.out


def verdicts(document: dict[str, Any]) -> dict[str, tuple[bool, str]]:
    return {entry["fault"]: (entry["noticed"], entry["by"]) for entry in document["mutants"]}


# -- the list --------------------------------------------------------------------------------------


def test_list_of_this_tree_fits_it() -> None:
    areas, problems = catalogue.read_list(TREE.root)
    assert problems == []
    assert [area.name for area in areas] == ["kept"]


def test_entry_has_its_line_and_its_tests(tree: Path) -> None:
    (area,) = catalogue.load(tree)
    (mutant,) = area.mutants
    assert (mutant.area, mutant.place) == ("toy", "host/clamp.py:4")
    assert [test.name for test in mutant.tests] == ["test_clamp.py"]


@pytest.mark.parametrize(
    ("file", "entry", "problem"),
    [
        ("clamp.py", {**LOW, "text": "return nothing"}, "has no places with the text 'return noth"),
        ("clamp.py", {**LOW, "text": "return"}, "has 3 places with the text 'return': The low end"),
        ("clamp.py", {**LOW, "becomes": "return low"}, "becomes itself"),
        ("clamp.py", {**LOW, "becomes": "return ("}, "is no Python with 'return ('"),
        ("clamp.py", {**LOW, "fault": "low end"}, "not a sentence"),
        ("clamp.py", {**LOW, "tests": []}, "names no tests"),
        ("clamp.py", {**LOW, "tests": ["test_gone.py"]}, "there is no test test_gone.py"),
        ("clamp.py", {**LOW, "tests": ["test_toy.cpp -k x"]}, "only a Python test takes -k"),
        ("gone.py", LOW, "there is no gone.py"),
        ("p.py", LOW, "there is no p.py"),
        ("same.h", TWICE, "same.h may be any of lib/a/same.h, lib/b/same.h"),
    ],
)
def test_entry_that_does_not_fit_is_named(
    tree: Path, file: str, entry: dict[str, Any], problem: str
) -> None:
    commit(tree, {"lib/a/same.h": HEADER, "lib/b/same.h": HEADER})
    group = {"file": file, "tests": ["test_clamp.py"], "mutants": [entry, entry]}
    commit(tree, {"tests/mutants/bad.json": json.dumps({"goal": 1, "files": [group]})})
    _, problems = catalogue.read_list(tree)
    assert problems
    assert problems[0].startswith("bad.json: ")
    assert problem in problems[0]
    with pytest.raises(MutantListError, match="the list of mutants does not fit the tree: bad"):
        catalogue.load(tree)


def test_entry_that_is_there_twice_is_named(tree: Path) -> None:
    write_list(tree, python=[LOW, HIGH, LOW])
    _, (problem,) = catalogue.read_list(tree)
    assert problem == "toy.json: host/clamp.py has the mutant of 'return low' twice"


@pytest.mark.parametrize("text", ["{", "[]", '{"files": []}', '{"goal": 1, "files": [{}]}'])
def test_damaged_list_is_named(tree: Path, text: str) -> None:
    commit(tree, {"tests/mutants/toy.json": text})
    _, (problem,) = catalogue.read_list(tree)
    assert problem.startswith("toy.json is damaged: ")


@pytest.mark.parametrize(
    ("expression", "count"),
    [("toy", 4), ("clamp.py", 2), ("LOW END", 1), ("once or high", 2), ("nothing", 0)],
)
def test_choice_among_the_mutants(tree: Path, expression: str, count: int) -> None:
    write_list(tree, python=[LOW, HIGH], cpp=[TWICE, THRICE])
    assert sum(len(area.mutants) for area in catalogue.load(tree, expression)) == count


@pytest.mark.parametrize(("expression", "count"), [("once", 1), ("once or twice", 3), ("onc", 2)])
def test_name_of_an_area_chooses_it_alone(tree: Path, expression: str, count: int) -> None:
    write_list(tree, python=[LOW, HIGH], cpp=[TWICE, THRICE])  # a fault is "Twice is once."
    group = {"file": "clamp.py", "tests": ["test_clamp.py"], "mutants": [HIGH]}
    commit(tree, {"tests/mutants/once.json": json.dumps({"goal": 1, "files": [group]})})
    assert sum(len(area.mutants) for area in catalogue.load(tree, expression)) == count


# -- runs ------------------------------------------------------------------------------------------


def test_python_faults_are_noticed_or_not(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_list(tree, python=[LOW, HIGH], goal=0.9)
    code, document, printed = measure(tree, capsys)
    assert code == 1
    assert verdicts(document) == {
        "The low end is lost.": (True, "test_clamp.py"),
        "The high end is lost.": (False, "test_clamp.py"),
    }
    expected = {"area": "toy", "noticed": 1, "total": 2, "share": 0.5, "goal": 0.9}
    assert document["areas"] == [{**expected, "reached": False}]
    assert "  host/clamp.py:6: The high end is lost. (test_clamp.py)" in printed.splitlines()
    assert "missed" in printed

    code, document, printed = measure(tree, capsys, "low")
    assert (code, len(document["mutants"])) == (0, 1)
    assert "missed" not in printed
    assert "unnoticed" not in printed


def test_goal_that_is_reached_is_success(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_list(tree, python=[LOW, HIGH], goal=0.5)
    assert measure(tree, capsys)[0] == 0


def test_choice_within_a_python_test(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_list(tree, python=[{**LOW, "tests": ["test_clamp.py -k inside"]}])
    _, document, _ = measure(tree, capsys)
    assert verdicts(document) == {"The low end is lost.": (False, "test_clamp.py -k inside")}


def test_cpp_faults_are_built_into_the_tests_that_include_them(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"fault": "It is no C++.", "text": "2 * x; }", "becomes": "2 * ; }"}
    write_list(
        tree, cpp=[TWICE, THRICE, broken, {**broken, "text": "3 * x", "tests": ["compiler"]}]
    )
    code, document, printed = measure(tree, capsys)
    assert code == 1
    found = [(entry["noticed"], entry["valid"], entry["by"]) for entry in document["mutants"]]
    assert found[:2] == [(True, True, "test_toy.cpp"), (False, True, "test_toy.cpp")]
    assert found[2][:2] == (False, False)
    assert found[2][2].startswith("does not compile: error: ")
    assert found[3] == (True, True, "the compiler")
    assert "could not be tried:\n  lib/toy.h:1: It is no C++." in printed


def test_fault_that_leaves_something_unused_is_tried(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though warnings are errors in the tree: a test is to notice it."""
    write_list(tree, cpp=[UNUSED])
    _, document, _ = measure(tree, capsys)
    assert verdicts(document) == {"Twice is five.": (True, "test_toy.cpp")}


def test_python_tests_that_build_the_host_leave_cpp_faults_triable(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They configure build/host in their own way, as tests of the host's libraries do."""
    own = "import shutil; shutil.rmtree('build/host', ignore_errors=True)\n"
    commit(tree, {"tests/host/test_clamp.py": own + PYTHON_TEST})
    write_list(tree, python=[LOW], cpp=[TWICE])
    code, document, _ = measure(tree, capsys)
    assert code == 0
    assert [entry["by"] for entry in document["mutants"]] == ["test_clamp.py", "test_toy.cpp"]


def test_fault_that_must_not_compile_and_does_is_unnoticed(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_list(tree, cpp=[{**THRICE, "tests": ["compiler"]}])
    _, document, _ = measure(tree, capsys)
    assert verdicts(document) == {"Thrice is twice.": (False, "test_toy.cpp")}


def test_fault_that_must_not_compile_is_tried_with_the_tests_of_its_file(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = {"file": "toy.h", "tests": ["test_other.cpp"]}
    group = {**file, "mutants": [{**TWICE, "tests": ["compiler"]}]}
    commit(tree, {"tests/mutants/toy.json": json.dumps({"goal": 1.0, "files": [group]})})
    _, document, _ = measure(tree, capsys)
    assert verdicts(document) == {"Twice is once.": (False, "test_other.cpp")}


def test_test_that_fails_by_itself_is_an_error(tree: Path) -> None:
    commit(tree, {"tests/host/test_clamp.py": "def test_x(): assert False\n"})
    with pytest.raises(BaselineError, match=r"test_clamp\.py fails without a mutant"):
        measure_module.run(None, False, tree, tree.parent / "mutants")


def test_tree_that_does_not_build_is_an_error(tree: Path) -> None:
    commit(tree, {"tests/lib/test_toy.cpp": "no C++"})
    write_list(tree, cpp=[TWICE])
    with pytest.raises(BuildError, match="does not build"):
        measure_module.run(None, False, tree, tree.parent / "mutants")


def test_choice_without_a_mutant_is_an_error(tree: Path) -> None:
    with pytest.raises(UsageError, match="-k nothing matches no mutant"):
        measure_module.run("nothing", False, tree, tree.parent / "mutants")


def test_fault_that_hangs_is_noticed(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_module, "SHORTEST_LIMIT_S", 0.5)
    monkeypatch.setattr(measure_module, "SLOWER_THAN_UNCHANGED", 2.0)
    endless = {"fault": "It hangs.", "text": "return low", "becomes": "while True: pass"}
    write_list(tree, python=[endless])
    _, document, _ = measure(tree, capsys)
    assert verdicts(document) == {"It hangs.": (True, "test_clamp.py")}


def test_interrupt_leaves_nothing_mutated_and_shows_what_was_tried(tree: Path) -> None:
    begun = tree.parent / "begun"
    wait = f"open({str(begun)!r}, 'w').close(); import time; time.sleep(60)"
    slow = {"fault": "It waits.", "text": "return high", "becomes": wait}
    test = PYTHON_TEST + "def test_high(): clamp(3, 0, 2)\n"
    commit(tree, {"tests/host/test_clamp.py": test})
    write_list(tree, python=[LOW, slow])
    before = contents(tree)
    mutants_directory = tree.parent / "mutants"
    program = (
        "import signal, sys; from pathlib import Path; from rltools_host.mutants import measure\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"tree, root = Path({str(tree)!r}), Path({str(mutants_directory)!r})\n"
        "sys.exit(measure.run(None, False, tree, root))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(TREE.root / "host")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not begun.exists():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "1 of   1" in out
    assert err.splitlines()[-1] == "interrupted after 1 of 2"
    assert contents(tree) == before
    assert (mutants_directory / "tree/host/clamp.py").read_text() == PYTHON_SOURCE


# -- the copy --------------------------------------------------------------------------------------


def test_copy_follows_the_tree(tree: Path, tmp_path: Path) -> None:
    copy = measure_module.Copy(tree, tmp_path / "copy")
    commit(tree, {"host/old.py": "x = 1\n", "host/tool.sh": "#!/bin/sh\n"})
    (tree / "build").mkdir()
    (tree / "build/ignored").touch()
    (tree / "host/new.py").write_text("y = 1\n")  # not known to git yet
    copy.refresh()
    assert (copy.root / "host/new.py").exists()
    assert not (copy.root / "build/ignored").exists()
    assert (copy.root / ".venv/bin/python").exists()

    (copy.root / "build").mkdir()
    (copy.root / "build/kept").touch()
    unchanged = (copy.root / "lib/toy.h").stat().st_mtime_ns
    (copy.root / "host/clamp.py").write_text("mutated\n")  # as a run that was killed leaves it
    (tree / "host/old.py").unlink()
    (tree / "host/tool.sh").chmod(0o755)
    shutil.rmtree(tree / "tests/lib")
    copy.refresh()
    assert (copy.root / "lib/toy.h").stat().st_mtime_ns == unchanged
    assert (copy.root / "host/clamp.py").read_text() == PYTHON_SOURCE
    assert not (copy.root / "host/old.py").exists()
    assert not list((copy.root / "tests/lib").glob("*"))
    assert os.access(copy.root / "host/tool.sh", os.X_OK)
    assert (copy.root / "build/kept").exists()


def test_command_line_reaches_the_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[Any, ...]] = []

    def run(*arguments: Any) -> int:
        called.append(arguments)
        return 1

    monkeypatch.setattr(measure_module, "run", run)
    monkeypatch.setattr(test_command.tools, "ensure_group", lambda _: None)
    monkeypatch.setattr(test_command.tools, "install_system_packages", lambda: None)
    assert cli.run(["test", "--mutants", "-k", "core", "--json"]) == 1
    assert called == [("core", True)]
    assert cli.run(["test", "--mutants", "--fast"]) == UsageError.exit_code
