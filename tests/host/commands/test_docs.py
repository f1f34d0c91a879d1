"""The documentation: Sphinx builds it without a warning, and every tutorial runs as it stands."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rltools_host.tree import PROJECT, TREE


@pytest.mark.all
@pytest.mark.timeout(1500)  # all tutorials, where the processors are shared
def test_the_documentation_is_built_and_its_tutorials_run() -> None:
    subprocess.run(
        [sys.executable, "-m", "rltools_host", "docs", "--execute"], check=True, cwd=TREE.root
    )
    pages = PROJECT.build / "docs" / "html" / "docs" / "tutorials"
    for tutorial in sorted((TREE.root / "docs" / "tutorials").glob("*.md")):
        text = (pages / f"{tutorial.stem}.html").read_text(encoding="utf-8")
        assert ("cell_output" in text) == (tutorial.stem != "index"), tutorial
    first = (pages / "first_policy.html").read_text(encoding="utf-8")
    assert "cb477b641fdc5db74abfdc2ec59bfb24e667cdc3f7451f199255d22773aea9dc" in first
