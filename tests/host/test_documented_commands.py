"""Each command in README.md and docs/ is one that there is, with names of this tree; some
are run. Tutorials and the reference are run and written by themselves."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from command_lines import problem
from rltools_host.build.boards import list_boards
from rltools_host.build.experiments import list_experiments
from rltools_host.build.tools import missing_names
from rltools_host.policies.export import FORMATS
from rltools_host.policies.folders import FOLDERS
from rltools_host.policies.frameworks import FRAMEWORK_FOLDERS, FRAMEWORK_FORMATS
from rltools_host.tree import LAUNCHER, TREE, VARIABLE

DOCUMENTS = (
    TREE.root / "README.md",
    *(
        path
        for path in sorted((TREE.root / "docs").rglob("*.md"))
        if not {"tutorials", "reference"} & set(path.parts)
    ),
)
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`(?:\./)?rlt ([^`]+)`")
CALL = re.compile(r"(?:\./)?rlt ")
PLACEHOLDER = re.compile(r"[A-Z][A-Z.\d_a-z]*|.*[…<].*|ID")  # RUN, FILE.csv, <board>
MADE = ("ball-on-beam",)  # by `rlt new`, in these documents


def lines_of(document: Path) -> list[str]:
    """The command lines of its blocks, without comments."""
    found = []
    for kind, body in BLOCK.findall(document.read_text(encoding="utf-8")):
        for line in body.replace("\\\n", " ").splitlines():
            text = line.removeprefix("$ ")
            if text.strip() and (kind == "sh" or text != line):
                found.append(shlex.join(shlex.split(text, comments=True)))
    return [line for line in found if line]


def quoted_in(document: Path) -> list[str]:
    """What stands in backticks."""
    return [" ".join(each.split()) for each in QUOTED.findall(document.read_text(encoding="utf-8"))]


@cache
def sources_of_tests() -> str:
    """Paths and texts of all tests."""
    paths = [path for path in (TREE.root / "tests").rglob("*") if path.suffix in (".py", ".cpp")]
    return "\n".join(f"{path}\n{path.read_text(encoding='utf-8')}" for path in paths)


@cache
def names() -> dict[str, set[str]]:
    """What may stand behind an option."""
    boards = {board.name for board in list_boards()} | {"all-emulated", "crazyflie"}
    return {
        "--board": boards,
        "--gate": {path.stem.replace("_", "-") for path in TREE.experiments.glob("gates/*.json")},
        "study": {
            "NAME",
            *(path.stem.replace("_", "-") for path in TREE.experiments.glob("studies/*.json")),
        },
        "experiment": {*list_experiments(), *MADE},
        "--to": {*FORMATS, *FRAMEWORK_FORMATS, *FOLDERS, *FRAMEWORK_FOLDERS},
    }


def unknown_names(words: list[str]) -> Iterator[str]:
    known = names()
    for option, value in pairwise(words):
        if option in known and not PLACEHOLDER.fullmatch(value) and value not in known[option]:
            yield f"{shlex.join(words)}: there is no {option} {value}"
        if option == "-k" and value not in sources_of_tests():
            yield f"{shlex.join(words)}: no test has {value}"
    if words[0] in ("train", "check") and len(words) > 1 and not words[1].startswith(("-", "gym:")):
        name = words[1]
        if not PLACEHOLDER.fullmatch(name) and name not in known["experiment"]:
            yield f"{shlex.join(words)}: there is no experiment {name}"
    if words[0] == "study" and not {*words[1:2]} <= known["study"]:
        yield f"{shlex.join(words)}: there is no such study"
    for word in words:
        if word.startswith("examples/") and not (TREE.root / word).exists():
            yield f"{shlex.join(words)}: there is no {word}"


# What the mention of a command, or of an option, leaves out.
LEFT_OUT = re.compile(r": (Missing parameter|Option '[-\w]+' requires an argument|Missing command)")


def complaints(line: str, is_whole: bool = True) -> list[str]:
    """is_whole: it is to be typed as it stands."""
    words = ["1" if word == "N" else word for word in shlex.split(line)]
    if words[:1] == ["--yes"]:  # of ./rlt itself
        del words[0]
    if words in (["…"], ["bench"]):
        return []
    found = problem(words)
    if found is not None and not is_whole and LEFT_OUT.search(found):
        found = None
    return [*([found] if found else []), *unknown_names(words)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_commands_are_those_that_there_are(document: Path) -> None:
    lines = [CALL.sub("", line, count=1) for line in lines_of(document) if CALL.match(line)]
    found = [text for line in lines for text in complaints(line)]
    found += [text for line in quoted_in(document) for text in complaints(line, is_whole=False)]
    assert found == []


# What runs, in this order, in a project of its own; docs/your_environment.md and the tutorials are
# run by tests of their own.
LINES = (
    "./rlt check pendulum-td3",
    "./rlt boards",
    "./rlt train pendulum-td3",
    "./rlt evaluate latest --in gymnasium",
    "./rlt push latest --board host",
    "./rlt train pendulum-td3 --board qemu-cortex-m7 --steps 300",
    "./rlt train pendulum-td3 --steps 300 --seed 0",
)
NEEDS = ["arm-none-eabi-g++", "qemu-system-arm"]


def test_lines_that_are_run_are_those_of_the_documents() -> None:
    assert {*LINES} <= {line for document in DOCUMENTS for line in lines_of(document)}


@pytest.mark.all
@pytest.mark.timeout(900)
def test_lines_of_the_documents_run(project_in_tree: Path) -> None:
    can_emulate = not missing_names(NEEDS)
    environment = {key: value for key, value in os.environ.items() if key != VARIABLE}
    environment |= {"PYTHONPATH": str(TREE.root / "host"), "RLT_COMMAND": str(LAUNCHER)}
    for line in LINES:
        if "qemu" in line and not can_emulate:
            continue
        result = subprocess.run(
            [sys.executable, "-m", "rltools_host", *shlex.split(CALL.sub("", line, count=1))],
            cwd=project_in_tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert result.returncode == 0, f"{line}:\n{result.stdout}{result.stderr}"
