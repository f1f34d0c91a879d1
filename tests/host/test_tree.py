"""Command lines that the user is told to type start this tree's launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rltools_host import tree as tree_module
from rltools_host.commands.demo import own_project
from rltools_host.errors import UsageError
from rltools_host.tree import TREE, VARIABLE


def test_launcher_says_how_it_was_called(tmp_path: Path) -> None:
    """Through the real launcher: by a relative place, and by its name on the PATH."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "host/requirements").mkdir(parents=True)
    (tmp_path / "host/requirements/lock.txt").touch()
    (tmp_path / ".venv/rlt-lock.txt").touch()
    python = tmp_path / ".venv/bin/python"
    python.write_text('#!/bin/sh\necho "$RLT_COMMAND"\n')
    python.chmod(0o755)
    shutil.copy(TREE.root / "rlt", tmp_path / "rlt")
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for command, expected in (("./rlt", "./rlt"), ("rlt", str(tmp_path / "rlt"))):
        result = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert result.stdout == f"{expected}\n", result.stderr


@pytest.mark.parametrize("name", [b"r\xe9", b"two\nlines", b"it's \\ a\tb", b"a b$c"])
def test_a_printed_word_can_be_typed(name: bytes) -> None:
    """In one line, with the bytes of the name."""
    word = tree_module.quoted(os.fsdecode(name))
    assert word.isprintable()
    shell = shutil.which("bash")
    assert shell is not None
    said = subprocess.run([shell, "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert said.stdout == name


def test_a_wheels_script_is_named_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`venv/bin/rlt new --project P` prints what to type in P."""
    monkeypatch.delenv("RLT_COMMAND", raising=False)
    monkeypatch.setattr(tree_module, "TREE", tree_module.Tree(tree_module.INSTALLED))
    monkeypatch.setattr("sys.argv", ["venv/bin/rlt"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tree_module, "SCRIPT", tree_module.called_script())
    assert tree_module.command_line("test") == "venv/bin/rlt test"
    (tmp_path / "project").mkdir()
    monkeypatch.chdir("project")
    assert tree_module.command_line("test") == f"{tmp_path}/venv/bin/rlt test"


BUILDABLE = "a'b c(d)e&f,g=h#i%j~k!l*m?n@o:p`q-é"  # each was built in, on 2026-11-29


def test_a_path_that_compilers_cannot_take_is_refused_by_name() -> None:
    tree_module.require_buildable(Path("/home") / BUILDABLE)
    for character in '"$;<>[]\\|\n\t\udce9':
        with pytest.raises(UsageError) as refused:
            tree_module.require_buildable(Path(f"/home/semi{character}colon"))
        said = str(refused.value)
        assert "semi" in said
        assert said.isprintable()


def test_what_is_installed_is_listed_and_shown_outside_of_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a wheel, whose tree is no project: a demo makes one of its own."""
    monkeypatch.setattr(tree_module, "TREE", tree_module.Tree(tmp_path / "installed"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert not tree_module.in_project()
    assert own_project() == Path("rlt-demo")
    assert tree_module.in_project()
    assert Path.cwd() == tmp_path / "rlt-demo"
