"""The pages about the core's headers, in MyST's Markdown: Doxygen finds what is declared and where.

The comments are taken from the headers as they are, English and no language of Doxygen's.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path

from rltools_host.errors import BuildError
from rltools_host.files import write_changed
from rltools_host.toolchain import tools
from rltools_host.toolchain.description import system_tools
from rltools_host.tree import TREE

DOXYGEN = "doxygen"
PLACE = "docs/core"  # of the pages, in the stage
INDEX = f"{PLACE}/index.md"
# The pages, by folders of headers, and what is in them.
FOLDERS = {
    "core": "numbers, matrices, random numbers, threads",
    "nn": "layers, networks, losses, Adam",
    "policy": "what is deployed: images, slots, the executor",
    "rl": "what all algorithms share: environments, buffers, training",
    "rl/algorithms": "what learns, an algorithm each",
    "rl/environments": "the tasks",
    "kernels": "the fast forms of the operations",
    "devices": "the tags, each with its kernels",
}
INTRODUCTION = """
The headers of [lib/rltools](tree:lib/rltools/include/rltools), from their comments: what each
struct and function is for, with shapes and units. Begin with the tutorials on
[containers](../tutorials/containers.md) and [dispatch](../tutorials/dispatch.md).
"""
SETTINGS = {
    "RECURSIVE": "YES",
    "FILE_PATTERNS": "*.h",
    "GENERATE_HTML": "NO",
    "GENERATE_LATEX": "NO",
    "GENERATE_XML": "YES",
    "XML_PROGRAMLISTING": "NO",
    "QUIET": "YES",
    "WARNINGS": "NO",
    "EXTRACT_ALL": "YES",
    "EXCLUDE_SYMBOLS": "*detail*",
}
KINDS = ("function", "variable", "typedef", "enum", "define")


@dataclass(frozen=True)
class Entry:
    """A struct, function, constant or macro at the level of a namespace."""

    line: int
    name: str
    declaration: str
    comment: tuple[str, ...]  # lines
    members: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of a struct: those with a comment


def write_pages(stage: Path) -> list[str]:
    """Writes the pages, and returns their names; one that says what is missing without Doxygen."""
    if tools.missing_names((DOXYGEN,)):
        package = system_tools()[DOXYGEN].package
        text = f"# The core in C++\n\nBuilt without Doxygen: `apt-get install {package}` brings it."
        write_changed(stage / INDEX, text + f"\n{INTRODUCTION}")
        return [INDEX]
    with tempfile.TemporaryDirectory() as folder:
        files = headers(run_doxygen(Path(folder)))
    rows, names = [], []
    for folder_name, about in FOLDERS.items():
        own = {name: found for name, found in files.items() if folder_of(name) == folder_name}
        page = f"{PLACE}/{folder_name.replace('/', '_')}.md"
        write_changed(stage / page, "\n".join(page_of(folder_name, about, own)) + "\n")
        rows.append(f"| [{folder_name}]({Path(page).name}) | {about} | {len(own)} |")
        names.append(page)
    table = "\n".join(["| folder | what is in it | headers |", "|---|---|---|", *rows])
    listed = "\n".join(Path(name).stem for name in names)
    contents = f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    write_changed(stage / INDEX, f"# The core in C++\n{INTRODUCTION}\n{table}\n\n{contents}")
    return [INDEX, *names]


def run_doxygen(folder: Path) -> Path:
    """Returns the folder with its XML."""
    settings = {
        **SETTINGS,
        "INPUT": f'"{TREE.include}"',
        "OUTPUT_DIRECTORY": f'"{folder}"',
    }
    text = "".join(f"{key} = {value}\n" for key, value in settings.items())
    path = str(system_tools()[DOXYGEN].path())
    result = subprocess.run([path, "-"], input=text, capture_output=True, text=True)
    if result.returncode != 0:
        raise BuildError(f"Doxygen failed: {result.stderr.strip()[-300:]}")
    return folder / "xml"


def folder_of(name: str) -> str:
    """The longest of FOLDERS that a header lies in."""
    found = [folder for folder in FOLDERS if name.startswith(f"{folder}/")]
    return max(found, key=len, default="")


def headers(xml: Path) -> dict[str, list[Entry]]:
    """What each header has, in the order of its lines; by its path below rltools/."""
    place = TREE.include / "rltools"
    found: dict[str, list[Entry]] = {
        str(path.relative_to(place)): [] for path in place.rglob("*.h")
    }
    for path in sorted(xml.glob("*.xml")):
        compound = ElementTree.parse(path).find("compounddef")
        if compound is None:
            continue
        if compound.get("kind") in ("file", "namespace"):
            for member in compound.iter("memberdef"):
                if member.get("kind") in KINDS and "detail" not in member.findtext(
                    "definition", ""
                ):
                    note(found, member, entry_of(member))
            continue
        name = compound.findtext("compoundname", "")
        if compound.get("kind") in ("struct", "class") and not is_inner(name):
            note(found, compound, struct_of(compound, name))
    return {name: sorted(entries, key=lambda e: e.line) for name, entries in sorted(found.items())}


def is_inner(name: str) -> bool:
    """Whether it lies in a struct, which tells of it, or in a namespace of details."""
    outer = re.sub(r"<.*>", "", name).split("::")[:-1]
    return "detail" in name or any(part[:1].isupper() for part in outer)


def note(found: dict[str, list[Entry]], element: ElementTree.Element, entry: Entry) -> None:
    location = element.find("location")
    file = "" if location is None else str(location.get("file"))
    _, _, name = file.partition("/include/rltools/")
    is_named = not entry.name.startswith("__")  # and no attribute that Doxygen took for a name
    if name and is_named and (entry.comment or entry.members) and entry not in found[name]:
        found[name].append(entry)


def line_of(element: ElementTree.Element) -> int:
    location = element.find("location")
    return 0 if location is None else int(location.get("line", "0"))


def text_of(element: ElementTree.Element | None) -> str:
    """Without a break of lines."""
    return "" if element is None else " ".join("".join(element.itertext()).split())


@cache
def lines_of(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()


def comment_of(element: ElementTree.Element) -> tuple[str, ...]:
    """The lines of comment above a declaration, or behind it."""
    location = element.find("location")
    if location is None:
        return ()
    lines = lines_of(str(location.get("file")))
    at = int(location.get("line", "1")) - 1
    above = at
    # A declaration may begin some lines before its name.
    while above > 0 and re.match(
        r"template|\[\[|\s*(?:typename|class|int|std::)", lines[above - 1]
    ):
        above -= 1
    end = above
    while above > 0 and lines[above - 1].lstrip().startswith("//"):
        above -= 1
    if above < end:
        return tuple(line.strip().removeprefix("//").removeprefix(" ") for line in lines[above:end])
    _, _, behind = lines[at].partition("  // ")
    return (behind,) if behind else ()


def template_of(element: ElementTree.Element) -> str:
    found = element.find("templateparamlist")
    if found is None:
        return ""
    texts = []
    for parameter in found.findall("param"):
        parts = (text_of(parameter.find(part)) for part in ("type", "declname"))
        texts.append(" ".join(filter(None, parts)))
    return f"template <{', '.join(texts)}>\n"


def entry_of(member: ElementTree.Element) -> Entry:
    name, kind = member.findtext("name", ""), member.get("kind")
    definition = text_of(member.find("definition")).replace("rlt::", "")
    if kind == "define":
        names = [text_of(parameter) for parameter in member.findall("param")]
        definition = f"#define {name}" + (f"({', '.join(names)})" if names else "")
    elif kind == "enum":
        values = ", ".join(value.findtext("name", "") for value in member.findall("enumvalue"))
        definition = f"enum class {name} {{ {values} }}"
    arguments = text_of(member.find("argsstring")) if kind == "function" else ""
    declaration = f"{template_of(member)}{definition}{arguments}"
    return Entry(line_of(member), name, declaration, comment_of(member))


def struct_of(compound: ElementTree.Element, name: str) -> Entry:
    short = name.replace("rlt::", "", 1)
    members = []
    for member in compound.iter("memberdef"):
        comment = comment_of(member)
        if member.get("prot") == "public" and comment and member.get("kind") in KINDS:
            members.append((member.findtext("name", ""), comment))
    bases = ", ".join(text_of(base) for base in compound.findall("basecompoundref"))
    declaration = f"{template_of(compound)}struct {short}" + (f" : {bases}" if bases else "")
    return Entry(line_of(compound), short, declaration, comment_of(compound), tuple(members))


def page_of(folder: str, about: str, files: dict[str, list[Entry]]) -> Iterator[str]:
    yield f"# {folder}/: {about}"
    for name, entries in files.items():
        path = TREE.include / "rltools" / name
        yield from ("", f"## {name}", "", *shown(first_comment(path)), "")
        yield f"[{path.name}](tree:{path.relative_to(TREE.root)})"
        for entry in entries:
            yield from ("", f"### `{entry.name}`", "", "```cpp", entry.declaration, "```", "")
            yield from shown(entry.comment)
            for member, comment in entry.members:
                yield from ("", f"- `{member}`: {quoted(' '.join(comment))}")


def first_comment(path: Path) -> list[str]:
    """The first lines of a header, which say what it is."""
    lines = takewhile(lambda line: line.startswith("//"), lines_of(str(path)))
    return [line.removeprefix("//").removeprefix(" ") for line in lines]


def shown(lines: Sequence[str]) -> Iterator[str]:
    """Text as text; lines that are set in, such as formulas and code, as they are."""
    for is_set_in, group in groupby(lines, lambda line: line.startswith("  ")):
        if is_set_in:
            yield from ("", "```text", *(line.strip() for line in group), "```", "")
        else:
            yield from (quoted(line) for line in group)


def quoted(text: str) -> str:
    """So that Markdown shows it as it is, but for `code`."""
    parts = text.split("`")
    if len(parts) % 2:  # as many begin as end
        parts[::2] = map(escaped, parts[::2])
        return "`".join(parts)
    return escaped(text).replace("`", "\\`")


def escaped(text: str) -> str:
    return re.sub(r"([\\*_{}\[\]<>#$|~&])", r"\\\1", text)
