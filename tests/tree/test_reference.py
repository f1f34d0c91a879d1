"""docs/reference says what the lists, the commands and the documentation of `rlt` say now."""

from __future__ import annotations

import runpy
import shutil

import pytest

from rltools_host.tree import TREE

WRITER = TREE.root / "docs" / "reference" / "write.py"
PAGES = runpy.run_path(str(WRITER))["PAGES"]


@pytest.mark.parametrize("name", PAGES)
def test_page_is_not_stale(name: str) -> None:
    if name not in ("commands.md", "python.md") and not shutil.which("c++"):
        pytest.skip("no c++")
    page = (WRITER.parent / name).read_text(encoding="utf-8")
    assert page == PAGES[name](), "run .venv/bin/python docs/reference/write.py"
