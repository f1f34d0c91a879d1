"""Where faults are made, and which tests are to notice them: those that lie where the file lies.

An area is the first folder of what tests mirror: lib/core, firmware/app, host/runs.
"""

from __future__ import annotations

import ast
import os
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
WITHOUT_TESTS = "host/rltools_host/bench/programs"  # which measure, and are not tested
SUFFIXES = (".h", ".c", ".cpp", ".py")
KEPT_AREA = "kept"
WHOLE_TREE = "tests/tree"  # whose tests ask git for files, and a copy of the tree has no git
# Tests that lie elsewhere, and test a folder or a file, too.
FURTHER_TESTS: dict[str, str | tuple[str, ...]] = {
    "firmware/app/infer/program": "tests/device/",
    "firmware/app/link/board_node": "tests/device/",
    "firmware/app/link/fault_report": "tests/device/test_processor",
    "firmware/app/train/": "tests/device/test_training_on_board",
    "firmware/host/": "tests/device/",
    "firmware/platformio_flags": "tests/host/build/test_platformio",
    "firmware/processors/": "tests/device/",
    "firmware/qemu_": "tests/device/",
    "firmware/app/services/file_server": "tests/firmware/app/services/training/test_train_files",
    "firmware/processors/ring_buffer": "tests/firmware/processors/test_ring_buffer_threads",
    "firmware/web/": "tests/host/web/",
    "host/native/describe": (
        "tests/host/build/test_build",
        "tests/lib/rl/environments/test_gymnasium_spaces",
    ),
    "host/native/environment": "tests/host/environments/",
    "host/native/flight": "tests/host/flight/",
    "host/native/flown_quadrotor": "tests/host/flight/",
    "host/native/pilot": "tests/host/flight/",
    "host/native/policy_flights": "tests/host/flight/",
    "host/native/policy_library": "tests/host/policies/",
    "host/native/simulate": "tests/host/policies/test_evaluate",
    "host/rltools_host/bench/web": "tests/host/web/test_measure",
    "host/rltools_host/build/catalogue": "tests/host/gymnasium_tasks/test_task",
    "host/rltools_host/commands/": "tests/host/commands/test_modes",
    "host/rltools_host/environments/library": "tests/host/rlt/test_arguments",
    "host/rltools_host/policies/acting": "tests/host/rlt/test_policy",
    "host/rltools_host/policies/contract": "tests/host/policies/test_export.py",
    "host/rltools_host/report/comparison": "tests/host/commands/test_compare",
    "host/rltools_host/report/group_page": "tests/host/commands/test_study",
    "host/rltools_host/training/from_python": "tests/host/rlt/test_training",
    "integrations/arduino/": "tests/host/policies/test_export_folders",
    "integrations/zephyr/": "tests/host/policies/test_export_zephyr",
    "lib/rltools/include/rltools/core/tensor": (
        "tests/lib/rl/algorithms/test_distillation.cpp",
        "tests/lib/rl/test_vector_environment",
    ),
    "lib/rltools/include/rltools/nn/activation": "tests/lib/policy/test_fewer_activations",
    "lib/rltools/include/rltools/nn/mlp": "tests/lib/kernels/threads/test_host_threads",
    "lib/rltools/include/rltools/policy/format": (
        "tests/host/policies/test_policy_image",
        "tests/lib/policy/test_recurrent_image",
    ),
    "lib/rltools/include/rltools/policy/reader": "tests/lib/policy/test_recurrent_image",
    "lib/rltools/include/rltools/rl/advantages": "tests/lib/rl/algorithms/test_pytorch",
    "lib/rltools/include/rltools/rl/categorical": "tests/lib/rl/algorithms/test_pytorch",
    "lib/rltools/include/rltools/rl/clipped_objective": "tests/lib/rl/algorithms/test_pytorch",
    "lib/rltools/include/rltools/rl/environments/mujoco/": "tests/lib/rl/environments/mujoco/",
    "lib/rltools/include/rltools/rl/environments/quadrotor/": "tests/lib/rl/environments/quadrotor",
    "lib/rltools/include/rltools/rl/gaussian": "tests/lib/rl/algorithms/test_pytorch",
    "lib/rltools/include/rltools/rl/on_policy": (
        "tests/lib/rl/algorithms/test_ppo.cpp",
        "tests/lib/rl/test_windows",
    ),
    "lib/rltools/include/rltools/rl/ppo_": "tests/lib/rl/algorithms/test_ppo.cpp",
    "lib/rltools/include/rltools/rl/rollout": (
        "tests/lib/rl/algorithms/test_ppo.cpp",
        "tests/lib/rl/test_windows",
    ),
    "lib/rltools/include/rltools/rl/squashed_gaussian": "tests/lib/rl/algorithms/test_pytorch",
    "lib/rltools/include/rltools/rl/twin_critics": "tests/lib/rl/algorithms/test_pytorch",
    "lib/rltools/include/rltools/rl/vector_environment": "tests/firmware/app/services/training/",
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


@dataclass(frozen=True)
class Check:
    """A program of a C++ test, or files of Python tests: of these what `rlt test` runs every day
    (`is_daily`), or what `rlt test --all` adds."""

    files: tuple[Path, ...]
    is_daily: bool = True
    suffix: str = ""

    @property
    def program(self) -> str:
        return self.files[0].stem + self.suffix if self.files[0].suffix == ".cpp" else ""

    @property
    def name(self) -> str:
        if self.program or len(self.files) == 1:
            return self.program or self.files[0].name
        return f"{self.files[0].name} and {len(self.files) - 1} more"


def goal(area: str) -> float:
    """The share of an area's faults that the tests must notice."""
    return 0.95 if area == KEPT_AREA or area.startswith("lib") else 0.9


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        folders = [folder for mirrored in MIRRORS.values() for folder in mirrored]
        self.sources = [path for path in self._files(folders) if self._place(path) is not None]
        self.tests = [path for path in self._files(["tests"]) if path.stem.startswith("test_")]
        self.reached = cache(self._reached)
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
                    if path.is_relative_to(WITHOUT_TESTS):
                        return None
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

    def _reached(self, test: Path) -> frozenset[Path]:
        """What a C++ test includes, also by way of other files, or a Python test imports itself."""
        return frozenset(self._included(test) if test.suffix == ".cpp" else self._imported(test))

    def _included(self, test: Path) -> set[Path]:
        linked = [LINKED[word] for word in self.words(test) if word in LINKED]
        waiting = [test, *(file for file in self._files(linked) if file.suffix == ".cpp")]
        found: set[Path] = set()
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
        return found

    def _imported(self, test: Path) -> set[Path]:
        names: set[str] = set()
        for node in ast.walk(ast.parse((self.root / test).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        return {Path("host", *name.split(".")).with_suffix(".py") for name in names}

    def tests_of(self, path: Path) -> Tests:
        """Those that include or import a file or have its name, and the Python tests of its folder
        (or of one above that has any), which the C++ tests of a C++ file and FURTHER_TESTS stand
        for; the nearest first."""
        place = self._place(path)
        assert place is not None, path
        home = Path(place[0], place[1]).parent
        further = {
            test
            for test in self.tests
            for prefix, names in FURTHER_TESTS.items()
            if str(path).startswith(prefix) and str(test).startswith(names)
        }

        def distance(test: Path) -> tuple[bool, bool, bool, int, bool, int]:
            above = len(Path(os.path.commonpath([home, test.parent])).parts)
            is_own = test.stem == f"test_{path.stem}"
            ways = len(home.parts) - above, path.stem not in test.stem, len(test.parts) - above
            return (not is_own, test not in further, path not in self.reached(test), *ways)

        found = {test for test in self.tests if path in self.reached(test)}
        python = [
            test
            for test in self.tests
            if test.suffix == ".py" and not test.is_relative_to(WHOLE_TREE)
        ]
        beside = ([t for t in python if t.parent == folder] for folder in (home, *home.parents))
        if path.suffix == ".py" or not found | further:
            found |= set(next(filter(None, beside), []))
        own = f"test_{path.stem}"
        of_own_name = (
            test
            for test in python
            if test.stem == own or (test.parent == home and test.stem.startswith(f"{own}_"))
        )
        found |= {*of_own_name, *further}
        ordered = sorted(sorted(found), key=distance)
        programs = tuple(test for test in ordered if test.suffix == ".cpp")
        return Tests(
            programs[:MOST_TESTS],
            tuple(test for test in ordered if test.suffix == ".py")[:MOST_TESTS],
        )

    def checks_of(self, path: Path, all_tests: bool) -> list[Check]:
        """What is to notice a fault of a file; with `all_tests` what `--all` adds comes last."""
        tests = self.tests_of(path)
        daily: list[Check] = []
        rest: list[Check] = []
        for program in tests.programs:
            words = self.words(program)
            (rest if "all" in words else daily).append(Check((program,), "all" not in words))
            if "more" in words:
                rest.append(Check((program,), False, "_all"))
        if tests.python:  # the nearest file by itself: most faults need no other one to be imported
            daily += [Check(files) for files in (tests.python[:1], tests.python[1:]) if files]
            rest.append(Check(tests.python, False))
        return [*daily, *(rest if all_tests else [])]
