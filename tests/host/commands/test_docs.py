"""The documentation: Sphinx builds it without a warning, and tutorials run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rltools_host.build import tools
from rltools_host.commands import docs
from rltools_host.tree import PROJECT, TREE

TUTORIALS = sorted(path.stem for path in (TREE.root / "docs" / "tutorials").glob("*.md"))
# How each kind of cell is executed: a command, Python, C++ that compiles, and C++ that must not.
# The others train for minutes. Their commands: tests/host/test_documented_commands.py.
OF_EACH_KIND = ("containers", "first_policy")
SPHINX = """#!/bin/sh
echo "$@" > {words}
for share in 50 100; do echo "reading sources... [ $share%] docs/a"; done
echo "writing output... [ 50%] docs/a"
"""


def test_it_says_how_far_it_is_and_executes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was silent for minutes. The program in Sphinx's place prints the lines that tell it."""
    sphinx, words = tmp_path / "sphinx", tmp_path / "words"
    sphinx.write_text(SPHINX.format(words=words))
    sphinx.chmod(0o755)
    monkeypatch.setattr(tools, "ensure_group", lambda _: None)
    monkeypatch.setattr(sys, "executable", str(sphinx))
    docs.write_pages(executes=False)
    *_, reading, writing = capsys.readouterr().err.splitlines()
    assert (reading, writing) == ("reading sources", "writing output")
    assert "nb_execution_mode=off" in words.read_text()


@pytest.mark.all
@pytest.mark.timeout(1500)  # where the processors are shared
@pytest.mark.parametrize(
    "executed",
    [OF_EACH_KIND, pytest.param(TUTORIALS, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_the_documentation_is_built_and_its_tutorials_run(executed: Sequence[str]) -> None:
    others = " ".join(f"{name}.md" for name in TUTORIALS if name not in executed)
    subprocess.run(
        [sys.executable, "-m", "rltools_host", "docs", "--execute"],
        check=True,
        cwd=TREE.root,
        env={**os.environ, "RLT_NOT_EXECUTED": others},
    )
    pages = PROJECT.build / "docs" / "html" / "docs" / "tutorials"
    for name in TUTORIALS:
        text = (pages / f"{name}.html").read_text(encoding="utf-8")
        assert ("cell_output" in text) == (name in executed and name != "index"), name
    first = (pages / "first_policy.html").read_text(encoding="utf-8")
    assert "cb477b641fdc5db74abfdc2ec59bfb24e667cdc3f7451f199255d22773aea9dc" in first
