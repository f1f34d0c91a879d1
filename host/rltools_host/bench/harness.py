"""What the benchmarks share: one core, one thread, the machine's name, numbers that compare; peers'
virtual environments; contenders that are processes and take turns.

Environments are pinned, made on demand, and lie outside the package. A contender, whose side is
peers/turns.py, says who it is, then answers orders, a line each. While one works the others
are stopped. The time from an order to its answer is measured here, for all of them alike.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypedDict

from rltools_host.boards.description import load_board
from rltools_host.build import cmake
from rltools_host.errors import BuildError, MissingToolError, RltError, UsageError, unknown_name
from rltools_host.files import write_atomically
from rltools_host.interruption import dying_with, ending, kill_child, start_child
from rltools_host.lines import aligned
from rltools_host.runs.names import date
from rltools_host.tree import PROJECT, TREE

Row = dict[str, Any]  # of a measurement, as who measures says it
PROGRAMS_DIRECTORY = TREE.root / "host/rltools_host/bench/programs"
PEERS_DIRECTORY = TREE.root / "peers"
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


class Machine(TypedDict):
    """Nothing of it names one machine."""

    processor: str
    cores: int | None
    system: str


class Conditions(TypedDict):
    """What figures depend on, beside what is measured."""

    machine: Machine
    load_average: float | None
    date: str


def machine() -> Machine:
    """This one."""
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


def conditions() -> Conditions:
    return {"machine": machine(), "load_average": load_average(), "date": date()}


def machine_text(document: Mapping[str, Any], when: str = "") -> str:
    """The machine of a document that has its conditions."""
    of = document["machine"]
    load = f"load average {when}{document['load_average']}"
    return f"{of['processor']} ({of['cores']} cores, {load})"


def table(
    header: tuple[str, ...], entries: Sequence[Row], cells: Callable[[Row], tuple[str, ...]]
) -> list[str]:
    """A row for each entry, its title first; below them why some were not measured."""
    failed = [entry for entry in entries if "error" in entry]
    nothing = (len(header) - 1) * ("-",)
    rows = [(e["title"], *(nothing if e in failed else cells(e))) for e in entries]
    return [*aligned([header, *rows]), *(f"{e['title']}: {e['error']}" for e in failed)]


def shown(value: float | None, form: str) -> str:
    """A figure in this form; a dash where there is none."""
    return "-" if value is None else form.format(value)


def store(document: Mapping[str, Any], path: Path) -> None:
    write_atomically(path, (json.dumps(document, indent=2) + "\n").encode())


def median(values: Sequence[float]) -> float:
    return float(statistics.median(values))


def require_positive(**options: int) -> None:
    for name, value in options.items():
        if value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value}: at least 1 is needed")


def build_program(name: str, board: str = "host") -> Path:
    """A program of programs/, built for this machine where it is not up to date."""
    return cmake.build_targets(load_board(board), [name]) / name


def run_program(
    name: str, *arguments: object, board: str = "host", cores: int = 1
) -> tuple[Row, int | None]:
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
    """What a program printed; one that does not end is an error that names it. It ends with this
    process."""
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
            preexec_fn=dying_with(os.getpid()),
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


INSTALL_LIMIT_S = 1800.0


def python_of(name: str, requirements: Path, directory: Path | None = None) -> Path:
    """The environment's interpreter; installs what requirements.txt pins where it is not there."""
    environment = (directory or PROJECT.benchmarks) / name
    python = environment / "bin" / "python"
    stamp = environment / "rlt-requirements.txt"
    wanted = requirements.read_bytes()
    if python.exists() and stamp.is_file() and stamp.read_bytes() == wanted:
        return python
    print(f"Setting up {name} for comparison", file=sys.stderr)
    shutil.rmtree(environment, ignore_errors=True)
    install(name, [sys.executable, "-I", "-m", "venv", str(environment)])
    pip = [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install(name, [*pip, "-r", str(requirements)])
    stamp.write_bytes(wanted)
    return python


def install(name: str, command: Sequence[str]) -> None:
    result = run_to_end(f"installing {name}", command, INSTALL_LIMIT_S)
    if result.returncode != 0:
        raise MissingToolError(f"{name} cannot be installed: {last_line(result.stderr)}")


def last_line(text: str) -> str:
    """Of what a program complained about: the line that says what it was."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def measure(
    name: str,
    python: Path,
    script: Path,
    arguments: Sequence[object],
    limit_s: float,
) -> Row:
    """Runs a peer's script with one thread; its last_document()."""
    temporary = python.parent.parent / "tmp"  # what a peer compiles or leaves behind is its own
    temporary.mkdir(exist_ok=True)
    environment = {"PYTHONPATH": str(PEERS_DIRECTORY), "TMPDIR": str(temporary)}
    result = run_to_end(
        name,
        [str(python), str(script), *map(str, arguments)],
        limit_s,
        one_thread_environment(environment),
        temporary,
    )
    if result.returncode != 0:
        raise MeasurementError(
            f"{name} ended with code {result.returncode}: {last_line(result.stderr)}"
        )
    if document := last_document(result.stdout):
        return document
    raise MeasurementError(f"{name} printed no measurement")


def last_document(output: str) -> Row:
    """The JSON object on the last line that begins like one; empty where that is none."""
    line = next((each for each in reversed(output.splitlines()) if each.startswith("{")), "{}")
    try:
        document: Row = json.loads(line)
    except ValueError:
        return {}
    return document


def complete(name: str, row: Row, keys: Sequence[str]) -> Row:
    """The peer's row, which has all of these."""
    for key in keys:
        if key not in row:
            raise MeasurementError(f"{name} did not say its {key}")
    return row


def chosen_tasks(text: str | None, known: Collection[str]) -> list[str]:
    """As typed, names with commas; None: all."""
    if text is None:
        return list(known)
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise unknown_name("task", name, known)
    return list(dict.fromkeys(names))


LONGEST_ANSWER = 1 << 24


class TakesTurns(Protocol):
    name: str
    introduction: Row

    def turn(self, order: str, limit_s: float) -> Row: ...
    def end(self) -> None: ...


class Contender:
    """A process that is stopped whenever it is not its turn.

    It runs where its log lies, so that what a library leaves behind lies there too.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        limit_s: float,
    ) -> None:
        self.name = name
        self._log = log
        self._rest = b""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            try:
                self._process = start_child(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stream,
                    environment=environment,
                    directory=log.parent,
                )
            except OSError as error:
                raise MeasurementError(f"{name} cannot be run: {error.strerror}") from None
        try:
            self.introduction = self._answer(limit_s)
            self._process.send_signal(signal.SIGSTOP)
        except BaseException:
            self.end()
            raise

    def turn(self, order: str, limit_s: float) -> Row:
        """The answer to an order, with the seconds that it took as `wall_s`."""
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        began_s = time.perf_counter()
        try:
            self._process.stdin.write(order.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None
        answer = self._answer(limit_s)
        answer["wall_s"] = time.perf_counter() - began_s
        self._process.send_signal(signal.SIGSTOP)
        return answer

    def end(self) -> None:
        kill_child(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def _answer(self, limit_s: float) -> Row:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        until_s = time.monotonic() + limit_s
        while b"\n" not in self._rest:
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
                raise MeasurementError(f"{self.name} did not answer in {limit_s:.0f} s")
            part = os.read(pipe, 1 << 16)
            if not part:
                raise self._failed()
            self._rest += part
            if len(self._rest) > LONGEST_ANSWER:
                raise MeasurementError(f"{self.name} does not end its answer")
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            document = json.loads(line)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise MeasurementError(f"{self.name} answered something else than JSON")
        return document

    def _failed(self) -> MeasurementError:
        how = ending(self._process)
        said = last_line(self._log.read_text(encoding="utf-8", errors="replace"))
        return MeasurementError(f"{self.name}: {how}: {said}")
