"""Fuzz targets: libFuzzer, with the address and undefined-behavior sanitizers.

They run the headers that boards run: each its corpus, then a fixed number of inputs made from it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from rltools_host.build import cmake, tools
from rltools_host.build.boards import load_board
from rltools_host.tree import PROJECT

pytestmark = pytest.mark.all  # sanitizers

FOLDER = Path(__file__).parent
TARGETS = tuple(sorted(path.name for path in (FOLDER / "corpus").iterdir()))
WITHOUT_TARGET = {"run_inputs.cpp"}
# Inputs of a short run: a count instead of a time, so that every run does the same.
RUNS = {"frames": 4000, "policy_image": 4000}
DEFAULT_RUNS = 500
LONGEST_INPUT_BYTES = 1000
ALL_TARGETS_S = 600
FOUND = PROJECT.build / "fuzz-found"

HAS_LIBFUZZER = not tools.missing_names(["clang++", "libfuzzer"])
needs_libfuzzer = pytest.mark.skipif(not HAS_LIBFUZZER, reason="libFuzzer is not installed")


@cache
def programs(compiler: str, targets: tuple[str, ...]) -> Path:
    """The folder with fuzz_<target>: with libFuzzer where the compiler is Clang."""
    path = shutil.which(compiler)
    assert path is not None
    return cmake.build_targets(
        load_board("host"),
        [f"fuzz_{target}" for target in targets],
        directory=PROJECT.build / f"fuzz-{compiler}",
        options={
            "CMAKE_CXX_COMPILER": path,
            "RLT_LIBFUZZER": "ON" if compiler == "clang++" else "OFF",
        },
    )


def run(command: list[str], target: str) -> None:
    """A target's program; what it finds is named with what to do."""
    FOUND.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # needs ptrace
    result = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        errors="replace",
    )
    if result.returncode != 0:
        pytest.fail(
            f"{' '.join(command)}\n{result.stdout[-8000:]}\n"
            f"mend it, and add the input to tests/fuzz/corpus/{target}/",
            pytrace=False,
        )


def fuzz(target: str, new_inputs: Path, *options: str) -> None:
    """Inputs that reach something new go to a folder of this run."""
    new_inputs.mkdir(exist_ok=True)
    program = programs("clang++", TARGETS) / f"fuzz_{target}"
    artifacts = f"-artifact_prefix={FOUND}/{target}-"
    corpus = FOLDER / "corpus" / target
    limits = (f"-max_len={LONGEST_INPUT_BYTES}", "-len_control=20", "-timeout=60")
    run([str(program), *limits, artifacts, *options, str(new_inputs), str(corpus)], target)


def test_every_target_has_a_corpus() -> None:
    sources = {path.stem for path in FOLDER.glob("*.cpp") if path.name not in WITHOUT_TARGET}
    assert sources == set(TARGETS)
    for target in TARGETS:
        assert any((FOLDER / "corpus" / target).iterdir()), target


@needs_libfuzzer
@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", TARGETS)
def test_a_short_run_finds_nothing(target: str, tmp_path: Path) -> None:
    runs = len(list((FOLDER / "corpus" / target).iterdir())) + RUNS.get(target, DEFAULT_RUNS)
    fuzz(target, tmp_path / "new", f"-runs={runs}", "-seed=1")


@needs_libfuzzer
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", TARGETS)
def test_a_long_run_finds_nothing(target: str, tmp_path: Path) -> None:
    """Ten minutes in all, from another seed each time."""
    fuzz(target, tmp_path / "new", f"-max_total_time={ALL_TARGETS_S // len(TARGETS)}")


# The smallest target where libFuzzer runs all of them.
RUN_PLAINLY = ("frames",) if HAS_LIBFUZZER else TARGETS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", RUN_PLAINLY)
def test_the_corpus_without_libfuzzer(target: str) -> None:
    """With the compiler that builds everything else."""
    program = programs("g++", RUN_PLAINLY) / f"fuzz_{target}"
    run([str(program), str(FOLDER / "corpus" / target)], target)
