"""The pages about the core: what Doxygen finds, with the comments of the headers."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from rltools_host.documentation import core_api, site
from rltools_host.toolchain import tools
from rltools_host.tree import TREE


@pytest.mark.all
def test_every_header_is_in_a_page(tmp_path: Path) -> None:
    if not shutil.which("doxygen"):
        pytest.skip("no doxygen")
    pages = core_api.write_pages(tmp_path)
    text = "\n".join((tmp_path / page).read_text(encoding="utf-8") for page in pages)
    place = TREE.include / "rltools"
    for header in place.rglob("*.h"):
        assert f"\n## {header.relative_to(place)}\n" in text or header.parent == place
    assert (
        "### `dense_forward`\n\n```cpp\ntemplate <Activation A, int Batch, int In, int Out" in text
    )
    assert "Each element starts at its bias and accumulates over the inputs in order." in text
    assert "detail::" not in text


def test_without_doxygen_the_page_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "missing_names", lambda names: list(names))
    (page,) = core_api.write_pages(tmp_path)
    assert "apt-get install doxygen" in (tmp_path / page).read_text(encoding="utf-8")
    site.write_stage(tmp_path, [page])  # no document links to another page of the core


def test_comments_are_text_and_what_is_set_in_stays() -> None:
    lines = ("a<b> is `c_d` and e_f:", "  x = y * z", "[end]")
    assert list(core_api.shown(lines)) == [
        "a\\<b\\> is `c_d` and e\\_f:",
        *("", "```text", "x = y * z", "```", ""),
        "\\[end\\]",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("`a_b` c_d", "`a_b` c\\_d"), ("`a_b", "\\`a\\_b"), ("a*b ~ #1", "a\\*b \\~ \\#1")],
)
def test_text_is_shown_as_it_is(text: str, expected: str) -> None:
    assert core_api.quoted(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rlt::Matrix", False),
        ("rlt::nn::Layer< rlt::Outer::T >", False),
        ("rlt::Matrix::Row", True),
        ("rlt::Layer< T >::Row", True),
        ("rlt::detail::row", True),
    ],
)
def test_structs_within_others_are_told_there(name: str, expected: bool) -> None:
    assert core_api.is_inner(name) == expected


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("rl/training.h", "rl"),
        ("rl/algorithms/td3.h", "rl/algorithms"),
        ("rlt.h", ""),
        ("nn_tools/a.h", ""),
    ],
)
def test_a_header_is_on_the_page_of_the_nearest_folder(name: str, folder: str) -> None:
    assert core_api.folder_of(name) == folder


def test_declarations_are_those_of_the_source(tmp_path: Path) -> None:
    header = tmp_path / "a.h"
    header.write_text(
        "// A list,\n//  set in.\ntemplate <typename T,\n          int N>\nstruct List : Base {\n"
        "  int count;  // how many\n  int own;  // private\n  int bare;\n};\n"
        "// The larger.\n#define MOST(a, b) a\nenum class Kind { one, two };  // of lists\n"
    )

    def at(line: int) -> str:
        return f'<location file="{header}" line="{line}"/>'

    def member(kind: str, name: str, line: int, more: str = "", protection: str = "public") -> str:
        return (
            f'<memberdef kind="{kind}" prot="{protection}"><name>{name}</name>{more}{at(line)}'
            "</memberdef>"
        )

    parameters = "".join(
        f"<param><type>{kind}</type><declname>{name}</declname></param>"
        for kind, name in (("typename", "T"), ("int", "N"))
    )
    members = [
        member("variable", "count", 6),
        member("variable", "own", 7, protection="private"),
        member("variable", "bare", 8),
    ]
    compound = ElementTree.fromstring(
        f"<compounddef><basecompoundref>rlt::Base</basecompoundref><templateparamlist>{parameters}"
        f"</templateparamlist>{''.join(members)}{at(5)}</compounddef>"
    )
    comment = ("A list,", " set in.")
    declaration = "template <typename T, int N>\nstruct List : rlt::Base"
    assert core_api.struct_of(compound, "rlt::List") == core_api.Entry(
        5, "List", declaration, comment, (("count", ("how many",)),)
    )
    names = "<param><defname>a</defname></param><param><defname>b</defname></param>"
    macro = core_api.entry_of(ElementTree.fromstring(member("define", "MOST", 11, names)))
    assert macro == core_api.Entry(11, "MOST", "#define MOST(a, b)", ("The larger.",))
    values = "".join(f"<enumvalue><name>{name}</name></enumvalue>" for name in ("one", "two"))
    kind = core_api.entry_of(ElementTree.fromstring(member("enum", "Kind", 12, values)))
    assert kind == core_api.Entry(12, "Kind", "enum class Kind { one, two }", ("of lists",))
    bare = ElementTree.fromstring("<memberdef><name>x</name></memberdef>")
    assert (core_api.line_of(bare), core_api.comment_of(bare)) == (0, ())


COMPOUND = """<doxygen><compounddef kind="{kind}"><compoundname>{name}</compoundname>
{members}<location file="{file}" line="{line}"/></compounddef></doxygen>"""
MEMBER = """<memberdef kind="function"><type>{type}</type><name>{name}</name>
<definition>{type} {space}::{name}</definition><argsstring>()</argsstring>
<location file="{file}" line="{line}"/></memberdef>"""


def test_pages_list_what_is_commented_once_in_the_order_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what has no comment, lies in a namespace of details or outside of the core, nor an
    attribute that Doxygen takes for a name."""
    header = tmp_path / "include" / "rltools" / "core" / "math.h"
    other = tmp_path / "elsewhere.h"
    header.parent.mkdir(parents=True)
    text = "// Twice as much.\nint twice();\n\nint bare();\n\n// Half as much.\nint half();\n"
    header.write_text(text)
    other.write_text(text)
    places = [("half", 7), ("twice", 2), ("bare", 4), ("__attribute__", 2)]
    members = [
        MEMBER.format(type="int", name=name, space="rlt", file=header, line=line)
        for name, line in places
    ]
    members.append(MEMBER.format(type="int", name="d", space="rlt::detail", file=header, line=2))
    members.append(MEMBER.format(type="int", name="e", space="rlt", file=other, line=2))
    fields = {"file": header, "line": 1, "members": "".join(members)}
    xml = tmp_path / "xml"
    xml.mkdir()
    for kind, name in (("file", "math.h"), ("namespace", "rlt")):  # Doxygen has each in both
        (xml / f"{kind}.xml").write_text(COMPOUND.format(kind=kind, name=name, **fields))
    found = core_api.headers(xml)
    assert [entry.name for entry in found["core/math.h"]] == ["twice", "half"]
    assert [entry.comment for entry in found["core/math.h"]] == [
        ("Twice as much.",),
        ("Half as much.",),
    ]
    assert sum(map(len, found.values())) == 2
    monkeypatch.setattr(core_api, "run_doxygen", lambda _: xml)
    monkeypatch.setattr(tools, "missing_names", lambda _: [])
    index, *pages = core_api.write_pages(tmp_path / "stage")
    assert len(pages) == len(core_api.FOLDERS)
    page = (tmp_path / "stage" / pages[0]).read_text()
    assert page.startswith(f"# core/: {core_api.FOLDERS['core']}\n\n## ")
    assert "### `twice`\n\n```cpp\nint twice()\n```\n\nTwice as much.\n" in page
    assert (
        f"| [core](core.md) | {core_api.FOLDERS['core']} | "
        in (tmp_path / "stage" / index).read_text()
    )
