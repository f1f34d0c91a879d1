"""`rlt test --mutants`: applies each small fault of the list, and counts those that tests notice.

All of it happens in a copy of the tree, build/mutants/tree; the user's tree is only read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rltools_host.build.cmake import build_lock
from rltools_host.errors import BuildError, RltError, UsageError
from rltools_host.mutants.catalogue import Area, Detector, Mutant, load
from rltools_host.project import PROJECT
from rltools_host.toolchain import tools
from rltools_host.toolchain.tools import missing_names
from rltools_host.tree import TREE

# What the copy has of its own: builds, caches and what tests write.
OWN_FOLDERS = {"build", "runs", "__pycache__", ".hypothesis", ".pytest_cache", ".cache", ".git"}
ENVIRONMENT_LINK = Path(".venv")
SHORTEST_LIMIT_S = 60.0
SLOWER_THAN_UNCHANGED = 5.0  # a test that takes this many times as long hangs


class BaselineError(RltError):
    """A test fails in the unchanged copy, and so can notice nothing."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant; `by` says which test noticed it, or why it could not be tried."""

    mutant: Mutant
    noticed: bool
    by: str
    seconds: float
    is_valid: bool = True


def tree_files(root: Path) -> list[Path]:
    """What belongs to the tree: tracked and new files, without what git ignores."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others"]
    result = subprocess.run([*command, "--exclude-standard"], capture_output=True, text=True)
    if result.returncode != 0:
        raise BuildError(f"the files of {root} cannot be listed: {result.stderr.strip()}")
    names = sorted({name for name in result.stdout.split("\0") if name})
    return [Path(name) for name in names if (root / name).is_file()]


class Copy:
    """A copy of the tree in which tests are built and run, one mutant at a time."""

    def __init__(self, source: Path, root: Path) -> None:
        self.source = source
        self.root = root
        self.build = root / "build" / "mutants"  # Python tests configure build/host as they need it
        self.limits: dict[str, float] = {}

    def refresh(self) -> None:
        """Makes the copy equal to the tree; writes only what differs, so that builds stay valid."""
        files = tree_files(self.source)
        self._remove_others(self.root, {self.root / file for file in files})
        for file in files:
            copied = self.root / file
            content = (self.source / file).read_bytes()
            if not copied.is_file() or copied.read_bytes() != content:
                copied.parent.mkdir(parents=True, exist_ok=True)
                copied.write_bytes(content)
            shutil.copymode(self.source / file, copied)
        environment = self.root / ENVIRONMENT_LINK
        if not environment.is_symlink():
            environment.symlink_to(TREE.virtual_environment)

    def _remove_others(self, folder: Path, files: set[Path]) -> None:
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name in OWN_FOLDERS or path.is_symlink():
                continue
            if path.is_dir():
                self._remove_others(path, files)
            elif path not in files:
                path.unlink()

    @contextlib.contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        content = (self.root / mutant.path).read_text(encoding="utf-8")
        try:
            self._write(mutant.path, mutant.apply(content))
            yield
        finally:
            self._write(mutant.path, content)

    def _write(self, path: Path, content: str) -> None:
        file = self.root / path
        file.write_text(content, encoding="utf-8")
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()  # it knows its source's time to the second only

    def run(self, command: Sequence[str], limit_s: float | None = None) -> tuple[int, str]:
        """Exit code and output, in the copy; a program that exceeds the limit counts as failed."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "RLT_COMMAND")
        }
        with subprocess.Popen(
            list(command),
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                return 124, f"not done after {limit_s:.0f} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, output

    def configure(self) -> None:
        definitions = {
            "RLT_BOARD": "host",
            "RLT_TESTS": "ON",
            "RLT_TEST_OPTIMIZATION": "-O0",  # compiling them takes longer than running them
            "CMAKE_CXX_FLAGS": "-w",  # tests are to notice a fault, not what it leaves unused
            "RLT_OPENBLAS": "OFF" if missing_names(["openblas"]) else "ON",
            "RLT_PROTOCOL_DIRECTORY": str(self.root / "build" / "protocol"),
            "RLT_PYTHON": str(self.root / ENVIRONMENT_LINK / "bin" / "python"),
            "CMAKE_MAKE_PROGRAM": tools.program("ninja"),
        }
        command = [
            *(
                tools.program("cmake"),
                "-S",
                str(self.root),
                "-B",
                str(self.build),
                "-G",
                "Ninja",
            ),
            *(f"-D{name}={value}" for name, value in definitions.items()),
        ]
        code, output = self.run(command)
        if code != 0:
            raise BuildError(f"configuring the copy failed:\n{output}")

    def compile(self, names: Sequence[str]) -> tuple[int, str]:
        return self.run([tools.program("ninja"), "-C", str(self.build), *names])

    def including(self, path: Path, tests: Sequence[Detector]) -> list[Detector]:
        """The C++ tests, of these, that a source file is compiled into."""
        _, output = self.run([tools.program("ninja"), "-C", str(self.build), "-t", "deps"])
        users: dict[str, set[str]] = defaultdict(set)
        target = ""
        for line in output.splitlines():
            if line.startswith(" "):
                users[os.path.realpath(self.build / line.strip())].add(target)
            elif match := re.search(r"CMakeFiles/(\w+)\.dir/.*: #deps", line):
                target = match.group(1)
        names = users[os.path.realpath(self.root / path)]
        return [test for test in tests if test.program in names]

    def passes(self, test: Detector) -> tuple[bool, str]:
        """Whether a test that has been built passes, and its output."""
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)  # what failed with others
        if test.is_python:
            python = self.root / ENVIRONMENT_LINK / "bin" / "python"
            command = [str(python), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
            command += [str(test.path), *(["-k", test.expression] if test.expression else [])]
        else:
            command = [str(self.build / test.program), "--abort-after=1"]
        code, output = self.run(command, self.limits.get(test.name))
        return code == 0, output

    def check_unchanged(self, tests: Sequence[Detector]) -> None:
        """Builds and runs tests without a mutant, and sets their time limits."""
        programs = sorted({test.program for test in tests if not test.is_python})
        if programs:
            self.configure()
            code, output = self.compile(programs)
            if code != 0:
                raise BuildError(f"the copy of the tree does not build:\n{output}")
        for test in tests:
            started = time.monotonic()
            passed, output = self.passes(test)
            if not passed:
                raise BaselineError(f"{test.name} fails without a mutant:\n{output}")
            seconds = time.monotonic() - started
            self.limits[test.name] = max(SHORTEST_LIMIT_S, SLOWER_THAN_UNCHANGED * seconds)


def try_mutant(copy: Copy, mutant: Mutant, tests: Sequence[Detector]) -> Verdict:
    """Applies a mutant and runs tests until one fails."""
    started = time.monotonic()

    def verdict(noticed: bool, by: str, is_valid: bool = True) -> Verdict:
        return Verdict(mutant, noticed, by, time.monotonic() - started, is_valid)

    with copy.mutated(mutant):
        for test in tests:
            if not test.is_python:
                code, output = copy.compile([test.program])
                if code != 0 and mutant.must_not_compile:
                    return verdict(True, "the compiler")
                if code != 0:
                    reason = next(iter(re.findall(r"error: .*", output)), "see the build")
                    return verdict(False, f"does not compile: {reason}", is_valid=False)
            passed, _ = copy.passes(test)
            if not passed:
                return verdict(True, test.name)
    return verdict(False, ", ".join(test.name for test in tests))


def table(areas: Sequence[Area], verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    """A row for each area of which something was tried."""
    rows: list[dict[str, object]] = []
    for area in areas:
        mine = [verdict for verdict in verdicts if verdict.mutant.area == area.name]
        noticed = sum(verdict.noticed for verdict in mine)
        if mine:
            share = noticed / len(mine)
            rows.append(
                {
                    "area": area.name,
                    "noticed": noticed,
                    "total": len(mine),
                    "share": share,
                    "goal": area.goal,
                    "reached": share >= area.goal,
                }
            )
    return rows


def print_result(rows: Sequence[dict[str, object]], verdicts: Sequence[Verdict]) -> None:
    print(f"\n{'area':<18} noticed      share  goal")
    for row in rows:
        mark = "" if row["reached"] else "  missed"
        print(
            f"{row['area']!s:<18} {row['noticed']:>3} of {row['total']:>3} "
            f"{row['share']:>8.1%} {row['goal']:>5.0%}{mark}"
        )
    noticed = sum(verdict.noticed for verdict in verdicts)
    if verdicts:
        share = noticed / len(verdicts)
        print(f"{'all':<18} {noticed:>3} of {len(verdicts):>3} {share:>8.1%}")
    for title, chosen in (
        ("unnoticed", [v for v in verdicts if v.is_valid and not v.noticed]),
        ("could not be tried", [v for v in verdicts if not v.is_valid]),
    ):
        if chosen:
            print(f"\n{title}:")
        for verdict in chosen:
            print(f"  {verdict.mutant.place}: {verdict.mutant.fault} ({verdict.by})")


def document(rows: Sequence[dict[str, object]], verdicts: Sequence[Verdict]) -> dict[str, object]:
    return {
        "areas": list(rows),
        "mutants": [
            {
                "area": verdict.mutant.area,
                "file": str(verdict.mutant.path),
                "line": verdict.mutant.line,
                "fault": verdict.mutant.fault,
                "noticed": verdict.noticed,
                "by": verdict.by,
                "valid": verdict.is_valid,
                "seconds": round(verdict.seconds, 3),
            }
            for verdict in verdicts
        ],
    }


def tests_of(copy: Copy, mutants: Sequence[Mutant]) -> dict[Mutant, list[Detector]]:
    """The tests of each mutant: those that its entry names, or all that include its file."""
    every = [
        Detector(path.relative_to(copy.root))
        for path in sorted((copy.root / "tests").rglob("test_*.cpp"))
        if {copy.root / "tests/lib", copy.root / "tests/firmware"} & set(path.parents)
    ]
    named = {test for mutant in mutants for test in mutant.tests}
    unnamed = [mutant for mutant in mutants if not mutant.tests]
    if unnamed:
        named |= set(every)
    copy.check_unchanged(sorted(named, key=lambda test: test.name))
    including = {path: copy.including(path, every) for path in {m.path for m in unnamed}}
    return {mutant: list(mutant.tests) or including[mutant.path] for mutant in mutants}


def run(
    expression: str | None = None,
    json_output: bool = False,
    source: Path | None = None,
    root: Path | None = None,
) -> int:
    """Tries every mutant that matches; 0 where each area reaches its goal. Ctrl-C ends it early,
    with the table of what was tried."""
    source = source or TREE.root
    directory = root or PROJECT.build / "mutants"
    areas = load(source, expression)
    mutants = [mutant for area in areas for mutant in area.mutants]
    if not mutants:
        raise UsageError(
            f"-k {expression} matches no mutant: it is looked for in area, file and fault"
        )
    print(f"{len(mutants)} mutants in {len(areas)} areas", file=sys.stderr)
    verdicts: list[Verdict] = []
    is_complete = False
    copy = Copy(source, directory / "tree")
    with build_lock(directory), contextlib.suppress(KeyboardInterrupt):
        copy.refresh()
        for mutant, tests in tests_of(copy, mutants).items():
            verdict = try_mutant(copy, mutant, tests)
            verdicts.append(verdict)
            word = (
                "noticed  " if verdict.noticed else "UNNOTICED" if verdict.is_valid else "INVALID"
            )
            print(
                f"[{len(verdicts)}/{len(mutants)}] {word} {mutant.place}: {mutant.fault} "
                f"({verdict.by}, {verdict.seconds:.1f} s)",
                file=sys.stderr,
                flush=True,
            )
        is_complete = True
    rows = table(areas, verdicts)
    print_result(rows, verdicts)
    if not is_complete:
        print(f"interrupted after {len(verdicts)} of {len(mutants)}", file=sys.stderr)
    if json_output:
        print(json.dumps(document(rows, verdicts)))
    if not is_complete:
        return 130
    return int(not all(row["reached"] for row in rows) or not all(v.is_valid for v in verdicts))
