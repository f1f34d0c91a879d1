"""What Sphinx is taught: links to the tree's files, whose text is a page, and formulas as MathML,
which browsers show without a script or a font from elsewhere.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

from rltools_host.documentation.site import SCHEME, SOURCES
from rltools_host.files import read_json
from rltools_host.tree import TREE

FOLDER = "tree"  # of the pages with sources
LEXERS = {".h": "c++", ".cpp": "c++", ".py": "python", ".json": "json", ".sh": "sh"}
MOST_BYTES = 200_000  # of a file that is shown


def setup(app: Any) -> dict[str, Any]:
    app.connect("doctree-resolved", resolve)
    app.connect("html-collect-pages", source_pages)
    app.connect("html-page-context", shared_side_bars(), priority=400)  # the theme's has 500
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def resolve(app: Any, doctree: nodes.document, docname: str) -> None:
    for node in doctree.findall(nodes.reference):
        if (uri := node.get("refuri", "")).startswith(SCHEME):
            page = f"{FOLDER}/{uri.removeprefix(SCHEME)}"
            node["refuri"] = app.builder.get_relative_uri(docname, page)


def source_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file and folder that documents link to, and for the files of a folder."""
    linked = read_json(Path(app.srcdir) / SOURCES)
    paths = {TREE.root / name for name in linked}
    folders = {path for path in paths if path.is_dir()}
    files = (paths - folders) | {file for folder in folders for file in shown_files(folder)}
    for folder in sorted(folders):
        entries = [entry for entry in sorted(folder.iterdir()) if entry in files | folders]
        rows = "".join(
            f'<li><a href="{html.escape(f"{folder.name}/{entry.name}.html")}">'
            f"<code>{html.escape(entry.name)}</code></a></li>"
            for entry in entries
        )
        yield page(folder, f"<ul>{rows}</ul>")
    for file in sorted(files):
        text = file.read_text(encoding="utf-8", errors="replace")
        lexer = LEXERS.get(file.suffix, "text")
        yield page(file, app.builder.highlighter.highlight_block(text, lexer))


def shared_side_bars() -> Callable[..., None]:
    """One for the pages with sources of each depth: its links are relative and lead to documents
    alone. To make one takes longer than the rest of such a page."""
    known: dict[tuple[int, str], str] = {}

    def share(_app: Any, name: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
        make, depth = context["toctree"], name.count("/")

        def made(**options: Any) -> str:
            key = (depth, repr(options))
            if key not in known:
                known[key] = make(**options)
            return known[key]

        if name.startswith(f"{FOLDER}/"):
            context["toctree"] = made

    return share


def shown_files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_size < MOST_BYTES and path.suffix != ".md":
            yield path


def page(path: Path, body: str) -> tuple[str, dict[str, Any], str]:
    name = str(path.relative_to(TREE.root))
    title = html.escape(name)
    context = {"title": title, "body": f"<h1><code>{title}</code></h1>{body}", "parents": []}
    return f"{FOLDER}/{name}", context, "page.html"


def visit_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode
