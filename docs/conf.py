"""Sphinx's configuration of this documentation, which `rlt docs` builds."""

import hashlib
import inspect
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from subprocess import check_call, check_output
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes

from rltools_host.build import tools
from rltools_host.build.catalog import algorithms
from rltools_host.build.toolchains import system_tools
from rltools_host.files import write_changed
from rltools_host.runs.provenance import files_in
from rltools_host.tree import MARKER, PROJECT, TREE, VARIABLE

SOURCES = ("boards", "cmake", "experiments", "firmware", "host", "integrations", "lib")
WORK = PROJECT.build / "docs"
HEADERS = TREE.include / "rltools"
FOLDERS = [name[10:-3] for name in files_in(["docs/core"], TREE.file)]  # of headers, a page each
CORE = sorted(files_in(FOLDERS, HEADERS.joinpath))
HAS_DOXYGEN = not tools.missing_names(("doxygen",))

# Tutorials run again, and headers are read again, where one of these sources has changed.
digest = hashlib.sha256()
for name, path in files_in((*SOURCES, "docs/doxygen"), TREE.file).items():
    digest.update(name.encode() + path.read_bytes())
KEPT = WORK / f"kept-{digest.hexdigest()[:12]}"
XML = KEPT / "doxygen" / "xml"
for old in () if KEPT.is_dir() else (*WORK.glob("kept-*"), WORK / "doctrees"):
    shutil.rmtree(old, ignore_errors=True)
# Tutorials work in a project of their own.
shutil.rmtree(WORK / "project", ignore_errors=True)
write_changed(WORK / "project" / MARKER, "")
kernel = WORK / "ipython/profile_default/ipython_kernel_config.py"
write_changed(kernel, "c.IPKernelApp.log_level = 40\n")  # errors alone
os.environ |= {VARIABLE: str(WORK / "project"), "MPLBACKEND": ""}
os.environ["IPYTHONDIR"] = str(kernel.parents[1])

project = "rlt"
extensions = ["myst_nb", "breathe", "sphinx.ext.autodoc", "sphinx_copybutton"]
copybutton_prompt_text = "$ "  # in a console, its lines alone are copied, without it
root_doc = "docs/contents"
include_patterns = ["*.md", "docs/**.md", "firmware/**README.md", "integrations/**README.md"]
include_patterns += ["benchmarks/**README.md", "examples/**README.md"]
# Sphinx follows links, and build/ has some that lead to the tree itself.
read = {pattern.partition("/")[0] for pattern in include_patterns}
exclude_patterns = [p.name for p in TREE.root.iterdir() if p.is_dir() and p.name not in read]
suppress_warnings = ["myst.header"]  # of typer's page, whose first header is of the second level
# C++ that Sphinx cannot parse is shown as it stands, and each header opens the namespace again.
logging.getLogger("sphinx.sphinx.domains.cpp").setLevel(logging.ERROR)
default_role = "code"
smartquotes = False
highlight_language = "none"
myst_enable_extensions = ["dollarmath", "substitution"]
myst_heading_anchors = 6
nb_execution_mode = "off"  # `rlt docs --execute` sets "cache"
nb_execution_excludepatterns = os.environ.get("RLT_NOT_EXECUTED", "").split()  # by a test
nb_execution_cache_path = str(KEPT / "executed")
nb_execution_raise_on_error = True
nb_execution_timeout = 300  # s, of a cell
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # would be fetched from elsewhere
autodoc_default_options = {"members": True, "imported-members": True}
breathe_projects = {"rlt": str(XML)} if HAS_DOXYGEN else {}
breathe_default_project = "rlt"
breathe_show_include = False
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_extra_path = ["static/index.html"]
html_favicon = "../host/rltools_host/web/page/icon.svg"
html_css_files = ["site.css"]
html_search_scorer = str(TREE.root / "docs/static/scorer.js")

# What hyperparameters.cpp prints of the lists in C++, by the names of the tables.
calls = " ".join(f"X({one.struct})" for one in algorithms().values())
flags = ["-std=c++17", f"-I{TREE.include}", f"-DRLT_ALGORITHMS(X)={calls}"]
flags += [f"-include{one.include}" for one in algorithms().values()]
source, program = TREE.root / "docs/reference/hyperparameters.cpp", WORK / "hyperparameters"
check_call([system_tools()["g++"].path(), *flags, source, "-o", program])
printed = check_output(program, text=True).split("## ")[1:]
myst_substitutions = {one.partition("\n")[0].lower(): one.partition("\n")[2] for one in printed}

# The XML of the headers: flat, as Breathe knows a file by its name without a folder.
if not HAS_DOXYGEN:
    print("without the core's API: `apt-get install doxygen` brings what it needs")
elif not (XML / "index.xml").exists():
    shutil.rmtree(XML.parent, ignore_errors=True)
    XML.parent.mkdir(parents=True)
    for name in CORE:
        (XML.parent / name.replace("/", ".")).symlink_to(HEADERS / name)
    env = os.environ | {"RLT_HEADERS": str(XML.parent), "RLT_PYTHON": sys.executable}
    check_call(system_tools()["doxygen"].path(), cwd=TREE.root / "docs" / "doxygen", env=env)


def add_generated(_app: Any, name: str, source: list[str]) -> None:
    """Add the commands as typer describes them; to a folder of the core, what its headers have."""
    if name == "docs/reference/commands":
        command = f"{sys.executable} -m typer rltools_host.commands.cli utils docs --name rlt"
        source[0] += check_output(command.split(), text=True).partition("\n")[2].replace("\b", "")
    for header in CORE if HAS_DOXYGEN else ():
        folder = max((one for one in FOLDERS if header.startswith(f"{one}/")), key=len)
        if name == f"docs/core/{folder}":
            directive = f"```{{doxygenfile}} {header.replace('/', '.')}\n```"
            source[0] += f"\n## {header}\n\n{directive}\n"


def add_fields(_app: Any, _what: str, _name: str, of: Any, _options: Any, lines: list[str]) -> None:
    """Make fields of a docstring's lines on parameters and errors (`seed: that of the run`)."""
    names = "|".join(inspect.signature(of).parameters) if callable(of) else "-"
    blocks = "\n".join(lines).split("\n\n")
    for kind, label in (("param", rf"(?:{names}): "), ("raises", r"\w*Error: ")):
        for place, block in enumerate(blocks):
            if re.match(label, block):
                block = re.sub(rf"\n(?!{label})\s*", " ", block)
                blocks[place] = re.sub(rf"^({label})", rf":{kind} \1", block, flags=re.MULTILINE)
    lines[:] = "\n\n".join(blocks).splitlines()


def unlink_folders(app: Any, document: Any) -> None:
    """Leave the text of links to the tree's folders, which are no pages."""
    here = Path(app.env.doc2path(app.env.docname)).parent
    for node in list(document.findall(addnodes.pending_xref)):
        if node["reftype"] == "myst" and (here / node["reftarget"]).is_dir():
            node.replace_self(node.children)


def write_math(translator: Any, node: Any) -> None:
    """Write MathML, which browsers show without a script or a font from elsewhere."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.connect("source-read", add_generated)
    app.connect("autodoc-process-docstring", add_fields)
    app.connect("doctree-read", unlink_folders)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
