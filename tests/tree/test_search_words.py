"""What users type into the search of the built site leads to a guide, and guides come before the
pages of the C++ API; the citation names this version."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib

import pytest

from rltools_host.tree import TREE

PAGES = {
    "serial port permission": "troubleshooting",
    "port busy": "troubleshooting",
    "modemmanager": "troubleshooting",
    "multi agent": "supported",
    "macos": "supported",
    "windows": "supported",
    "cite": "index",
    "vecnormalize": "coming_from",
    "what to buy": "first_hardware",
}

HEADINGS = {"windows": "supported", "macos": "supported", "not learning": "troubleshooting"}


@pytest.mark.parametrize(("words", "page"), HEADINGS.items())
def test_words_that_many_pages_have_are_in_a_heading(words: str, page: str) -> None:
    """Sphinx puts a page first whose headings have them: of `windows`, a fit's came first."""
    text = (TREE.root / "docs" / f"{page}.md").read_text(encoding="utf-8").lower()
    assert re.search(rf"^## .*\b{words}\b", text, re.MULTILINE)


@pytest.mark.parametrize(("words", "page"), PAGES.items())
def test_words_that_users_type_are_in_the_page_for_them(words: str, page: str) -> None:
    """Sphinx lists a page that has all of the words."""
    text = (TREE.root / "docs" / f"{page}.md").read_text(encoding="utf-8").lower()
    assert {*words.split()} <= {*re.findall(r"\w+", text)}


def test_pages_of_the_core_come_after_guides() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    scorer = (TREE.root / "docs/static/scorer.js").read_text(encoding="utf-8")
    rows = [["docs/core/rl", "rl", "", None, 40], ["docs/troubleshooting", "", "", None, 2]]
    program = f"{scorer}; console.log(JSON.stringify({json.dumps(rows)}.map(Scorer.score)))"
    core, guide = json.loads(subprocess.check_output([node, "-e", program]))
    assert core < guide == 2


def test_the_citation_names_this_version() -> None:
    about = tomllib.loads((TREE.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (TREE.root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {about['version']}\n" in citation
