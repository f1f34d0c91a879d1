"""What `rlt test` builds: which tests an expression means, and what they took of the processors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rltools_host.build import cmake
from rltools_host.tree import TREE


@pytest.mark.parametrize(
    ("expression", "is_meant"),
    [
        ("replay", True),
        ("REPLAY", True),
        ("state", False),
        ("replay and rl", True),
        ("replay and state", False),
        ("replay or state", True),
        ("not replay", False),
        ("not (state or sac) and test_", True),
        ("replay and", False),  # pytest says what is wrong
        ("(", False),
    ],
)
def test_words_combine_as_pytests_do(expression: str, is_meant: bool) -> None:
    assert cmake.matches(expression, "lib/rl/test_Replay.cpp") is is_meant


def test_tests_that_an_expression_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TREE, "root", tmp_path)
    for name, line in (
        ("lib/nn/test_b.cpp", "// Test: -O1 more"),
        ("lib/test_a.cpp", "// Test: moreover"),
        ("lib/test_f.cpp", "// Test: more-as-firmware"),
        ("firmware/test_c.cpp", "// more"),
        ("integrations/test_d.cpp", ""),
        ("host/test_e.cpp", ""),  # mirrors no C++
        ("lib/other.cpp", ""),
    ):
        file = tmp_path / "tests" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{line}\n// Test: more\n")
    both = ["test_f", "test_f_all"]
    assert cmake.tests_named("test_") == [
        "test_b",
        "test_b_all",
        "test_a",
        *both,
        "test_c",
        "test_d",
    ]
    assert cmake.tests_named("lib and not nn") == ["test_a", *both]


def test_what_tests_took_since_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of `times`: of the processes that it waited for, user and system."""
    monkeypatch.setattr(cmake, "tests_directory", lambda: tmp_path)
    assert cmake.processor_s_of_tests(0.0) == {}
    (tmp_path / "measured").mkdir()
    for name, last, at in (
        ("test_a.compile.1", "2m1.5s 0m0.25s", 100.0),
        ("test_a.run.2", "0m3s 0m0s", 101.0),
        ("test_b.run.3", "0m1s 1m0s", 200.0),
        ("test_c.run.4", "0m9s 0m9s", 99.9),
    ):
        file = tmp_path / "measured" / name
        file.write_text(f"7m0s 7m0s\n{last}\n")
        os.utime(file, (at, at))
    assert cmake.processor_s_of_tests(100.0) == {"test_a": 121.75 + 3.0, "test_b": 61.0}


@pytest.mark.parametrize(("missing", "openblas"), [([], "ON"), (["openblas"], "OFF")])
def test_how_tests_are_built(
    missing: list[str], openblas: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    monkeypatch.setattr(cmake.tools, "require", done.append)
    monkeypatch.setattr(
        cmake.tools, "missing_names", lambda names: [n for n in names if n in missing]
    )
    monkeypatch.setattr(cmake, "tests_directory", lambda: tmp_path)
    monkeypatch.setattr(cmake, "build_targets", lambda *given, **named: done.append((given, named)))
    cmake.build_tests(["test_a"])
    required, ((board, targets), named) = done
    assert (required, board.name, targets) == ("doctest", "host", ["test_a"])
    assert named["directory"] == tmp_path
    assert named["options"] == {"RLT_TESTS": "ON", "RLT_OPENBLAS": openblas}
    assert named["niceness"] == 10


def test_how_tests_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cmake.tools, "program", lambda name: f"/opt/{name}/bin/{name}")
    monkeypatch.setattr(cmake, "tests_directory", lambda: tmp_path)
    for count, jobs in ((8, "-j8"), (None, "-j1")):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert cmake.ctest_command(tmp_path / "x.xml", ["-R", "a"]) == [
            *("/opt/cmake/bin/ctest", "--test-dir", str(tmp_path), "--output-on-failure"),
            *("--output-junit", str(tmp_path / "x.xml"), jobs, "-R", "a"),
        ]
