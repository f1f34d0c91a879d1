"""The cells of tutorials: a command line, and a C++ program; each ends the cell where it fails."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.documentation import cells
from rltools_host.toolchain import tools
from rltools_host.toolchain.description import COMPILER_CACHE
from rltools_host.tree import PROJECT, TREE

PROGRAM = '#include <cstdio>\nint main() { std::puts("hello"); return RESULT; }\n'


def test_a_command_is_run_and_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert cells.run_rlt("runs --help  # a comment") is None
    assert "--sort" in capfd.readouterr().out


def test_the_last_line_of_json_is_the_value(capfd: pytest.CaptureFixture[str]) -> None:
    value = cells.run_rlt("boards --json")
    assert "host" in str(value)
    assert not capfd.readouterr().out.rstrip().endswith("}")


def test_a_command_that_fails_ends_the_cell() -> None:
    with pytest.raises(cells.CellError, match="rlt trian ended with exit code 2"):
        cells.run_rlt("trian")


def test_what_must_fail_must_fail_with_its_sentence() -> None:
    cells.run_rlt('--fails "did you mean" train pendulum-td4 --board host')
    with pytest.raises(cells.CellError, match="should have failed"):
        cells.run_rlt('--fails "another sentence" train pendulum-td4 --board host')
    with pytest.raises(cells.CellError, match="should have failed"):
        cells.run_rlt('--fails "Usage" runs --help')


def test_places_of_this_machine_are_not_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Those of the tree, of the project, and of the folder in which a program is compiled."""
    places = [TREE.root / "docs" / "a.md", PROJECT.root / "runs" / "b", tmp_path / "cell.cpp"]
    said = "".join(f"{place} and {place}\n" for place in places)
    cells.printed([sys.executable, "-c", f"print({said!r}, end='')"], tmp_path)
    shown = [f"{name} and {name}" for name in ("docs/a.md", "runs/b", "cell.cpp")]
    assert capfd.readouterr().out.splitlines() == shown


def test_a_program_is_compiled_and_run(capfd: pytest.CaptureFixture[str]) -> None:
    cells.run_cpp("-DRESULT=0", PROGRAM)
    assert capfd.readouterr().out == "hello\n"
    with pytest.raises(cells.CellError, match="the program ended with exit code 3"):
        cells.run_cpp("-DRESULT=3", PROGRAM)


def test_ccache_has_a_cell_that_was_compiled_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(COMPILER_CACHE) is None:
        pytest.skip("not installed (rlt doctor): ccache")
    log = tmp_path / "log"
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CCACHE_STATSLOG", str(log))
    for result in (0, 0, 1):
        with contextlib.suppress(cells.CellError):
            cells.run_cpp(f"-DRESULT={result}", PROGRAM)
    found = re.findall("^(direct_cache_hit|cache_miss)$", log.read_text(), re.MULTILINE)
    assert found == ["cache_miss", "direct_cache_hit", "cache_miss"]
    assert capfd.readouterr().out == "hello\n" * 3


def test_without_a_system_compiler_it_is_zigs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of the tutorials compiles with it and prints the same (tried by hand)."""
    if not tools.group_is_installed("zig"):
        pytest.skip("not installed (rlt doctor): Python: zig")
    monkeypatch.setenv("RLT_CXX", "zig")
    called: list[str] = []

    def note(command: list[str], _: Path) -> tuple[int, list[str]]:
        called.extend(command)
        return 1, []

    monkeypatch.setattr(cells, "printed", note)
    cells.compiled(PROGRAM, [], Path("cell"))
    assert any(word.endswith("/zig-c++") for word in called)


def test_a_program_that_must_not_compile(capfd: pytest.CaptureFixture[str]) -> None:
    cells.run_cpp('--fails "RESULT"', PROGRAM)
    assert "cell.cpp:2" in capfd.readouterr().out
    with pytest.raises(cells.CellError, match="should have failed"):
        cells.run_cpp('-DRESULT=0 --fails "RESULT"', PROGRAM)
    with pytest.raises(cells.CellError, match="the compiler ended"):
        cells.run_cpp("", PROGRAM)


def test_a_cell_error_is_one_line() -> None:
    assert cells.CellError("a sentence")._render_traceback_() == ["error: a sentence"]


@pytest.mark.parametrize(
    ("hide_last", "code", "shown"),
    [
        (False, 0, "one\ntwo\nthree\n"),
        (True, 0, "one\ntwo\n"),
        (True, 4, "one\ntwo\nthree\n"),  # an error has no value
    ],
)
def test_the_line_with_the_value_is_hidden(
    hide_last: bool, code: int, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    program = f"printf 'one\\ntwo\\n'; echo three >&2; exit {code}"
    found = cells.printed(["sh", "-c", program], hide_last=hide_last)
    assert found == (code, ["one\n", "two\n", "three\n"])
    assert capfd.readouterr().out == shown


def test_a_notebook_is_prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done: list[tuple[Any, ...]] = []
    shell = SimpleNamespace(
        register_magic_function=lambda *given: done.append(given),
        run_line_magic=lambda *given: done.append(given),
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLT_COMMAND", "elsewhere/rlt")
    monkeypatch.setenv("PATH", "/usr/bin")
    cells.load_ipython_extension(shell)
    assert Path.cwd() == PROJECT.root
    assert "RLT_COMMAND" not in os.environ
    assert os.environ["PATH"] == f"{TREE.root}:/usr/bin"
    assert done == [
        (cells.run_rlt, "line", "rlt"),
        (cells.run_cpp, "cell", "cpp"),
        ("config", "InlineBackend.figure_formats = ['svg']"),
    ]
