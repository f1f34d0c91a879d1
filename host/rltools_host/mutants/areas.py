"""Where faults are made, and which tests are to notice them: those that lie where the file lies.

An area is the first folder of what tests mirror: lib/core, firmware/app, host/runs.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

# Folders of tests, and those whose folders they have. A test of several folders lies in one above.
MIRRORS = {
    "tests/lib": ("lib/rltools/include/rltools",),
    "tests/firmware": ("firmware",),
    "tests/host": ("host/rltools_host", "host"),
    "tests/integrations": ("integrations",),
}
SUFFIXES = (".h", ".c", ".cpp", ".py")
KEPT_AREA = "kept"
# Tests that lie elsewhere, and test a folder or a file, too.
FURTHER_TESTS = {
    "firmware/app/services/file_server": ("tests/firmware/app/services/training/test_train_files",),
    "firmware/app": ("tests/firmware/app/",),
    "firmware/processors/ring_buffer": ("tests/firmware/processors/test_ring_buffer_threads.py",),
    "host/native/environment": ("tests/host/environments/",),
    "host/native/policy": ("tests/host/policies/test_evaluate.py",),
    "lib/rltools/include/rltools/nn/activation": ("tests/lib/policy/test_fewer_activations.cpp",),
    "lib/rltools/include/rltools/rl/vector_environment": ("tests/firmware/app/services/training/",),
}
MOST_TESTS = 10  # of one language for one fault, the nearest
# Objects that a test is linked with where its first line has the word (cmake/host.cmake).
LINKED = {
    "kernel_agreement": "tests/lib/kernels/agreement",
    "scripted_board": "tests/firmware/scripted",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


@dataclass(frozen=True)
class Tests:
    """C++ tests, each a program, and Python tests, the nearest first."""

    programs: tuple[Path, ...]
    python: tuple[Path, ...]


def goal(area: str) -> float:
    """The share of an area's faults that the tests must notice."""
    return 0.95 if area == KEPT_AREA or area.startswith("lib") else 0.9


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        folders = [folder for mirrored in MIRRORS.values() for folder in mirrored]
        self.sources = [path for path in self._files(folders) if self._place(path) is not None]
        self.tests = [path for path in self._files(["tests"]) if path.stem.startswith("test_")]
        self.included = cache(self._included)
        self.imported = cache(self._imported)
        self._by_name: dict[str, list[Path]] = defaultdict(list)
        for path in self._files([*folders, "experiments", "tests"]):
            self._by_name[path.name].append(path)

    def _files(self, folders: list[str]) -> list[Path]:
        found = {
            path.relative_to(self.root)
            for folder in folders
            for path in (self.root / folder).rglob("*")
            if path.suffix in SUFFIXES and path.is_file()
        }
        return sorted(found)

    def _place(self, path: Path) -> tuple[str, PurePath] | None:
        """The folder of tests that mirrors a file, and the file's place in what it mirrors."""
        for tests, folders in MIRRORS.items():
            for folder in folders:
                if path.is_relative_to(folder):
                    return tests, path.relative_to(folder)
        return None

    def area(self, path: Path) -> str:
        place = self._place(path)
        assert place is not None, path
        tests, inner = place
        return "/".join([tests.removeprefix("tests/"), *inner.parts[:1][: len(inner.parts) - 1]])

    def words(self, test: Path) -> list[str]:
        """What the first line of a C++ test says of it: `// Test: threads all`."""
        line = (self.root / test).read_text(encoding="utf-8").partition("\n")[0]
        return line.removeprefix("// Test:").split() if line.startswith("// Test:") else []

    def _included(self, path: Path) -> frozenset[Path]:
        """What a C++ file includes, and what that includes."""
        found: set[Path] = set()
        linked = [LINKED[word] for word in self.words(path) if word in LINKED]
        waiting = [path, *(file for file in self._files(linked) if file.suffix == ".cpp")]
        while waiting:
            present = waiting.pop()
            text = (self.root / present).read_text(encoding="utf-8")
            for name in INCLUDE.findall(text):
                base = PurePath(name).name
                named = [file for file in self._by_name[base] if f"/{file}".endswith(f"/{name}")]
                sibling = present.parent / name
                reached = {sibling} if sibling in named else set(named)
                waiting += reached - found
                found |= reached
        return frozenset(found)

    def _imported(self, test: Path) -> frozenset[Path]:
        """What a Python test imports itself."""
        if test.suffix != ".py":
            return frozenset()
        names: set[str] = set()
        for node in ast.walk(ast.parse((self.root / test).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return frozenset(Path("host", *name.split(".")).with_suffix(".py") for name in names)

    def tests_of(self, path: Path) -> Tests:
        """That of a file's own name, what FURTHER_TESTS names, and those of its folder, or where
        there are none those of one above. Of C++ tests those that include it, also in folders
        below; of Python tests also those elsewhere that import it."""
        place = self._place(path)
        assert place is not None, path
        tests, inner = place
        further = [
            test
            for prefix, names in FURTHER_TESTS.items()
            if str(path).startswith(prefix)
            for test in self.tests
            if str(test).startswith(names) and self._may_notice(test, path)
        ]
        candidates = [
            test
            for test in self.tests
            if test.is_relative_to(tests) and self._may_notice(test, path)
        ]
        own = [test for test in candidates if test.stem == f"test_{path.stem}"]
        programs = [test for test in candidates if test.suffix == ".cpp"]
        for folder in inner.parents:
            near = [test for test in programs or candidates if test.is_relative_to(tests / folder)]
            if not programs:
                near = [test for test in near if test.parent == tests / folder]
            if own or near:
                break
        near.sort(key=lambda test: (path.stem not in test.stem, len(test.parts)))
        importing = [test for test in self.tests if path in self.imported(test)]
        importing.sort(key=lambda test: not test.is_relative_to(tests))
        found = list(dict.fromkeys([*own, *further, *near, *importing]))
        return Tests(
            tuple(test for test in found if test.suffix == ".cpp")[:MOST_TESTS],
            tuple(test for test in found if test.suffix == ".py")[:MOST_TESTS],
        )

    def _may_notice(self, test: Path, path: Path) -> bool:
        return test.suffix == ".py" or path in self.included(test)
