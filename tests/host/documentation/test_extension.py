"""What Sphinx is taught: pages of the tree's files, links to them, side bars, formulas."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("docutils", reason="not installed (rlt doctor): Python: docs")
pytest.importorskip("latex2mathml", reason="not installed (rlt doctor): Python: docs")
from docutils import nodes

from rltools_host.documentation import site
from rltools_host.documentation.site import SCHEME, SOURCES


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with a folder and two files, of which documents link to the folder and one file."""
    root = tmp_path / "tree"
    (root / "lib" / "deep").mkdir(parents=True)
    for name, text in {
        "lib/a<b.h": "int a;",
        "lib/deep/own.py": "x = 1",
        "lib/readme.md": "not shown",
        "lib/large.json": "1" * 200_000,
        "top.sh": "exit",
        "other.txt": "not linked",
    }.items():
        (root / name).write_text(text)
    monkeypatch.setattr(site, "TREE", SimpleNamespace(root=root))
    (tmp_path / SOURCES).write_text(json.dumps(["lib", "top.sh"]))
    return root


def test_what_is_linked_to_has_a_page(tree: Path) -> None:
    """A folder's page leads to its files' pages, but for documents and what is too large."""
    shown: list[tuple[str, str]] = []
    highlighter = SimpleNamespace(
        highlight_block=lambda text, lexer: shown.append((text, lexer)) or f"[{text}]"
    )
    app = SimpleNamespace(srcdir=str(tree.parent), builder=SimpleNamespace(highlighter=highlighter))
    pages = {name: (context, template) for name, context, template in site.source_pages(app)}
    assert list(pages) == ["tree/lib", "tree/lib/a<b.h", "tree/top.sh"]
    assert shown == [("int a;", "c++"), ("exit", "sh")]
    context, template = pages["tree/lib"]
    assert template == "page.html"
    entry = '<li><a href="lib/a&lt;b.h.html"><code>a&lt;b.h</code></a></li>'
    assert context == {
        "title": "lib",
        "body": f"<h1><code>lib</code></h1><ul>{entry}</ul>",
        "parents": [],
    }
    context, _ = pages["tree/lib/a<b.h"]
    assert context["body"] == "<h1><code>lib/a&lt;b.h</code></h1>[int a;]"


def test_links_to_the_tree_lead_to_its_pages() -> None:
    tree_link, other = (nodes.reference(refuri=uri) for uri in (f"{SCHEME}lib/x.h", "https://b"))
    builder = SimpleNamespace(get_relative_uri=lambda document, page: f"{document} to {page}")
    document = SimpleNamespace(findall=lambda kind: [tree_link, other, kind()])
    site.resolve(SimpleNamespace(builder=builder), document, "guide")  # type: ignore[arg-type]
    assert (tree_link["refuri"], other["refuri"]) == ("guide to tree/lib/x.h", "https://b")


def test_pages_with_sources_of_one_depth_share_their_side_bar() -> None:
    made: list[dict[str, Any]] = []

    def make(**options: Any) -> str:
        made.append(options)
        return f"bar {len(made)}"

    share = site.shared_side_bars()

    def bar_of(name: str, **options: Any) -> str:
        context = {"toctree": make}
        share(None, name, "page.html", context, None)
        return context["toctree"](**options)

    assert [bar_of(name, depth=2) for name in ("tree/a/b", "tree/c/d", "tree/e")] == [
        *("bar 1", "bar 1", "bar 2")
    ]
    assert bar_of("tree/a/b", depth=3) == "bar 3"
    assert [bar_of("guide/a", depth=2) for _ in range(2)] == ["bar 4", "bar 5"]


def test_formulas_are_mathml() -> None:
    for visit, node, begin, end in (
        (site.visit_math, nodes.math(text="x^2"), "<math", "</math>"),
        (
            site.visit_math_block,
            nodes.math_block(text="x^2"),
            '<div class="math"><math',
            "/div>",
        ),
    ):
        body: list[str] = []
        node += nodes.Text("x^2")
        with pytest.raises(nodes.SkipNode):
            visit(SimpleNamespace(body=body), node)  # type: ignore[operator]
        (formula,) = body
        assert formula.startswith(begin)
        assert formula.endswith(end)
        assert ('display="block"' in formula) == (visit is site.visit_math_block)
        assert "<msup>" in formula


def test_sphinx_is_told_what_there_is() -> None:
    done: list[Any] = []
    app = SimpleNamespace(
        connect=lambda event, act, **more: done.append((event, act, more)),
        add_html_math_renderer=lambda name, *visits: done.append((name, *visits)),
    )
    assert site.setup(app) == {"parallel_read_safe": True, "parallel_write_safe": True}
    assert done[:2] == [
        ("doctree-resolved", site.resolve, {}),
        ("html-collect-pages", site.source_pages, {}),
    ]
    assert (done[2][0], done[2][2]) == ("html-page-context", {"priority": 400})
    assert done[3:] == [("mathml", (site.visit_math, None), (site.visit_math_block, None))]
