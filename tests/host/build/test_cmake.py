"""What CMake and Ninja are told, and what of their output is shown."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.tree import PROJECT, TREE
from waiting import wait_for


def test_a_build_tree_of_another_checkout_is_built_anew(tmp_path: Path) -> None:
    link, log = tmp_path / cmake.LINK, tmp_path / ".ninja_log"
    link.symlink_to(tmp_path / "moved away")
    for is_new in (True, False):
        log.touch()
        assert cmake.link_tree(tmp_path) == link
        assert link.readlink() == TREE.root
        assert log.exists() is not is_new


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
def test_ccache_knows_zig_by_its_version(compiler: str, told: str, tmp_path: Path) -> None:
    ccache = tmp_path / "ccache"
    names = ("BASEDIR", "NOHASHDIR", "COMPILERTYPE", "COMPILERCHECK")
    ccache.write_text(f'#!/bin/sh\necho "{" ".join(f"$CCACHE_{n}" for n in names)}: $*"\n')
    ccache.chmod(0o755)
    command = [TREE.toolchains / "cached", "p", ccache, compiler, "-c", "a.cpp"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == f"{told}: {compiler} -c a.cpp\n"


def test_an_interrupted_build_leaves_no_compiler_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is announced while the first command runs; a tuning's time may be over then."""
    slept = "1234.5678"  # nobody else's
    rule = f"rule sleep\n  command = sleep {slept}\n  description = Building x\n"
    (tmp_path / "build.ninja").write_text(f"{rule}build x: sleep\n")

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cmake, "announce", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cmake.run_ninja("building", tmp_path, ["x"], "Building")

    def is_running() -> bool:
        """Ninja signals its commands and ends before they have."""
        commands = []
        for command in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                commands.append(command.read_bytes())
        return any(slept.encode() in command for command in commands)

    wait_for(lambda: not is_running(), 20)


def test_who_waits_for_another_build_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(cmake, "aside", said.append)
    monkeypatch.setattr(cmake, "SILENT_WAIT_S", 0.0)
    with cmake.build_lock(tmp_path / "other"), cmake.build_lock(tmp_path / "own"):
        assert said == []  # another target
    entered: list[str] = []

    def wait() -> None:
        with cmake.build_lock(tmp_path / "own"):
            entered.append("own")

    with cmake.build_lock(tmp_path / "own"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_for(lambda: said, 20)
        assert entered == []
    waiting.join()
    assert entered == ["own"]
    assert [line.partition(" in ")[0] for line in said] == ["Waiting: another rlt builds"]
