"""What CMake and Ninja are told, and what of their output is shown."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.errors import BuildError
from rltools_host.tree import PROJECT, TREE

OUTPUT = """[1/9] Building CXX object a.o
FAILED: a.o
g++ -c a.cpp -o a.o
a.cpp:1:2: error: no
[2/9] Linking CXX executable b
 note: [3/9] is no progress here
ninja: build stopped: subcommand failed.
"""


def test_what_compilers_said_is_shown_without_the_rest() -> None:
    assert cmake.messages(OUTPUT) == [
        "FAILED: a.o",
        "a.cpp:1:2: error: no",
        " note: [3/9] is no progress here",
    ]


def test_a_failed_build_is_one_sentence_and_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    error = cmake.fail("building", OUTPUT, log)
    assert isinstance(error, BuildError)
    assert str(error).startswith("building failed: ")
    assert "a.cpp:1: no; commands and errors are in " in str(error)
    assert capsys.readouterr().err == "\n".join(cmake.messages(OUTPUT)) + "\n"
    assert log.read_text() == OUTPUT
    unknown = str(cmake.fail("building", "what\n", log))
    assert unknown.startswith("building failed: correct the errors above; ")


@pytest.mark.parametrize(
    ("cache", "is_configured"),
    [
        ("{places}RLT_BOARD:STRING=host\n", True),
        ("{places}RLT_BOARD:STRING=hosts\n", False),
        ("{places}//RLT_BOARD:STRING=host\n", False),
        ("{places}", False),
        ("RLT_BOARD:STRING=host\n", False),
        (None, False),
    ],
)
def test_a_tree_is_configured_by_what_its_cache_says(
    cache: str | None, is_configured: bool, tmp_path: Path
) -> None:
    places = f"CMAKE_HOME_DIRECTORY:INTERNAL={TREE.root}\nCMAKE_CACHEFILE_DIR:INTERNAL={tmp_path}\n"
    if cache is not None:
        (tmp_path / "CMakeCache.txt").write_text(cache.format(places=places))
    definitions = {"RLT_BOARD": "host"}
    assert not cmake.is_configured(tmp_path, TREE.root, definitions)  # without Ninja's file
    (tmp_path / "build.ninja").touch()
    assert cmake.is_configured(tmp_path, TREE.root, definitions) is is_configured
    assert not cmake.is_configured(tmp_path, tmp_path / cmake.LINK, definitions)


def test_a_build_tree_of_another_checkout_is_built_anew(tmp_path: Path) -> None:
    link, log = tmp_path / cmake.LINK, tmp_path / ".ninja_log"
    link.symlink_to(tmp_path / "moved away")
    for is_new in (True, False):
        log.touch()
        assert cmake.link_tree(tmp_path) == link
        assert link.readlink() == TREE.root
        assert log.exists() is not is_new


def test_a_file_system_without_links_has_the_tree_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    log = tmp_path / ".ninja_log"
    log.touch()
    monkeypatch.setattr(Path, "symlink_to", refuse)
    assert cmake.link_tree(tmp_path) == TREE.root
    assert log.exists(), "else all would be compiled in each build"


@pytest.mark.all
def test_ccache_has_what_another_project_has_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("ccache") is None:
        pytest.skip("not installed (rlt doctor): ccache")
    log = tmp_path / "log"
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CCACHE_STATSLOG", str(log))
    found = []
    for name in ("one", "elsewhere/another one"):
        header = tmp_path / name / "experiments" / "swing.h"
        header.parent.mkdir(parents=True)
        header.write_text(
            '#pragma once\n#include "pendulum_td3.h"\n'
            "namespace rlt {\nstruct Swing : PendulumTd3 {};\n}  // namespace rlt\n"
        )
        monkeypatch.setattr(PROJECT, "root", tmp_path / name)
        cmake.build_targets(load_board("host"), ["describe-swing"])
        found.append(re.findall("^(direct_cache_hit|cache_miss)$", log.read_text(), re.MULTILINE))
        log.unlink()
    assert found == [["cache_miss"], ["direct_cache_hit"]]


@pytest.mark.parametrize(
    ("compiler", "told"),
    [("g++", "p 1  "), ("there/zig-c++", "p 1 clang %compiler% --version")],
)
def test_zig_is_known_by_its_version_and_not_by_its_script(
    compiler: str, told: str, tmp_path: Path
) -> None:
    ccache = tmp_path / "ccache"
    names = ("BASEDIR", "NOHASHDIR", "COMPILERTYPE", "COMPILERCHECK")
    ccache.write_text(f'#!/bin/sh\necho "{" ".join(f"$CCACHE_{n}" for n in names)}: $*"\n')
    ccache.chmod(0o755)
    command = [TREE.toolchains / "cached", "p", ccache, compiler, "-c", "a.cpp"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == f"{told}: {compiler} -c a.cpp\n"


def board(**changes: Any) -> Any:
    toolchain: dict[str, Any] = {
        "native": False,
        "stand_in": "x",
        "cmake_toolchain_file": "toolchains/arm.cmake",
        "builder": "cmake",
        "tools": (SimpleNamespace(name="gcc"),),
    }
    emulator = SimpleNamespace(program="qemu")
    return SimpleNamespace(toolchain=SimpleNamespace(**(toolchain | changes)), emulator=emulator)


def test_toolchains() -> None:
    file = {"CMAKE_TOOLCHAIN_FILE": str(TREE.root / "toolchains/arm.cmake")}
    assert cmake.toolchain_options(board()) == file
    assert cmake.toolchain_options(board(native=True)) == {"RLT_STAND_IN": "x"}
    assert cmake.toolchain_options(board(cmake_toolchain_file=None)) == {}
    assert cmake.required_tools(board()) == ("gcc",)
    assert cmake.required_tools(board(), to_run=True)[:2] == ("gcc", "qemu")
    assert len(cmake.required_tools(board(), to_run=True)) == 3
    plain = board()
    plain.emulator = None
    assert cmake.required_tools(plain, to_run=True) == ("gcc",)
    assert cmake.firmware_target("cart-td3") == "train-cart-td3"
    assert cmake.firmware_target("cart", "infer") == "infer-cart"
