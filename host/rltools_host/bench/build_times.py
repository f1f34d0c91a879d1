"""`rlt bench build`: what a user waits for before an experiment trains on this machine.

From the word `rlt train` to the first training step: where nothing has changed, and where a header
of the core has. Beside it the build from nothing. Nothing is pinned: a build takes what there is.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from rltools_host.bench import harness
from rltools_host.boards.description import load_board
from rltools_host.build import cmake, experiments, firmware
from rltools_host.files import read_json
from rltools_host.runs.names import microseconds_of
from rltools_host.toolchain import tools
from rltools_host.tree import PROJECT, TREE

REPETITIONS = 3
LIMIT_S = 300.0
LAUNCHER = TREE.root / "rlt"
DEPENDENCIES_OF = re.compile(r"^(\S+): #deps")


class Times(TypedDict):
    """Seconds, medians."""

    experiment: str
    header: str
    repetitions: int
    from_nothing_s: float
    unchanged_start_s: float
    changed_header_start_s: float


class BuildTimes(Times, harness.Conditions):
    """What `--json` prints."""


def run(experiment: str, repetitions: int, directory: Path | None = None) -> BuildTimes:
    """Measures, and prints it."""
    harness.require_positive(repetitions=repetitions)
    experiments.require_experiment(experiment)
    with without_compiler_cache():
        times = build_times(experiment, directory or PROJECT.benchmarks / "build-time", repetitions)
    document: BuildTimes = {**times, **harness.conditions()}
    print("\n".join(lines(document)))
    return document


@contextlib.contextmanager
def without_compiler_cache() -> Iterator[None]:
    """Where there is one (cmake/compiler_cache.cmake), nothing would be compiled."""
    name = "CCACHE_DISABLE"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def build_times(experiment: str, directory: Path, repetitions: int = REPETITIONS) -> Times:
    """`directory` is where the build from nothing goes."""
    header = header_of_algorithm(experiment)
    experiments.describe(experiment)
    firmware.build_firmware(load_board("host"), experiment)
    start(experiment)  # so that what Python compiles once is compiled
    return {
        "experiment": experiment,
        "header": str(header.relative_to(TREE.root)),
        "repetitions": repetitions,
        "from_nothing_s": harness.median(
            [build_from_nothing(experiment, directory) for _ in range(repetitions)]
        ),
        "unchanged_start_s": harness.median([start(experiment) for _ in range(repetitions)]),
        "changed_header_start_s": harness.median(
            [start_after_change(experiment, header) for _ in range(repetitions)]
        ),
    }


def header_of_algorithm(experiment: str) -> Path:
    """Of the core, and included by nothing but what trains with it."""
    algorithm = experiments.describe(experiment).algorithm.lower()
    include = TREE.include / "rltools"
    return include / "rl" / "algorithms" / f"{algorithm}.h"


def build_from_nothing(experiment: str, directory: Path) -> float:
    """Compiling and linking what `rlt train` needs, in a build tree that is configured.

    What is generated lies in that tree too: cleaning it must not remove what others share.
    """
    options = {"RLT_PROTOCOL_DIRECTORY": str(directory / "protocol")}
    targets = [cmake.firmware_target(experiment), f"describe-{experiment}"]

    def build(names: list[str], announcement: str) -> None:
        cmake.build_targets(
            load_board("host"),
            names,
            directory=directory,
            options=options,
            announcement=announcement,
        )

    build(["rlt_revision"], "Preparing a build")  # next to nothing: configuring is what counts
    clean = [tools.program("ninja"), "-C", str(directory), "-t", "clean", *targets]
    subprocess.run(clean, check=True, capture_output=True, timeout=60)
    began = time.monotonic()
    build(targets, "Timing a build")
    return time.monotonic() - began


def start(experiment: str) -> float:
    """From the command to its first training step."""
    with tempfile.TemporaryDirectory() as folder:
        run_path = Path(folder) / "run"
        words = [experiment, "--board", "host", "--steps", "100", "--out", str(run_path)]
        began = time.time()
        result = harness.run_to_end("rlt train", [str(LAUNCHER), "train", *words], LIMIT_S)
        if result.returncode != 0:
            raise harness.MeasurementError(f"rlt train: {harness.last_line(result.stderr)}")
        metadata = read_json(run_path / "run.json")
    training_began_us = microseconds_of(metadata["sessions"][-1]["training_began"])
    return training_began_us / 1e6 - began


def start_after_change(experiment: str, header: Path) -> float:
    """The same where everything that was compiled from a header is to be compiled again.

    The objects are removed; the header itself, which may lie in an editor, stays untouched.
    """
    for compiled in objects_of(header, PROJECT.board_build("host"), experiment):
        compiled.unlink()
    return start(experiment)


def objects_of(header: Path, directory: Path, experiment: str) -> list[Path]:
    """What `rlt train` of the experiment needs and was compiled from the header."""
    ninja = [tools.program("ninja"), "-C", str(directory)]
    targets = [cmake.firmware_target(experiment), f"describe-{experiment}"]
    commands = ninja_output([*ninja, "-t", "commands", *targets])
    dependencies = ninja_output([*ninja, "-t", "deps"])
    expected = str(cmake.link_tree(directory) / header.relative_to(TREE.root))
    compiled = ""
    found = []
    for line in dependencies.splitlines():
        if match := DEPENDENCIES_OF.match(line):
            compiled = match.group(1)
        elif (
            os.path.normpath(directory / line.strip()) == expected
            and f" -o {compiled} " in commands
        ):
            found.append(directory / compiled)
    return [path for path in found if path.is_file()]


def ninja_output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def lines(document: BuildTimes) -> list[str]:
    """What a person reads."""
    return [
        f"{document['experiment']} on this machine, median of {document['repetitions']}:",
        f"  built from nothing in {document['from_nothing_s']:.2f} s",
        f"  training {document['unchanged_start_s']:.2f} s after `rlt train`, nothing changed",
        f"  training {document['changed_header_start_s']:.2f} s after `rlt train`, with a change "
        f"of {document['header']}",
    ]
