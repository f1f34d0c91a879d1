"""`rlt test --mutants`: makes faults, one at a time, and counts those that tests notice.

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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rltools_host.build.cmake import build_lock
from rltools_host.errors import BuildError, RltError, UsageError
from rltools_host.mutants import areas
from rltools_host.mutants.areas import Check
from rltools_host.mutants.cpp_syntax import cpp_faults
from rltools_host.mutants.faults import (
    KEPT,
    Fault,
    FaultListError,
    Verdict,
    document,
    kept_faults,
    print_result,
    shuffled,
    table,
    without_dead,
)
from rltools_host.mutants.python_syntax import python_faults
from rltools_host.toolchain import tools
from rltools_host.toolchain.tools import missing_names
from rltools_host.tree import PROJECT, TREE

# What the copy has of its own: builds, caches and what tests write.
OWN_FOLDERS = {"build", "runs", "__pycache__", ".hypothesis", ".pytest_cache", ".cache", ".git"}
ENVIRONMENT_LINK = Path(".venv")
SAMPLES = 20  # faults of each area
NO_TESTS_RAN = 5  # of these files, by pytest
NO_TESTS = areas.Tests((), ())
TIMED_OUT = 124
NOT_CPP = "@"
# Of a check of which is not known how long it takes: a program's, Python tests'.
LONGEST_S = 60.0, 300.0
SHORTEST_LIMIT_S = 60.0
SLOWER_THAN_UNCHANGED = 5.0  # a test that takes this many times as long hangs
TRIES = 3  # of a check that fails or takes too long, and then does not
# In pytest's summary: "FAILED tests/host/test_x.py::test_y[a b] - AssertionError: ...".
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)


class BaselineError(RltError):
    """A test fails in the unchanged copy, and so can notice nothing."""


class MutantError(RltError):
    """A fault does not compile."""


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
        self.limits: dict[Check, float] = {}
        self.unchanged: set[tuple[Check, tuple[str, ...]]] = set()  # what passes without a fault
        self.code, self.output = 0, ""  # of what was run last

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
    def mutated(self, fault: Fault) -> Iterator[None]:
        content = (self.root / fault.path).read_text(encoding="utf-8")
        try:
            self._write(fault.path, fault.apply(content))
            yield
        finally:
            self._write(fault.path, content)

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
                return TIMED_OUT, f"not done after {limit_s:.0f} s"
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
        command = [tools.program("cmake"), "-S", str(self.root), "-B", str(self.build), "-GNinja"]
        command += [f"-D{name}={value}" for name, value in definitions.items()]
        code, output = self.run(command)
        if code != 0:
            raise BuildError(f"configuring the copy failed:\n{output}")

    def compile(self, check: Check) -> tuple[int, str]:
        if not check.program:
            return 0, ""
        if not (self.build / "build.ninja").is_file():
            self.configure()
        return self.run([tools.program("ninja"), "-C", str(self.build), check.program])

    def passes(
        self, check: Check, limit_s: float | None = None, only: tuple[str, ...] = ()
    ) -> bool:
        """Whether a check that has been compiled passes, or `only` some of its Python tests; one
        that takes too long does not."""
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)  # what failed with others
        if check.program:
            command = [str(self.build / check.program), "--abort-after=1"]
            if not Path(command[0]).is_file():  # it needs what is not installed
                return True
        else:
            python = self.root / ENVIRONMENT_LINK / "bin" / "python"
            command = [str(python), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
            command += [] if check.is_daily else ["--all", "-m", "all"]
            command += only or [str(file) for file in check.files]
        self.code, self.output = self.run(command, limit_s)
        return self.code in (0, NO_TESTS_RAN)

    def failed_tests(self, check: Check) -> tuple[str, ...]:
        """Of a check's own files: a test may print what another pytest says."""
        found = FAILED_TEST.findall(self.output)
        return tuple(test for test in found if Path(test.partition("::")[0]) in check.files)

    def compile_unchanged(self, check: Check) -> None:
        code, output = self.compile(check)
        if code != 0:
            raise BuildError(f"the copy of the tree does not build:\n{output}")

    def require_unchanged(self, check: Check, only: tuple[str, ...]) -> None:
        """That what failed passes without a fault, once of two times."""
        if (check, only) in self.unchanged:
            return
        self.compile_unchanged(check)
        if not self.passes(check, only=only) and not self.passes(check, only=only):
            raise BaselineError(f"{check.name} fails without a fault:\n{self.output}")
        self.unchanged.add((check, only))

    def measure_unchanged(self, check: Check) -> None:
        """How long a check takes on the machine as it is now."""
        self.compile_unchanged(check)
        started = time.monotonic()
        if not self.passes(check):
            raise BaselineError(f"{check.name} fails without a fault:\n{self.output}")
        seconds = time.monotonic() - started
        self.limits[check] = max(SHORTEST_LIMIT_S, SLOWER_THAN_UNCHANGED * seconds)


def noticed_how(copy: Copy, fault: Fault, check: Check) -> str | None:
    """What follows the check's name: the test that fails, or that it hangs; None where it passes.

    A busy machine notices none: what fails fails again by itself, and passes without the fault; a
    limit is one of several times what the check takes without the fault at this moment.
    """
    for _ in range(TRIES):
        limit_s = copy.limits.get(check, LONGEST_S[not check.program])
        with copy.mutated(fault):
            code, output = copy.compile(check)
            if code != 0:
                raise MutantError(next(iter(re.findall(r"error: .*", output)), "see the build"))
            if copy.passes(check, limit_s):
                return None
            hangs = copy.code == TIMED_OUT
            only = copy.failed_tests(check)
            fails_again = not hangs and not copy.passes(check, limit_s, only)
        if hangs:
            copy.measure_unchanged(check)
            if limit_s >= copy.limits[check]:
                return f": not done after {limit_s:.0f} s"
        elif fails_again:
            copy.require_unchanged(check, only)
            return f": {only[0].partition('::')[2]}" if only and "::" in only[0] else ""
    return None


def try_fault(copy: Copy, area: str, fault: Fault, checks: Sequence[Check]) -> Verdict:
    """Makes a fault and runs checks until one fails."""
    started = time.monotonic()
    sentence = fault.described((copy.root / fault.path).read_text(encoding="utf-8"))

    def verdict(noticed: bool, by: str, is_valid: bool = True, is_daily: bool = True) -> Verdict:
        seconds = time.monotonic() - started
        return Verdict(area, fault, sentence, noticed, by, seconds, is_valid, is_daily)

    if not checks:
        return verdict(False, "only tests of --all could notice it", is_valid=False)
    for check in checks:
        try:
            how = noticed_how(copy, fault, check)
        except MutantError as error:
            return verdict(False, f"does not compile: {error}", is_valid=False)
        if how is not None:
            return verdict(True, f"{check.name}{how}", is_daily=check.is_daily)
    if is_left_out(copy, fault, checks):
        return verdict(False, "the preprocessor leaves it out on this machine", is_valid=False)
    return verdict(False, ", ".join(check.name for check in checks))


def is_left_out(copy: Copy, fault: Fault, checks: Sequence[Check]) -> bool:
    """Whether the preprocessor leaves a fault's place out of all that could notice it, as it does
    with the instructions of other processors: then even what is no C++ compiles there."""
    if not all(check.program for check in checks):
        return False
    with copy.mutated(replace(fault, becomes=NOT_CPP)):
        return all(copy.compile(check)[0] == 0 for check in checks)


def generated_faults(root: Path, path: Path) -> list[Fault]:
    source = (root / path).read_text(encoding="utf-8")
    return (python_faults if path.suffix == ".py" else cpp_faults)(path, source)


def chosen_faults(tree: areas.Tree, expression: str | None, seed: int) -> dict[str, list[Fault]]:
    """Of each area, in the order in which they are tried: what matches an area ("lib/core"), a
    file, or the sentence of a kept fault. Files without tests of theirs have none."""
    kept, problems = kept_faults(tree.root, tree.sources)
    if problems:
        raise FaultListError(f"{KEPT} does not fit the tree: " + "; ".join(problems))
    word = expression or ""
    is_area = word in {areas.KEPT_AREA, *map(tree.area, tree.sources)}

    def is_chosen(area: str, text: str) -> bool:
        return word == area if is_area else word in text

    found = {
        areas.KEPT_AREA: [
            fault for fault in kept if is_chosen(areas.KEPT_AREA, f"{fault.path} {fault.sentence}")
        ]
    }
    for path in tree.sources:
        area = tree.area(path)
        if is_chosen(area, str(path)) and tree.tests_of(path) != NO_TESTS:
            found.setdefault(area, []).extend(generated_faults(tree.root, path))
    return {
        area: shuffled(without_dead(tree.root, faults), seed, area)
        for area, faults in found.items()
        if faults
    }


def tried_faults(
    copy: Copy,
    tree: areas.Tree,
    chosen: dict[str, list[Fault]],
    samples: int,
    all_tests: bool,
) -> Iterator[Verdict]:
    """Of each area as many as `samples` that compile."""
    for area, faults in chosen.items():
        wanted = samples
        for fault in faults:
            if wanted <= 0:
                break
            verdict = try_fault(copy, area, fault, tree.checks_of(fault.path, all_tests))
            wanted -= verdict.is_valid
            yield verdict


def run(
    expression: str | None = None,
    json_output: bool = False,
    *,
    seed: int = 0,
    samples: int = SAMPLES,
    all_tests: bool = False,
    source: Path | None = None,
    root: Path | None = None,
) -> int:
    """0 where no area misses its goal. Ctrl-C ends it early, with the table of what was tried."""
    directory = root or PROJECT.build / "mutants"
    copy = Copy(source or TREE.root, directory / "tree")
    verdicts: list[Verdict] = []
    goals: dict[str, float] = {}
    is_complete = False
    with build_lock(directory), contextlib.suppress(KeyboardInterrupt):
        copy.refresh()
        tree = areas.Tree(copy.root)
        chosen = chosen_faults(tree, expression, seed)
        if not chosen:
            raise UsageError(f"-k {expression} matches no fault: it is looked for in area and file")
        goals = {area: areas.goal(area) for area in chosen}
        for verdict in tried_faults(copy, tree, chosen, samples, all_tests):
            verdicts.append(verdict)
            word = (
                "noticed" if verdict.noticed else "UNNOTICED" if verdict.is_valid else "not tried"
            )
            print(
                f"{word:<9} {verdict.fault.place}: {verdict.sentence} "
                f"({verdict.by}, {verdict.seconds:.1f} s)",
                file=sys.stderr,
            )
        is_complete = True
    rows = table(goals, verdicts)
    print_result(rows, verdicts, all_tests)
    if json_output:
        print(json.dumps(document(rows, verdicts, seed)))
    if not is_complete:
        print("interrupted: this is what was tried until then", file=sys.stderr)
        return 130
    return int(any(row["missed"] for row in rows))
