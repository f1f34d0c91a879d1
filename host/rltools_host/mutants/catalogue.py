"""The list of small faults that the tests must notice: tests/mutants/<area>.json, one file an area.

An area has a goal (the share that must be noticed) and files; a file has the tests that are to
notice its faults, and mutants: an exact text, what it becomes, and the fault in one sentence.
Files and tests are named by the end of their path, so that an entry survives a move.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.errors import RltError
from rltools_host.files import parse_json

LIST_DIRECTORY = Path("tests/mutants")
SOURCE_FOLDERS = ("lib", "firmware", "integrations", "experiments", "host")
SOURCE_SUFFIXES = (".h", ".c", ".cpp", ".S", ".py", ".sh")
COMPILER = "compiler"  # in place of a test: the fault must not compile


class MutantListError(RltError):
    """An entry of the list does not fit the tree."""

    exit_code = 2


@dataclass(frozen=True)
class Detector:
    """A C++ test, which is an executable of its own, or a pytest file with or without -k."""

    path: Path
    expression: str = ""

    @property
    def name(self) -> str:
        return f"{self.path.name} -k {self.expression}" if self.expression else self.path.name

    @property
    def program(self) -> str:
        return self.path.stem

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"


@dataclass(frozen=True)
class Mutant:
    """One fault. `tests` is empty where every C++ test that includes the file is to notice it, or
    must not compile."""

    area: str
    path: Path
    line: int
    text: str
    becomes: str
    fault: str
    tests: tuple[Detector, ...]
    must_not_compile: bool

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def apply(self, content: str) -> str:
        return content.replace(self.text, self.becomes, 1)


@dataclass(frozen=True)
class Area:
    name: str
    goal: float
    mutants: tuple[Mutant, ...]


class Tree:
    """Finds the files of a tree that an entry names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources = list(self._files(SOURCE_FOLDERS, SOURCE_SUFFIXES))
        self.tests = [
            path for path in self._files(["tests"], (".cpp", ".py")) if path.stem.startswith("test")
        ]

    def _files(self, folders: Iterable[str], suffixes: tuple[str, ...]) -> Iterator[Path]:
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in suffixes and path.is_file():
                    yield path.relative_to(self.root)

    def source(self, name: str) -> Path:
        return only(name, [path for path in self.sources if f"/{path}".endswith(f"/{name}")])

    def test(self, words: str) -> Detector:
        name, _, expression = words.partition(" -k ")
        found = only(f"test {name}", [path for path in self.tests if path.name == name])
        if expression and found.suffix != ".py":
            raise MutantListError(f"{words}: only a Python test takes -k")
        return Detector(found, expression)


def only(name: str, found: list[Path]) -> Path:
    if not found:
        raise MutantListError(f"there is no {name}")
    if len(found) > 1:
        raise MutantListError(f"{name} may be any of {', '.join(map(str, found))}")
    return found[0]


def read_mutant(
    tree: Tree, area: str, path: Path, tests: list[str], entry: Mapping[str, Any]
) -> Mutant:
    text, becomes, fault = (str(entry[key]) for key in ("text", "becomes", "fault"))
    content = (tree.root / path).read_text(encoding="utf-8")
    count = content.count(text)
    if count != 1:
        raise MutantListError(f"{path} has {count or 'no'} places with the text {text!r}: {fault}")
    if text == becomes:
        raise MutantListError(f"{path}: {text!r} becomes itself")
    if not fault.endswith("."):
        raise MutantListError(f"{path}: not a sentence: {fault}")
    names = [str(name) for name in entry.get("tests", tests)]
    run = tests if names == [COMPILER] else names
    found = tuple(tree.test(name) for name in run if name != COMPILER)
    is_python = path.suffix == ".py"
    if is_python and not found:
        raise MutantListError(f"{path} names no tests: {fault}")
    line = content[: content.index(text)].count("\n") + 1
    mutant = Mutant(area, path, line, text, becomes, fault, found, COMPILER in names)
    if is_python:
        try:
            compile(mutant.apply(content), str(path), "exec")
        except SyntaxError as error:
            raise MutantListError(f"{path} is no Python with {becomes!r}: {error.msg}") from None
    return mutant


def read_area(tree: Tree, file: Path, problems: list[str]) -> Area:
    """The mutants of one file; each entry that does not fit the tree adds a problem instead."""
    document = parse_json(file.read_bytes())
    mutants = []
    for group in document["files"]:
        try:
            path = tree.source(group["file"])
        except MutantListError as error:
            problems.append(f"{file.name}: {error}")
            continue
        for entry in group["mutants"]:
            try:
                mutants.append(read_mutant(tree, file.stem, path, group.get("tests", []), entry))
            except MutantListError as error:
                problems.append(f"{file.name}: {error}")
    places = [(mutant.path, mutant.text, mutant.becomes) for mutant in mutants]
    for path, text, _ in sorted({place for place in places if places.count(place) > 1}):
        problems.append(f"{file.name}: {path} has the mutant of {text!r} twice")
    return Area(file.stem, float(document["goal"]), tuple(mutants))


def read_list(root: Path) -> tuple[list[Area], list[str]]:
    """Every area of a tree, and a line for each entry that does not fit it."""
    tree = Tree(root)
    problems: list[str] = []
    areas = []
    for file in sorted((root / LIST_DIRECTORY).glob("*.json")):
        try:
            areas.append(read_area(tree, file, problems))
        except (KeyError, TypeError, ValueError) as error:
            problems.append(f"{file.name} is damaged: {type(error).__name__}: {error}")
    return areas, problems


def load(root: Path, expression: str | None = None) -> list[Area]:
    """The areas whose mutants match: "core", "framing.py", "checksum", or several with `or`.

    The name of an area chooses that area alone: "rl" is a part of every path of the host tools.
    """
    areas, problems = read_list(root)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise MutantListError(f"the list of mutants does not fit the tree: {problems[0]}{more}")
    words = re.split(r"\s+or\s+", expression.lower()) if expression else [""]
    wanted_areas = {area.name for area in areas} & set(words)
    parts = set(words) - wanted_areas

    def matches(mutant: Mutant) -> bool:
        label = f"{mutant.area} {mutant.path} {mutant.fault}".lower()
        return mutant.area in wanted_areas or any(part in label for part in parts)

    chosen = [Area(area.name, area.goal, tuple(filter(matches, area.mutants))) for area in areas]
    return [area for area in chosen if area.mutants]
