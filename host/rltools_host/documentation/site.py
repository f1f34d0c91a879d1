"""The documentation as a folder of pages: staged, built by Sphinx, which executes the tutorials,
and put in the place of an earlier one.

What Sphinx reads: the tree's documents as they are, with their links to other files marked.

A document links to sources and folders of the tree as a plain host of git shows them. Here such a
link becomes `tree:<path>`, of which this module, as an extension of Sphinx's, makes a page with
that file. Formulas become MathML, which browsers show without a script or a font from elsewhere.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rltools_host.build import cmake
from rltools_host.documentation import core_api
from rltools_host.errors import BuildError, UsageError
from rltools_host.files import read_json, write_changed
from rltools_host.interruption import end_child, start_child
from rltools_host.runs.provenance import files_in
from rltools_host.toolchain import tools
from rltools_host.tree import MARKER, PROJECT, TREE, VARIABLE
from rltools_host.web.site import MARK, files_of, in_place_of_own, those_for_browsers, write_page

if TYPE_CHECKING:
    from docutils import nodes

ROOT = "docs/index"
CONFIGURATION = "conf.py"  # of docs/, which says for Sphinx what it is told
SOURCES = "sources.json"  # the files and folders that documents link to
SCHEME = "tree:"
FOLDERS = ("benchmarks", "docs", "examples", "firmware", "host", "integrations")
DOCUMENTS = ("README.md", "CONTRIBUTING.md")
PICTURES = (".svg", ".webp", ".png")
# Fenced code stays as it is; a link's target has no spaces in these documents.
FENCE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()[^)\s]+(?=\))")
MARKED = re.compile(rf"\]\({SCHEME}([^)\s]+)\)")
EXTERNAL = re.compile(r"\w+:|#")
# The pages of the side bar, under their captions; a document that is in none of them is a fault.
SECTIONS = {
    "Begin": ("README", "tutorials/index"),
    "Learn": (
        "python",
        "your_environment",
        "environments",
        "gymnasium_tasks",
        "project",
        "many_runs",
        "web",
    ),
    "Deploy": (
        *("import", "policy_image", "policy_slots", "executor", "hardware_in_loop", "porting"),
        *("examples/own_firmware/README", "examples/teensy_pwm/README"),
        *(f"integrations/{name}/README" for name in ("arduino", "esp_idf", "zephyr")),
        *("integrations/px4/README", "integrations/crazyflie/README", "firmware/esp32/README"),
    ),
    "Fly": ("quadrotor", "gate", "flight", "fit"),
    "Algorithms": (
        "algorithms",
        *(f"algorithms/{page.stem}" for page in sorted(TREE.root.glob("docs/algorithms/*.md"))),
    ),
    "Reference": (
        *("reference/commands", "reference/hyperparameters", "reference/python", "protocol"),
        *("examples/python/README", "examples/digits/README"),
    ),
    "Results and reasons": (
        *("results", "benchmarks/README", "design", "kernels", "experiments"),
        *("trust", "CONTRIBUTING"),
    ),
}


def documents() -> list[str]:
    """Of the site, relative to the tree."""
    return [*DOCUMENTS, *(name for name in files_in(TREE.root, FOLDERS) if name.endswith(".md"))]


def write_stage(
    folder: Path, pages: Sequence[str] = (), appended: Mapping[str, str] | None = None
) -> None:
    """Brings the folder to what the tree says now; unchanged files keep their times, so that
    Sphinx reads only the others again. `pages` are documents that were written there besides; the
    first leads to the others. `appended` is what documents get at their ends."""
    names, sources = documents(), set()
    ends = {**(appended or {}), f"{ROOT}.md": side_bar(pages)}
    for name in names:
        text = (TREE.root / name).read_text(encoding="utf-8")
        marked, found = with_marked_links(name, text, {*names, *pages})
        sources |= found
        write_changed(folder / name, marked + ends.get(name, ""))
    for page in pages:
        sources |= set(MARKED.findall((folder / page).read_text(encoding="utf-8")))
    for name in files_in(TREE.root, ("docs",)):
        if name.endswith(PICTURES):
            write_changed(folder / name, (TREE.root / name).read_bytes())
    write_changed(folder / CONFIGURATION, (TREE.root / "docs" / CONFIGURATION).read_bytes())
    write_changed(folder / SOURCES, json.dumps(sorted(sources)))
    remove_others(folder, {*names, *pages})


def with_marked_links(name: str, text: str, pages: set[str]) -> tuple[str, set[str]]:
    """The text, and the paths of the tree that it links to and that are no pages."""
    found = set()

    def marked(link: re.Match[str]) -> str:
        target, _, anchor = link[0].partition("#")
        if EXTERNAL.match(link[0]) or target.endswith(PICTURES):
            return link[0]
        path = os.path.normpath(Path(name).parent / unquote(target))
        if path in pages:
            return link[0]
        if path.startswith("..") or not (TREE.root / path).exists():
            raise UsageError(f"{name} links to {link[0]}, which is not there")
        if anchor:
            raise UsageError(f"{name} links to {link[0]}: only documents have sections")
        found.add(path)
        return SCHEME + path

    parts = FENCE.split(text)
    parts[::2] = [LINK.sub(marked, part) for part in parts[::2]]
    return "".join(parts), found


def side_bar(pages: Sequence[str]) -> str:
    """The tables of contents behind the text of the first page."""
    lines = []
    for caption, entries in SECTIONS.items():
        lines += ["", "```{toctree}", ":hidden:", f":caption: {caption}", ""]
        lines += [place_of(entry) for entry in entries]
        if caption == "Reference":
            lines += [place_of(page.removesuffix(".md")) for page in pages[:1]]
        lines.append("```")
    return "\n".join(lines) + "\n"


def place_of(entry: str) -> str:
    """As a table of contents has it: absolute, of a page in docs/ without that folder."""
    if entry == "README":
        return "Overview </README>"
    in_docs = (TREE.root / "docs" / f"{entry}.md").is_file()
    return f"/docs/{entry}" if in_docs else f"/{entry}"


def remove_others(folder: Path, kept: set[str]) -> None:
    """Documents of earlier."""
    for path in sorted(folder.rglob("*.md")):
        if str(path.relative_to(folder)) not in kept:
            path.unlink()


COMMAND = "rlt docs"
GROUPS = ("docs", "test", "tune")  # of Python packages; tutorials use the last two
# What tutorials depend on: with another digest of these, all are executed again.
EXECUTED = ("boards", "cmake", "experiments", "firmware", "host", "integrations", "lib")
NOT_EXECUTED = tuple(f"host/rltools_host/{room}/" for room in ("documentation", "web"))
COMPILED = (".h", ".cpp", ".py", ".json", ".cmake", ".xml", ".txt")
INDEX = f"""<!doctype html>
<meta charset="utf-8">
<title>rlt</title>
<link rel="icon" href="_static/icon.svg" type="image/svg+xml">
<meta http-equiv="refresh" content="0; url={ROOT}.html">
<a href="{ROOT}.html">Documentation</a>
"""

# The end of docs/web.md, where the page is part of the site.
LIVE = """
## The page itself

<iframe class="live" src="../live/index.html" loading="lazy" title="A policy is trained"></iframe>
<a href="../live/index.html">The page alone</a>
"""


def default_folder() -> Path:
    return PROJECT.build / "docs"


def work_folder() -> Path:
    """Of what is staged, of what Sphinx keeps, and of the project in which tutorials work."""
    return PROJECT.build / "docs-work"


def write_site(folder: Path, with_page: bool = False) -> Path:
    """Builds the site, whole or not at all; with the page of `rlt web` in it, if that is asked."""
    if TREE.is_installed:
        raise UsageError("the documentation is in the checkout: build it there")
    stage = work_folder() / "stage"
    with in_place_of_own(folder, COMMAND) as new, cmake.build_lock(work_folder()):
        for group in GROUPS:
            tools.ensure_group(group)
        appended = {"docs/web.md": LIVE} if with_page else {}
        write_stage(stage, core_api.write_pages(stage), appended)
        copy_pages(run_sphinx(stage, kept_folder()), new)
        if with_page:
            write_page(new / "live", those_for_browsers())
        (new / "index.html").write_text(INDEX, encoding="utf-8")
        files = sorted({*files_of(new), MARK})
        (new / MARK).write_text(json.dumps({"command": COMMAND, "files": files}), encoding="utf-8")
    return folder


def copy_pages(source: Path, target: Path) -> None:
    """Into a folder that is there. As shutil.copytree, but the first error ends it: a full disk is
    one sentence, and not one for each file."""
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir()
        else:
            shutil.copyfile(path, place)


def run_sphinx(stage: Path, kept: Path) -> Path:
    """Returns the folder of the pages. Any warning is a fault; all of them are shown, with the
    names of the tree's files. What is kept names pictures of cells, which MyST-NB puts beside the
    pages: so all of it is in one place, whatever the site's folder is."""
    new = kept / "pages"
    shutil.rmtree(new, ignore_errors=True)
    arguments = ["-b", "html", "-q", "-a", "-W", "--no-color", "-d", str(kept / "doctrees")]
    arguments += ["-D", f"nb_execution_cache_path={kept / 'executed'}", str(stage), str(new)]
    process = start_child(
        [sys.executable, "-m", "sphinx", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        environment=surroundings(),
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode("utf-8", "replace").replace(f"{stage}{os.sep}", "")
            print(text, end="", file=sys.stderr, flush=True)
        process.wait()
    finally:
        end_child(process)
    if process.returncode != 0:
        raise BuildError("the documentation has faults: see above")
    return new


def surroundings() -> dict[str, str]:
    """Of Sphinx and of the cells: a project of the tutorials' own, no settings of the user's."""
    project, settings = work_folder() / "project", work_folder() / "settings"
    kernel = settings / "profile_default" / "ipython_kernel_config.py"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    kernel.write_text("c.IPKernelApp.log_level = 40\n", encoding="utf-8")  # errors alone
    project.mkdir(exist_ok=True)
    for written in project.iterdir():  # of earlier, but for what was compiled
        if written.is_dir() and written.name != PROJECT.build.name:
            shutil.rmtree(written)
        elif written.is_file():
            written.unlink()
    (project / MARKER).touch()
    return {
        VARIABLE: str(project),
        "IPYTHONDIR": str(settings),
        "JUPYTER_CONFIG_DIR": str(settings),
        "JUPYTER_RUNTIME_DIR": str(settings / "runtime"),
        "MPLBACKEND": "",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }


def kept_folder() -> Path:
    """Of what was read and executed with the sources as they are; that of others is removed."""
    digest = hashlib.sha256()
    for name in executed_files():
        digest.update(name.encode() + b"\0" + (TREE.root / name).read_bytes())
    kept = work_folder() / f"kept-{digest.hexdigest()[:12]}"
    for other in work_folder().glob("kept-*"):
        if other != kept:
            shutil.rmtree(other, ignore_errors=True)
    return kept


def executed_files() -> Iterator[str]:
    for name in files_in(TREE.root, EXECUTED):
        is_of_pages = name.startswith(NOT_EXECUTED) and not name.endswith("/cells.py")
        if name.endswith(COMPILED) and not is_of_pages:
            yield name


# -- what Sphinx is taught -------------------------------------------------------------------------

SOURCE_PAGES = "tree"  # of the pages with sources
LEXERS = {".h": "c++", ".cpp": "c++", ".py": "python", ".json": "json", ".sh": "sh"}
MOST_BYTES = 200_000  # of a file that is shown


def setup(app: Any) -> dict[str, Any]:
    app.connect("doctree-resolved", resolve)
    app.connect("html-collect-pages", source_pages)
    app.connect("html-page-context", shared_side_bars(), priority=400)  # the theme's has 500
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def resolve(app: Any, doctree: nodes.document, docname: str) -> None:
    from docutils import nodes  # of the group docs, as what follows

    for node in doctree.findall(nodes.reference):
        if (uri := node.get("refuri", "")).startswith(SCHEME):
            page = f"{SOURCE_PAGES}/{uri.removeprefix(SCHEME)}"
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
        yield source_page(folder, f"<ul>{rows}</ul>")
    for file in sorted(files):
        text = file.read_text(encoding="utf-8", errors="replace")
        lexer = LEXERS.get(file.suffix, "text")
        yield source_page(file, app.builder.highlighter.highlight_block(text, lexer))


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

        if name.startswith(f"{SOURCE_PAGES}/"):
            context["toctree"] = made

    return share


def shown_files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_size < MOST_BYTES and path.suffix != ".md":
            yield path


def source_page(path: Path, body: str) -> tuple[str, dict[str, Any], str]:
    name = str(path.relative_to(TREE.root))
    title = html.escape(name)
    context = {"title": title, "body": f"<h1><code>{title}</code></h1>{body}", "parents": []}
    return f"{SOURCE_PAGES}/{name}", context, "page.html"


def visit_math(translator: Any, node: nodes.math) -> None:
    from docutils import nodes
    from latex2mathml.converter import convert

    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_math_block(translator: Any, node: nodes.math_block) -> None:
    from docutils import nodes
    from latex2mathml.converter import convert

    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode
