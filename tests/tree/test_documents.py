"""Every link between documents leads somewhere: to a file, and to a heading of it; so does every
section that a source file names, and every source or test that a document names."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

from rltools_host.tree import TREE

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# `runs/folder.py` or `test_replay.cpp`, as a document names a file of the tree.
NAMED = re.compile(r"`((?:[a-z0-9_]+/)+[a-z0-9_]+\.(?:py|cpp)|test_[a-z0-9_]+\.(?:py|cpp))`")
SECTION = re.compile(r'docs/(\w+\.md)(?:, | \()"([^"]+)"')


def tracked(word: str, *patterns: str) -> list[Path]:
    """The files in which the word is."""
    command = ["git", "-C", str(TREE.root), "grep", "-lzF", "-e", word, "--", *patterns]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [TREE.root / name for name in output.split("\0") if name]


@cache
def headings(document: Path) -> list[str]:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    return [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]


def anchor(heading: str) -> str:
    """As GitHub makes one of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def fault(document: Path, link: str) -> str:
    name, _, section = link.partition("#")
    target = (document.parent / name).resolve() if name else document
    if not target.exists():
        return f"{document}: there is no {link}"
    if section and section not in map(anchor, headings(target)):
        return f"{document}: {target.name} has no section #{section}"
    return ""


def test_links_lead_somewhere() -> None:
    faults = []
    for document in tracked("](", "*.md"):
        text = FENCE.sub("", document.read_text(encoding="utf-8"))
        links = [link for link in LINK.findall(text) if not re.match(r"\w+:", link)]
        faults += [reason for link in links if (reason := fault(document, link))]
    assert not faults, "\n".join(faults)


def test_sections_that_sources_name_are_there() -> None:
    faults = []
    for source in tracked("docs/", "*.h", "*.cpp", "*.py"):
        text = re.sub(r"\s+(?://|#)?\s*", " ", source.read_text(encoding="utf-8"))
        for name, section in SECTION.findall(text):
            found = headings(TREE.root / "docs" / name)
            if not any(heading.startswith(section) for heading in found):
                faults.append(f"{source}: docs/{name} has no section {section!r}")
    assert not faults, "\n".join(faults)


def test_files_that_documents_name_are_there() -> None:
    listed = subprocess.run(
        ["git", "-C", str(TREE.root), "ls-files"], check=True, capture_output=True, text=True
    ).stdout
    paths = "/" + listed.replace("\n", "\n/")
    faults = [
        f"{document}: no file {name}"
        for document in tracked("`", "docs/*.md", "README.md", "CONTRIBUTING.md")
        for name in NAMED.findall(document.read_text(encoding="utf-8"))
        if f"/{name}\n" not in paths
    ]
    assert not faults, "\n".join(faults)


def test_a_notebook_states_its_language() -> None:
    """Without it `rlt docs`, which executes nothing, ends with a warning for each cell: a fault."""
    notebooks = [
        path
        for path in sorted((TREE.root / "docs").rglob("*.md"))
        if "file_format: mystnb" in path.read_text(encoding="utf-8")
    ]
    assert notebooks
    for path in notebooks:
        front = path.read_text(encoding="utf-8").split("---\n")[1]
        assert "\n  language: ipython3\n" in front, path
