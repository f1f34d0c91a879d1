"""What the benchmarks share: one core, one thread, the machine's name, and numbers that compare."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rltools_host.boards.description import load_board
from rltools_host.build import cmake
from rltools_host.errors import BuildError, RltError, UsageError
from rltools_host.project import PROJECT
from rltools_host.tree import TREE

BENCHMARKS_DIRECTORY = TREE.root / "benchmarks"
PROGRAM_LIMIT_S = 600.0

# Every numeric library that a peer may bring is held to the one thread that we use ourselves.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
}


class MeasurementError(RltError):
    """A contender did not run, or did not say what it measured; the others go on."""


@contextlib.contextmanager
def pinned(cores: int = 1) -> Iterator[int | None]:
    """Holds this process, and what it starts, to one core or as many as there are up to `cores`.

    The last of them, or None where the system cannot.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    last = sorted(before)[-cores:]  # interrupts mostly go to the first
    os.sched_setaffinity(0, last)
    try:
        yield last[-1]
    finally:
        os.sched_setaffinity(0, before)


def machine() -> dict[str, Any]:
    """The processor's model and number of cores; nothing that names one machine."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                model = value.strip()
                break
    return {"processor": model, "cores": os.cpu_count(), "system": platform.system()}


def load_average() -> float | None:
    """Of the last minute: what else the machine was doing."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def require_positive(**options: int) -> None:
    for name, value in options.items():
        if value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value}: at least 1 is needed")


def build_program(name: str, board: str = "host") -> Path:
    """A program of benchmarks/, built for this machine where it is not up to date."""
    return cmake.build_targets(load_board(board), [name]) / name


def run_program(
    name: str, *arguments: object, board: str = "host", cores: int = 1
) -> tuple[dict[str, Any], int | None]:
    """Runs a benchmark program on one core, or on several; what it printed, and the last core."""
    command = [str(build_program(name, board)), *map(str, arguments)]
    with pinned(cores) as core:
        result = run_to_end(name, command, PROGRAM_LIMIT_S)
    if result.returncode != 0:
        raise BuildError(
            f"{name} ended with code {result.returncode}: {result.stderr.strip()}; "
            f"delete {PROJECT.board_build(board)}, it is made again"
        )
    document = json.loads(result.stdout)
    if not isinstance(document, dict):
        raise BuildError(f"{name} printed no object: build it again")
    return document, core


def run_to_end(
    name: str,
    command: Sequence[str],
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    error_stream: int = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    """What a program printed; one that does not end is an error that names it."""
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=error_stream,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=limit_s,
            env=environment,
            cwd=directory,
        )
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"{name} did not end within {limit_s:.0f} s") from None
    except OSError as error:
        raise MeasurementError(f"{name} cannot be run: {error.strerror}") from None


def one_thread_environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **ONE_THREAD, **variables}


def thread_variables(threads: int) -> dict[str, str]:
    """What holds numeric libraries to a number of threads."""
    counts = {name: str(threads) for name in ONE_THREAD if name.endswith("_NUM_THREADS")}
    return {**counts, "CUDA_VISIBLE_DEVICES": ""}
