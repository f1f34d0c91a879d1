"""What is said before something is fetched, and the one question about it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rltools_host.build.toolchains import GROUPS
from rltools_host.tree import TREE
from tree_copies import copy_of_tree

SET_UP = "host/rltools_host/build/set_up.py"


def answered(tree: Path, answer: bytes, *words: str, **environment: str) -> tuple[int, str]:
    """The set-up on a terminal where somebody types this: its exit code and what it showed."""
    ours, its = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name not in ("CI", "RLT_YES")}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(tree / SET_UP), *words],
        env={**plain, **environment},
        stdin=its,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    threading.Timer(0.0, os.write, (ours, answer)).start()
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # it has ended
        pass
    os.close(ours)
    return process.wait(60), shown.decode()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Whose set-up fails at its first step, as nothing may be written beside it."""
    tree = copy_of_tree(tmp_path / "tree", "rlt", "host")
    (tree / "host/rltools_host/build/tools.py").write_text(
        "from pathlib import Path\n"
        "from rltools_host.errors import MissingToolError\n"
        "def environment_python():\n"
        "    return Path(__file__).parent / 'python'\n"
        "def set_up():\n"
        "    raise MissingToolError('it began')\n"
    )
    return tree


def test_one_question_is_about_everything(tree: Path) -> None:
    code, shown = answered(tree, b"\n")
    assert code == 3
    assert "it began" in shown
    assert shown.count("[Y/n]") == 1
    assert f"Python packages, {GROUPS['default'].megabytes} MB to fetch" in shown
    assert "mujoco 51 MB" in shown
    assert "apt-get" in shown


@pytest.mark.parametrize("answer", [b"n\n", b"\x04"])
def test_without_a_yes_nothing_is_installed(tree: Path, answer: bytes) -> None:
    code, shown = answered(tree, answer)
    assert (code, "it began" in shown) == (1, False)
    assert "nothing was installed" in shown


def test_nobody_is_asked_twice_or_in_vain(tree: Path) -> None:
    for words, environment in (
        (("--yes", "demo"), {}),
        ((), {"RLT_YES": "1"}),
        ((), {"CI": "true"}),
    ):
        code, shown = answered(tree, b"", *words, **environment)
        assert (code, "it began" in shown, "[Y/n]" in shown) == (3, True, False)
    (tree / "host/rltools_host/build/python").touch()  # .venv is there
    assert "[Y/n]" not in answered(tree, b"")[1]
    command = [sys.executable, "-I", "-S", str(tree / SET_UP)]
    script = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert script.stderr == "error: it began\n"


def test_the_launcher_hands_the_answer_on() -> None:
    result = subprocess.run([TREE.root / "rlt", "--yes", "--version"], capture_output=True)
    assert result.returncode == 0
