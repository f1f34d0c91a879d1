"""`rlt test --mutants`: its operators, which tests a file has, and its verdicts on a toy tree."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rltools_host.errors import UsageError
from rltools_host.mutants import areas, faults
from rltools_host.mutants import measure as measure_module
from rltools_host.mutants.cpp_syntax import cpp_faults
from rltools_host.mutants.measure import BaselineError
from rltools_host.mutants.python_syntax import python_faults
from rltools_host.tree import TREE

LIBRARY = "lib/rltools/include/rltools"
HEADER = f"{LIBRARY}/core/toy.h"
PYTHON = "host/rltools_host/runs/clamp.py"
PYTHON_SOURCE = """
def clamp(x, low, high):
    if x < low:
        return low
    return min(x, high)
"""
PYTHON_TEST = """
from pathlib import Path
exec((Path(__file__).parents[3] / "host/rltools_host/runs/clamp.py").read_text())
def test_low():
    print("FAILED tests/host/other.py::test_of_another_pytest - it is shown")
    assert clamp(-1, 0, 2) == 0
def test_inside(): assert clamp(1, 0, 2) == 1
"""
CPP_SOURCE = """inline int twice(int x) {
  return 2 * x;
}
"""
CPP_TEST = '#include "toy.h"\nint main() { return twice(3) == 6 ? 0 : 1; }\n'
CMAKE = f"""
cmake_minimum_required(VERSION 3.20)
project(toy LANGUAGES CXX)
add_executable(test_toy tests/lib/core/test_toy.cpp)
target_include_directories(test_toy PRIVATE {LIBRARY}/core)
target_compile_options(test_toy PRIVATE -Wall -Wextra -Werror)
"""
LOST = {"fault": "The low end is lost.", "text": "return low", "becomes": "return x"}


# -- operators -------------------------------------------------------------------------------------


def changes(found: list[faults.Fault], source: str, operator: str) -> list[str]:
    """What the sources become, without what stays."""
    lines = source.splitlines()
    changed = []
    for fault in found:
        if fault.operator == operator:
            after = fault.apply(source).splitlines()
            assert len(after) == len(lines)
            (line,) = {after[i].strip() for i in range(len(lines)) if after[i] != lines[i]}
            changed.append(line)
    return changed


@pytest.mark.parametrize(
    ("line", "operator", "becomes"),
    [
        ("y = a <= b < c", "comparison", ["y = a < b < c", "y = a <= b <= c"]),
        ("y = a is not None", "comparison", ["y = a is None"]),
        ("y = 'é' in a", "comparison", ["y = 'é' not in a"]),
        ("y = (a)  # is\\\n", "comparison", []),
        ("y = a + b * c", "arithmetic", ["y = a - b * c", "y = a + b / c"]),
        ("y = -a", "arithmetic", ["y = a"]),
        ("y = folder / 'name'", "arithmetic", []),
        (
            "y = a and b and not c",
            "boolean",
            ["y = a or b and not c", "y = a and b or not c", "y = a and b and c"],
        ),
        (
            "y = f(2, 0.5)",
            "constant",
            ["y = f(3, 0.5)", "y = f(1, 0.5)", "y = f(2, 1.5)", "y = f(2, -0.5)"],
        ),
        ("y = True", "constant", ["y = False"]),
        ("x: Annotated[int, 3] = y", "constant", []),
        ("y = f'{a + 1}'", "arithmetic", []),
        ("while a < b: pass", "condition", ["while (not (a < b)): pass"]),
        ("y = [x for x in a if b]", "condition", ["y = [x for x in a if (not (b))]"]),
        ("if TYPE_CHECKING: y = 1", "condition", []),
        ("f(a.b, a.c)", "arguments", ["f(a.c, a.b)"]),
        ("f(a, 1, 'b')", "arguments", []),
        ("min(a, b)", "arguments", []),
        ("f(a)", "statement", ["pass"]),
        ("x = 1", "statement", ["pass"]),
        ("new = 1", "statement", []),
        ("self.x = 1", "statement", ["pass"]),
        ("raise ValueError(a)", "statement", ["pass"]),
        ("return a", "return", ["return 0"]),
        ("return 0", "return", []),
        ("for x in a: break", "jump", ["for x in a: continue"]),
    ],
)
def test_python_operators(line: str, operator: str, becomes: list[str]) -> None:
    source = f'def f(x: int) -> int:\n    """Text."""\n    {line}\n'
    found = python_faults(Path("f.py"), source)
    assert changes(found, source, operator) == becomes
    assert {(fault.function, fault.line) for fault in found} <= {("f", 3)}


@pytest.mark.parametrize(
    ("line", "operator", "becomes"),
    [
        ("y = a <= b;", "comparison", ["y = a < b;"]),
        ("std::vector<int> a;", "comparison", []),
        ("y = *a + b[2];", "arithmetic", ["y = *a - b[2];"]),
        ("y += 2;", "arithmetic", ["y -= 2;"]),
        ("char* a = &b; T&& c = d;", "arithmetic", []),
        ("y = a && !b;", "boolean", ["y = a || !b;", "y = a && b;"]),
        ("y = f(0x0fu, 1.5f, true);", "constant", [
            "y = f(0x10u, 1.5f, true);", "y = f(0xeu, 1.5f, true);", "y = f(0x0fu, 2.5f, true);",
            "y = f(0x0fu, 0.5f, true);", "y = f(0x0fu, 1.5f, false);"]),
        ('y = "2 < 3";  // 4 < 5', "constant", []),
        ("static_assert(sizeof(T) == 4);", "constant", []),
        ("if (a < (b)) y = 1;", "condition", ["if (!(a < (b))) y = 1;"]),
        ("if constexpr (a) y = 1;", "condition", []),
        ("if (int c = a; c) y = 1;", "condition", []),
        ("f(a.b, c[i], d + 1);", "arguments", ["f(c[i], a.b, d + 1);"]),
        ("int g(int a, int b);", "arguments", []),
        ("math::fma(a, b, c);", "arguments", ["math::fma(a, c, b);"]),
        ("a.b(c);", "statement", [";"]),
        ("this->x = y;", "statement", [";"]),
        ("i++;", "statement", [";"]),
        ("int a = f(b);", "statement", []),
        ("std::vector<int> a(b);", "statement", []),
        ("for (int i = 0; i < 3; i++) f(i);", "statement", ["for (int i = 0; i < 3; i++) ;"]),
        ("return a + b;", "return", ["return {};"]),
        ("return false;", "return", []),
        ("return Error::none;", "return", []),  # the first of each enumeration that has it
        ("return Error::full;", "return", ["return {};"]),
        ("while (a) { break; }", "jump", ["while (a) { continue; }"]),
    ],
)  # fmt: skip
def test_cpp_operators(line: str, operator: str, becomes: list[str]) -> None:
    source = f"""#define X(a) a < 1
namespace n {{
constexpr int kMost[] = {{1, 2}};
struct S {{
  template <class T, int N = (1 < 2)>
  S(T a) : x_{{a}}, y_(a) {{
    {line}
  }}
  int x_ = 3;
}};
}}  // namespace n
"""
    found = cpp_faults(Path("f.h"), source)
    assert changes(found, source, operator) == becomes
    assert {(fault.function, fault.line) for fault in found} <= {("S", 7)}


def test_every_fault_of_python_is_python() -> None:
    path = Path(areas.__file__)
    source = path.read_text()
    for fault in python_faults(path, source):
        compile(fault.apply(source), str(path), "exec")


# -- what there is of this tree --------------------------------------------------------------------


def test_kept_and_dead_faults_of_this_tree_fit_it() -> None:
    tree = areas.Tree(TREE.root)
    kept, problems = faults.kept_faults(TREE.root, tree.sources)
    assert problems == []
    assert all(tree.tests_of(path) != measure_module.NO_TESTS for path in {f.path for f in kept})
    for entry in faults.dead_faults(TREE.root):
        (path,) = [path for path in tree.sources if f"/{path}".endswith(f"/{entry['file']}")]
        generated = measure_module.generated_faults(TREE.root, path)
        assert len(faults.without_dead(TREE.root, generated)) < len(generated), entry
        assert entry["reason"].endswith(".")


def generated_as(kept: faults.Fault, generated: list[faults.Fault], source: str) -> list[str]:
    """The generated faults that make what a kept one makes, but for white space and `pass`."""

    def near(fault: faults.Fault, begin: int, end: int) -> str:
        text = source[begin : fault.start] + fault.becomes + source[fault.end : end]
        return re.sub(r"\s|;|\bpass\b", "", text)

    found = []
    for fault in generated:
        span = min(kept.start, fault.start), max(kept.end, fault.end)
        is_apart = fault.end <= kept.start or kept.end <= fault.start
        if not is_apart and near(fault, *span) == near(kept, *span):
            found.append(fault.described(source))
    return found


def test_no_operator_makes_a_kept_fault() -> None:
    tree = areas.Tree(TREE.root)
    kept, _ = faults.kept_faults(TREE.root, tree.sources)
    for path in {fault.path for fault in kept}:
        source = (TREE.root / path).read_text(encoding="utf-8")
        generated = measure_module.generated_faults(TREE.root, path)
        living = faults.without_dead(TREE.root, generated)
        for fault in kept:
            if fault.path == path:
                assert generated_as(fault, living, source) == [], fault.sentence


def test_tests_of_a_file_lie_where_it_lies() -> None:
    tree = areas.Tree(TREE.root)
    random = tree.tests_of(Path(f"{LIBRARY}/core/random.h"))
    assert random.programs[0] == Path("tests/lib/core/test_random.cpp")
    assert Path("tests/lib/core/test_sha256.cpp") not in random.programs
    service = tree.tests_of(Path("firmware/app/link/node.h"))  # which has no test of its own
    assert Path("tests/firmware/app/services/policies/test_policy_service.cpp") in service.programs
    saves = tree.tests_of(Path("host/rltools_host/runs/saves.py"))
    assert saves.python[0] == Path("tests/host/runs/test_saves.py")
    assert tree.area(Path("host/rltools_host/runs/saves.py")) == "host/runs"
    documents = tree.tests_of(Path("host/rltools_host/documents.py"))
    assert documents.python[0] == Path("tests/host/test_documents.py")
    assert not any(test.is_relative_to(areas.WHOLE_TREE) for test in documents.python)
    ant = tree.tests_of(Path(f"{LIBRARY}/rl/environments/mujoco/ant.h"))
    assert [test.stem for test in ant.python] == ["test_mujoco_gymnasium"]
    car = tree.tests_of(Path(f"{LIBRARY}/rl/environments/racing_car.h"))
    assert [test.stem for test in car.python] == ["test_racing_car_reference"]
    board = tree.tests_of(Path("firmware/qemu_mps2/board.cpp"))
    assert Path("tests/device/test_training_on_board.py") in board.python
    for name in areas.FURTHER_TESTS:
        assert any(str(path).startswith(name) for path in tree.sources), name


# -- a toy tree ------------------------------------------------------------------------------------


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
        PYTHON: PYTHON_SOURCE,
        HEADER: CPP_SOURCE,
        "tests/host/runs/test_clamp.py": PYTHON_TEST,
        "tests/lib/core/test_toy.cpp": CPP_TEST,
        "tests/mutants/kept.json": "{}",
        "tests/mutants/dead.json": "[]",
        "CMakeLists.txt": CMAKE,
    }
    commit(tree, files)
    return tree


def contents(tree: Path) -> dict[str, bytes]:
    files = [path for path in tree.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path): path.read_bytes() for path in files}


def measure(
    tree: Path, capsys: pytest.CaptureFixture[str], expression: str | None = None, **options: Any
) -> tuple[int, dict[str, Any], str]:
    """Exit code, the document of --json, and what was printed above it."""
    before = contents(tree)
    code = measure_module.run(
        expression, True, source=tree, root=tree.parent / "mutants", **options
    )
    assert contents(tree) == before
    printed, _, document = capsys.readouterr().out.rstrip().rpartition("\n")
    return code, json.loads(document), printed


def verdicts(document: dict[str, Any]) -> dict[str, bool]:
    return {entry["fault"]: entry["noticed"] for entry in document["faults"] if entry["compiles"]}


def test_faults_are_noticed_or_not(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(tree, {"tests/mutants/kept.json": json.dumps({"clamp.py": [LOST]})})
    code, document, printed = measure(tree, capsys, "clamp.py")
    assert verdicts(document) == {
        "The low end is lost.": True,
        "clamp: comparison: < -> <=": False,
        "clamp: condition: x < low -> (not (x < low))": True,
        "clamp: return: low -> None": True,
        "clamp: return: min(x, high) -> None": True,
    }
    kept, runs = document["areas"]
    assert (kept["area"], kept["noticed"], kept["tried"]) == ("kept", 1, 1)
    assert (runs["area"], runs["noticed"], runs["tried"], runs["goal"]) == ("host/runs", 3, 4, 0.9)
    assert runs["low"] == pytest.approx(0.3006, abs=1e-4)
    assert runs["high"] == pytest.approx(0.9544, abs=1e-4)
    assert (code, runs["missed"]) == (0, False)
    assert printed.splitlines() == [
        "",
        "area                   noticed      share  95 % interval     goal",
        "kept                     1 of   1   100.0%   20.7% to 100.0%     95%",
        "host/runs                3 of   4    75.0%   30.1% to  95.4%     90%",
        "all                      4 of   5    80.0%   37.6% to  96.4%",
        "",
        "unnoticed:",
        f"  {PYTHON}:3: clamp: comparison: < -> <= (test_clamp.py)",
    ]


def test_dead_faults_are_left_out(tree: Path) -> None:
    dead = {"file": "clamp.py", "function": "clamp", "operator": "comparison", "token": "<"}
    commit(tree, {"tests/mutants/dead.json": json.dumps([{**dead, "reason": "Both are low."}])})
    (found,) = measure_module.chosen_faults(areas.Tree(tree), "host/runs", 0).values()
    assert [fault.operator for fault in sorted(found)] == [*("condition", "return", "return")]
    dead = {"file": "clamp.py", "function": "clamp", "operator": "return", "reason": "Any number."}
    commit(tree, {"tests/mutants/dead.json": json.dumps([dead])})  # all of them
    assert [fault.operator for fault in faults.without_dead(tree, found)] == ["condition"]
    del dead["function"]
    commit(tree, {"tests/mutants/dead.json": json.dumps([dead])})  # of every function
    assert [fault.operator for fault in faults.without_dead(tree, found)] == ["condition"]
    for becomes, count in (("<=", 3), (">", 4)):  # of one of two neighbours
        dead = {"file": "clamp.py", "function": "clamp", "operator": "comparison"}
        entry = {**dead, "becomes": becomes, "reason": "Both are low."}
        commit(tree, {"tests/mutants/dead.json": json.dumps([entry])})
        (found,) = measure_module.chosen_faults(areas.Tree(tree), "host/runs", 0).values()
        assert len(found) == count


def test_cpp_faults_are_built_without_warnings(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, document, _ = measure(tree, capsys, "lib/core")
    assert verdicts(document) == {
        "twice: constant: 2 -> 3": True,
        "twice: constant: 2 -> 1": True,
        "twice: arithmetic: * -> /": True,
        "twice: return: 2 * x -> {}": True,  # which leaves x unused
    }
    assert {entry["by"] for entry in document["faults"]} == {"test_toy"}
    assert [fault["line"] for fault in document["faults"]] == [2, 2, 2, 2]


def test_fault_that_does_not_compile_does_not_count(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"fault": "It is no C++.", "text": "2 * x", "becomes": "2 *"}
    commit(tree, {"tests/mutants/kept.json": json.dumps({"toy.h": [broken]})})
    code, document, _ = measure(tree, capsys, "It is no")
    assert (code, document["areas"]) == (0, [])
    assert document["faults"][0]["by"].startswith("does not compile: error: ")


def test_what_the_preprocessor_leaves_out_does_not_count(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = """#ifdef OTHER_PROCESSOR
inline int number(int x) { return x; }
#else
inline int number(int x) { return x; }
#endif
"""
    commit(tree, {HEADER: CPP_SOURCE + other})
    _, document, _ = measure(tree, capsys, "core/toy.h")
    found = {fault["line"]: fault for fault in document["faults"] if fault["function"] == "number"}
    assert {line: fault["compiles"] for line, fault in found.items()} == {5: False, 7: True}
    assert found[5]["by"] == "the preprocessor leaves it out on this machine"
    assert not found[7]["noticed"]  # nothing calls it


def test_fault_that_only_tests_of_all_could_notice_does_not_count(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tree, {"tests/lib/core/test_toy.cpp": f"// Test: all\n{CPP_TEST}"})
    _, document, _ = measure(tree, capsys, "lib/core")
    assert {entry["by"] for entry in document["faults"]} == {"only tests of --all could notice it"}
    assert document["areas"] == []
    _, document, _ = measure(tree, capsys, "lib/core", all_tests=True, samples=1)
    assert [area["noticed"] for area in document["areas"]] == [1]


@pytest.mark.all
def test_tests_of_every_day_come_first(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--all` says how many of what all tests notice those notice that a plain `rlt test` runs."""
    conftest = """
def pytest_addoption(parser): parser.addoption("--all", action="store_true")
def pytest_configure(config): config.addinivalue_line("markers", "all: only with --all")
def pytest_collection_modifyitems(config, items):
    import pytest
    for item in items:
        if item.get_closest_marker("all") and not config.getoption("--all"):
            item.add_marker(pytest.mark.skip())
"""
    rest = "import pytest\n@pytest.mark.all\ndef test_high(): assert clamp(3, 0, 2) == 2\n"
    test = {"tests/host/runs/test_clamp.py": PYTHON_TEST + rest}
    commit(tree, {"tests/conftest.py": conftest, **test})
    lost = {"fault": "The high end is lost.", "text": "min(x, high)", "becomes": "x"}
    commit(tree, {"tests/mutants/kept.json": json.dumps({"clamp.py": [LOST, lost]})})
    _, document, printed = measure(tree, capsys, "kept", all_tests=True)
    assert verdicts(document) == {LOST["fault"]: True, lost["fault"]: True}
    assert {entry["fault"]: entry["daily"] for entry in document["faults"]} == {
        LOST["fault"]: True,
        lost["fault"]: False,
    }
    assert "of these by the tests of every day: 1 of 2, 50.0%" in printed


def test_words_of_a_cpp_test_choose_its_programs(tree: Path) -> None:
    def names(all_tests: bool) -> list[str]:
        checks = areas.Tree(tree).checks_of(Path(HEADER), all_tests)
        return [check.program for check in checks]

    assert names(True) == ["test_toy"]
    commit(tree, {"tests/lib/core/test_toy.cpp": "// Test: more -O1\n" + CPP_TEST})
    assert (names(False), names(True)) == (["test_toy"], ["test_toy", "test_toy_all"])
    commit(tree, {"tests/lib/core/test_toy.cpp": "// Test: all\n" + CPP_TEST})
    assert (names(False), names(True)) == ([], ["test_toy"])


def test_entry_that_does_not_fit_is_named(tree: Path) -> None:
    twice = {**LOST, "text": "return"}
    commit(tree, {"tests/mutants/kept.json": json.dumps({"clamp.py": [twice], "gone.py": [LOST]})})
    with pytest.raises(faults.FaultListError) as error:
        measure_module.chosen_faults(areas.Tree(tree), None, 0)
    assert f"{PYTHON} has 2 places with 'return': The low end is lost." in str(error.value)
    assert "gone.py may be any of no files" in str(error.value)


@pytest.mark.all
def test_test_that_fails_by_itself_is_an_error(tree: Path) -> None:
    commit(tree, {"tests/host/runs/test_clamp.py": "def test_x(): assert False\n"})
    with pytest.raises(BaselineError, match=r"test_clamp\.py fails without a fault"):
        measure_module.run("runs", source=tree, root=tree.parent / "mutants")


def test_choice_without_a_fault_is_an_error(tree: Path) -> None:
    with pytest.raises(UsageError, match="-k nothing matches no fault"):
        measure_module.run("nothing", source=tree, root=tree.parent / "mutants")


def test_fault_that_hangs_is_noticed(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_module, "LONGEST_S", (2.0, 2.0))
    monkeypatch.setattr(measure_module, "SHORTEST_LIMIT_S", 2.0)
    monkeypatch.setattr(measure_module, "SLOWER_THAN_UNCHANGED", 0.1)
    endless = {
        "fault": "It hangs.",
        "text": "return low",
        "becomes": "__import__('time').sleep(99)",
    }
    commit(tree, {"tests/mutants/kept.json": json.dumps({"clamp.py": [endless]})})
    _, document, _ = measure(tree, capsys, "It hangs")
    assert verdicts(document) == {"It hangs.": True}


@pytest.mark.all
def test_machine_that_is_busy_notices_nothing(
    tree: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A test that fails once, and a limit that the test also exceeds without a fault."""
    seen = tmp_path / "seen"
    once = f"""
from pathlib import Path
def test_once():
    seen = Path({str(seen)!r})
    was_there = seen.exists()
    seen.touch()
    assert was_there
"""
    commit(tree, {"tests/host/runs/test_clamp.py": PYTHON_TEST + once})
    kept = {
        "tests/mutants/kept.json": json.dumps({"clamp.py": [{**LOST, "becomes": LOST["text"]}]})
    }
    commit(tree, kept)
    _, document, _ = measure(tree, capsys, "kept")
    assert seen.exists()
    assert verdicts(document) == {LOST["fault"]: False}

    commit(tree, {"tests/host/runs/test_clamp.py": "import time\ndef test_x(): time.sleep(0.5)\n"})
    monkeypatch.setattr(measure_module, "LONGEST_S", (0.4, 0.4))
    _, document, _ = measure(tree, capsys, "kept")
    assert verdicts(document) == {LOST["fault"]: False}


def test_interrupt_leaves_nothing_mutated_and_shows_what_was_tried(tree: Path) -> None:
    begun = tree.parent / "begun"
    wait = f"open({str(begun)!r}, 'w').close(); import time; time.sleep(60)"
    slow = {"fault": "It waits.", "text": "return low", "becomes": wait}
    commit(tree, {"tests/mutants/kept.json": json.dumps({"clamp.py": [slow]})})
    before = contents(tree)
    mutants_directory = tree.parent / "mutants"
    program = (
        "import signal, sys; from pathlib import Path; from rltools_host.mutants import measure\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"tree, root = Path({str(tree)!r}), Path({str(mutants_directory)!r})\n"
        "sys.exit(measure.run('It waits', source=tree, root=root))\n"
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
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "interrupted: this is what was tried until then"
    assert contents(tree) == before
    assert (mutants_directory / "tree" / PYTHON).read_text() == PYTHON_SOURCE


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
    unchanged = (copy.root / HEADER).stat().st_mtime_ns
    (copy.root / PYTHON).write_text("mutated\n")  # as a run that was killed leaves it
    (tree / "host/old.py").unlink()
    (tree / "host/tool.sh").chmod(0o755)
    shutil.rmtree(tree / "tests/lib")
    copy.refresh()
    assert (copy.root / HEADER).stat().st_mtime_ns == unchanged
    assert (copy.root / PYTHON).read_text() == PYTHON_SOURCE
    assert not (copy.root / "host/old.py").exists()
    assert not [path for path in (copy.root / "tests/lib").rglob("*") if path.is_file()]
    assert os.access(copy.root / "host/tool.sh", os.X_OK)
    assert (copy.root / "build/kept").exists()
