"""What only one system has is named in host/rltools_host/system/ alone."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rltools_host.tree import TREE

MODULES = {
    *("_winapi", "fcntl", "grp", "msvcrt", "pty", "pwd", "resource", "select", "selectors"),
    *("termios", "tty"),
}
ATTRIBUTES = {
    *("AF_UNIX", "SO_PEERCRED", "WinDLL", "fork", "getegid", "geteuid", "getgid", "getpgid"),
    *("getpgrp", "getsid", "getuid", "killpg", "memfd_create", "mkfifo", "openpty", "pipe2"),
    *("posix_fallocate", "setitimer", "setsid", "sigtimedwait", "sysconf", "waitid", "windll"),
    *("O_BINARY", "O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK"),
}
ARGUMENTS = {"creationflags", "dir_fd", "pass_fds", "preexec_fn", "process_group", "umask"}
SIGNALS = {"SIGINT", "SIGTERM"}


def named(source: str) -> Iterator[str]:
    """The names in a source that only one system has."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield node.module
        elif isinstance(node, ast.Attribute):
            of_signals = isinstance(node.value, ast.Name) and node.value.id == "signal"
            is_signal = of_signals and re.match("SIG(?!_)", node.attr)
            is_other = is_signal and node.attr not in SIGNALS
            if is_other or node.attr in ATTRIBUTES or node.attr.startswith("sched_"):
                yield node.attr
        elif isinstance(node, ast.keyword) and node.arg in ARGUMENTS:
            yield node.arg
        elif isinstance(node, ast.Constant) and str(node.value).startswith("/proc"):
            yield "/proc"


def test_only_system_names_what_one_system_has() -> None:
    root = TREE.file("host/rltools_host")
    found = {}
    for path in root.rglob("*.py"):
        name = str(path.relative_to(root))
        if not name.startswith("system/") and (names := set(named(path.read_text()))):
            found[name] = names
    assert found == {}


@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize("system", ["win32", pytest.param("darwin", marks=pytest.mark.slow)])
def test_types_of_other_systems_have_all_that_is_named(system: str) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--platform", system]
    command += ["--cache-dir", f"build/mypy-{system}", "-p", "rltools_host", "-p", "rlt"]
    said = subprocess.run(command, cwd=TREE.root, capture_output=True, text=True).stdout
    assert not said
