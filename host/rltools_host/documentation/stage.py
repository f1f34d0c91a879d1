"""What Sphinx reads: the tree's documents as they are, with their links to other files marked.

A document links to sources and folders of the tree as a plain host of git shows them. Here such a
link becomes `tree:<path>`, of which extension.py makes a page with that file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from rltools_host.errors import UsageError
from rltools_host.files import write_changed
from rltools_host.runs.provenance import files_in
from rltools_host.tree import TREE

ROOT = "docs/index"
CONFIGURATION = "conf.py"  # of docs/, which says for Sphinx what it is told
SOURCES = "sources.json"  # the files and folders that documents link to
SCHEME = "tree:"
FOLDERS = ("docs", "examples", "firmware", "host", "integrations")
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
        *("results", "host/rltools_host/bench/README", "design", "kernels", "experiments"),
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
