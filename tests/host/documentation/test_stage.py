"""What Sphinx is given: links of documents, the side bar, and what pages name of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rltools_host.documentation import site
from rltools_host.errors import UsageError
from rltools_host.tree import TREE

TUTORIALS = TREE.root / "docs" / "tutorials"
PAGE = "docs/page.md"
FUNCTION = re.compile(r"`(\w+)\(\)`")
LINK = re.compile(r"\]\(([^)]+)\)")


def marked(text: str) -> tuple[str, set[str]]:
    return site.with_marked_links(PAGE, text, {PAGE, "README.md"})


@pytest.mark.parametrize(
    "text",
    ["[a](../README.md#b)", "[a](https://a.b)", "[a](#b)", "![a](images/web.webp)"],
)
def test_links_between_documents_stay(text: str) -> None:
    assert marked(text) == (text, set())


def test_links_to_sources_are_marked_and_code_is_not() -> None:
    text = "[a](../boards/host.json)\n\n```\n[a](../boards/host.json)\n```\n[b](../experiments)\n"
    result, found = marked(text)
    assert result == text.replace("](../b", "](tree:b", 1).replace("../exp", "tree:exp")
    assert found == {"boards/host.json", "experiments"}


@pytest.mark.parametrize("link", ["../nothing.h", "../../etc/passwd", "../boards/host.json#a"])
def test_a_link_that_leads_nowhere_is_named(link: str) -> None:
    with pytest.raises(UsageError, match=re.escape(link)):
        marked(f"[a]({link})")


def test_every_document_is_in_the_side_bar() -> None:
    entries = [site.place_of(entry) for names in site.SECTIONS.values() for entry in names]
    listed = {entry.removeprefix("Overview <").strip("/>") for entry in entries}
    below = {f"docs/tutorials/{name}" for name in tutorials()}
    known = {name.removesuffix(".md") for name in site.documents()}
    assert known == listed | below | {site.ROOT}


def test_side_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pages that were written the first one stands last in the reference: it lists them."""
    sections = {"Begin": ("README", "many_runs"), "Reference": ("examples/python/README",)}
    monkeypatch.setattr(site, "SECTIONS", sections)
    begin = ["", "```{toctree}", ":hidden:", ":caption: Begin", "", "Overview </README>"]
    begin += ["/docs/many_runs", "```"]
    reference = [
        "",
        "```{toctree}",
        ":hidden:",
        ":caption: Reference",
        "",
        "/examples/python/README",
    ]
    for pages, listed in (
        ((), []),
        (("docs/core/index.md", "docs/core/nn.md"), ["/docs/core/index"]),
    ):
        assert site.side_bar(pages).split("\n") == [*begin, *reference, *listed, "```", ""]


def test_the_stage_keeps_times_and_loses_what_is_gone(tmp_path: Path) -> None:
    site.write_stage(tmp_path)
    page, gone = tmp_path / "README.md", tmp_path / "docs" / "gone.md"
    gone.write_text("# Gone\n")
    before = page.stat().st_mtime_ns
    site.write_stage(tmp_path)
    assert page.stat().st_mtime_ns == before
    assert not gone.exists()
    for name in json.loads((tmp_path / site.SOURCES).read_text()):
        assert (TREE.root / name).exists()
    for name in (site.CONFIGURATION, "docs/images/web.webp"):
        source = TREE.root / ("docs" if name == site.CONFIGURATION else "") / name
        assert (tmp_path / name).read_bytes() == source.read_bytes()


def test_pages_that_were_written_stay_and_are_linked(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "core" / "index.md"
    page.parent.mkdir(parents=True)
    page.write_text("[a](tree:lib/rltools)\n")
    ends = {"docs/design.md": "\nThe end.\n"}
    site.write_stage(tmp_path, ["docs/core/index.md"], ends)
    assert page.read_text() == "[a](tree:lib/rltools)\n"
    assert "lib/rltools" in json.loads((tmp_path / site.SOURCES).read_text())
    assert (tmp_path / "docs/design.md").read_text().endswith("\n\nThe end.\n")
    root = (tmp_path / f"{site.ROOT}.md").read_text()
    assert root.endswith(site.side_bar(["docs/core/index.md"]))


def tutorials() -> list[str]:
    return sorted(path.stem for path in TUTORIALS.glob("*.md") if path.stem != "index")


def test_tutorials_are_notebooks_that_the_index_lists() -> None:
    index = (TUTORIALS / "index.md").read_text(encoding="utf-8")
    rows, _, contents = index.partition("```{toctree}")
    assert len(tutorials()) >= 12
    for name in tutorials():
        text = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
        assert text.startswith("---\nfile_format: mystnb\n"), name
        assert "%load_ext rlt" in text, name
        assert f"({name}.md)" in rows, name
        assert f"\n{name}\n" in contents, name


@pytest.mark.parametrize("algorithm", ["td3", "sac", "ppo", "dqn"])
def test_functions_stand_where_an_algorithms_page_says(algorithm: str) -> None:
    page = TREE.root / "docs" / "algorithms" / f"{algorithm}.md"
    headers = ""
    for row in page.read_text(encoding="utf-8").splitlines():
        if row.startswith("|") and (functions := FUNCTION.findall(row)):
            links = [link for link in LINK.findall(row) if link.endswith(".h")]
            if links:  # "the same" are those of the row above
                headers = "".join((page.parent / link).read_text() for link in links)
            for name in functions:
                assert re.search(rf"\b{name}\(", headers), f"{page.name}: {name}()"
