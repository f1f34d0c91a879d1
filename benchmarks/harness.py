"""The harness of the benchmarks: one core and one thread, the machine, our programs, peers in
environments of their own, contenders that take turns, tables, charts and the command line.

A contender that takes turns is a process; its side is peers/turns.py. It says who it is, then
answers orders, a line each. While one works the others are stopped. The time from an order to its
answer is measured here, for all of them in the same way.
"""

from __future__ import annotations

import contextlib
import fcntl
import inspect
import json
import os
import platform
import pty
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer

from rltools_host.build import cmake
from rltools_host.build.boards import load_board
from rltools_host.commands import cli
from rltools_host.commands.options import Json as Json
from rltools_host.errors import BuildError, MissingToolError, RltError, UsageError, near_matches
from rltools_host.interruption import ending
from rltools_host.lines import aligned
from rltools_host.runs.names import date
from rltools_host.system import kill_child, start_child
from rltools_host.system.posix import dying_with
from rltools_host.tree import PROJECT, TREE

Row = dict[str, Any]  # of a measurement, as who measures says it
FOLDER = TREE.root / "benchmarks"
PROGRAMS = FOLDER / "programs"
PEERS = FOLDER / "peers"
ENVIRONMENTS = PROJECT.build / "bench"  # virtual ones, of the peers
PROGRAM_LIMIT_S = 600.0
PEER_LIMIT_S = TURN_LIMIT_S = 1800.0
INSTALL_LIMIT_S = 1800.0
TERMINAL_SIZE = (40, 120)  # lines, columns

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

Peers = Annotated[
    str | None,
    typer.Option(metavar="A,B", help='Other libraries by name; "" for none. [default: all]'),
]
Repetitions = Annotated[int, typer.Option(metavar="N", help="Repetitions; the median counts.")]
Chart = Annotated[Path | None, typer.Option(metavar="PATH", help="Draw bars into this SVG.")]


class MeasurementError(RltError):
    """A contender that did not run, or did not say what it measured; the others go on."""


# ---- The command line ----------------------------------------------------------------------------


def main(function: Callable[..., None], example: str) -> NoReturn:
    """Run a benchmark, whose parameters are the options, and end the process as `rlt` does."""
    name = function.__name__.replace("_", "-")
    help_text = inspect.getdoc(function) or ""
    command = cli.one_command(function, name, help_text, f"bench {name} {example}".strip())
    cli.main(sys.argv[1:], command, ("bench", name))


def tell(document: Mapping[str, Any], lines: Sequence[str], json_output: bool) -> None:
    """Print what a person reads and, with `--json`, the document as the last line."""
    print("\n".join(lines))
    if json_output:
        print(json.dumps(document))


def require_positive(**options: int) -> None:
    """Refuse an option below 1."""
    for name, value in options.items():
        if value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value}: at least 1 is needed")


def split_names(typed: str) -> list[str]:
    """Return the names of a list with commas, each once."""
    return list(dict.fromkeys(name.strip() for name in typed.split(",") if name.strip()))


# ---- The machine ---------------------------------------------------------------------------------


@contextlib.contextmanager
def pinned(cores: int = 1) -> Iterator[int | None]:
    """Hold this process, and what it starts, to one core or as many as there are up to `cores`.

    Yield the last of them, or None where the system cannot.
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


def machine() -> Row:
    """Return the kind of this machine; nothing of it names one."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                model = value.strip()
                break
    return {"processor": model, "cores": os.cpu_count(), "system": platform.system()}


def conditions() -> Row:
    """Return the circumstances of a measurement that begins now; the load is of the last minute."""
    return {"machine": machine(), "load_average": round(os.getloadavg()[0], 2), "date": date()}


def machine_text(document: Mapping[str, Any], when: str = "") -> str:
    """Return the machine of a document that has its conditions, in words."""
    kind = document["machine"]
    load = f"load average {when}{document['load_average']}"
    return f"{kind['processor']} ({kind['cores']} cores, {load})"


# ---- Figures -------------------------------------------------------------------------------------


def table(
    header: tuple[str, ...], entries: Sequence[Row], cells: Callable[[Row], tuple[str, ...]]
) -> list[str]:
    """Return a line for each entry, its title first, and below why some were not measured."""
    failed = [entry for entry in entries if "error" in entry]
    nothing = (len(header) - 1) * ("-",)
    rows = [(e["title"], *(nothing if e in failed else cells(e))) for e in entries]
    return [*aligned([header, *rows]), *(f"{e['title']}: {e['error']}" for e in failed)]


def shown(value: float | None, form: str) -> str:
    """Return a figure in this form, or a dash where there is none."""
    return "-" if value is None else form.format(value)


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the middle two."""
    return float(statistics.median(values))


# ---- Programs ------------------------------------------------------------------------------------


def build_program(name: str, board: str = "host") -> Path:
    """Build a program of programs/ for this machine where it is not up to date, return its path."""
    return cmake.build_targets(load_board(board), [name]) / name


def run_program(
    name: str, *arguments: object, board: str = "host", cores: int = 1
) -> tuple[Row, int | None]:
    """Run a program on one core, or on several; return what it printed, and the last core."""
    command = [str(build_program(name, board)), *map(str, arguments)]
    with pinned(cores) as core:
        result = run_to_end(name, command, PROGRAM_LIMIT_S)
    if result.returncode != 0:
        raise BuildError(
            f"{name} ended with code {result.returncode}: {result.stderr.strip()}; "
            f"delete {PROJECT.board_build(board)}, it is made again"
        )
    return json.loads(result.stdout), core


def run_to_end(
    name: str,
    command: Sequence[str],
    limit_s: float,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    error_stream: int = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    """Run a program that ends with this process, and return what it printed.

    One that does not end is an error that names it.
    """
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


def thread_variables(threads: int) -> dict[str, str]:
    """Return the variables that hold numeric libraries to a number of threads."""
    counts = {name: str(threads) for name in ONE_THREAD if name.endswith("_NUM_THREADS")}
    return {**counts, "CUDA_VISIBLE_DEVICES": ""}


# ---- Peers ---------------------------------------------------------------------------------------


def chosen_peers(kind: str, typed: str | None, script: str = "run.py") -> list[str]:
    """Return the folders of PEERS / kind that have the script: all, or those that were typed."""
    known = sorted(path.parent.name for path in (PEERS / kind).glob(f"*/{script}"))
    names = known if typed is None else split_names(typed)
    for name in names:
        if name not in known:
            raise UsageError(f'--peers: unknown peer "{name}": {near_matches(name, known)}')
    return names


def python_of(kind: str, name: str) -> Path:
    """Return the interpreter of a peer's environment, which is made where its pins have changed."""
    requirements = PEERS / kind / name / "requirements.txt"
    environment = ENVIRONMENTS / kind / name
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
    """Run a command that installs what a peer needs."""
    result = run_to_end(f"installing {name}", command, INSTALL_LIMIT_S)
    if result.returncode != 0:
        raise MissingToolError(f"{name} cannot be installed: {last_line(result.stderr)}")


def last_line(text: str) -> str:
    """Return the line of a complaint that says what was wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it wrote nothing"


def command_of(kind: str, name: str, script: str = "run.py") -> tuple[list[str], Path]:
    """Return the command of a peer's script, and a folder for what it compiles or leaves behind."""
    python = python_of(kind, name)
    temporary = python.parent.parent / "tmp"
    temporary.mkdir(exist_ok=True)
    return [str(python), str(PEERS / kind / name / script)], temporary


def measure(kind: str, name: str, arguments: Sequence[object], script: str = "run.py") -> Row:
    """Run a peer's script with one thread, and return its last_document()."""
    command, temporary = command_of(kind, name, script)
    environment = {"PYTHONPATH": str(PEERS), "TMPDIR": str(temporary)}
    result = run_to_end(
        name,
        [*command, *map(str, arguments)],
        PEER_LIMIT_S,
        {**os.environ, **ONE_THREAD, **environment},
        temporary,
    )
    if result.returncode != 0:
        raise MeasurementError(
            f"{name} ended with code {result.returncode}: {last_line(result.stderr)}"
        )
    return last_document(result.stdout)


def last_document(output: str) -> Row:
    """Return the JSON object on the last line that begins like one, or an empty one."""
    line = next((each for each in reversed(output.splitlines()) if each.startswith("{")), "{}")
    try:
        document: Row = json.loads(line)
    except ValueError:
        return {}
    return document


# ---- Turns ---------------------------------------------------------------------------------------


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
            self._process = start_child(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                environment=environment,
                directory=log.parent,
            )
        try:
            self.introduction = self._answer(limit_s)
            self._process.send_signal(signal.SIGSTOP)
        except BaseException:
            self.end()
            raise

    def turn(self, order: str) -> Row:
        """Return the answer to an order, with the seconds that it took as `wall_s`."""
        self._process.send_signal(signal.SIGCONT)
        began_s = time.perf_counter()
        self._send(order.encode() + b"\n")
        answer = self._answer(TURN_LIMIT_S)
        answer["wall_s"] = time.perf_counter() - began_s
        self._process.send_signal(signal.SIGSTOP)
        return answer

    def end(self) -> None:
        """End the process."""
        kill_child(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def _answer(self, limit_s: float) -> Row:
        self._receive(lambda: b"\n" in self._rest, limit_s)
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            answer: Row = json.loads(line)
        except ValueError:
            raise MeasurementError(f"{self.name} answered something else than JSON") from None
        return answer

    def _receive(self, is_whole: Callable[[], bool], limit_s: float) -> None:
        """Add to `_rest` until it has a whole answer."""
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        until_s = time.monotonic() + limit_s
        while not is_whole():
            left_s = until_s - time.monotonic()
            if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
                raise MeasurementError(f"{self.name} did not answer in {limit_s:.0f} s")
            part = os.read(pipe, 1 << 16)
            if not part:
                raise self._failed()
            self._rest += part

    def _failed(self) -> MeasurementError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10.0)  # its pipe is closed, so that it is about to end
        how = ending(self._process)
        message = last_line(self._log.read_text(encoding="utf-8", errors="replace"))
        return MeasurementError(f"{self.name}: {how}: {message}")


# ---- rlt as its users run it ---------------------------------------------------------------------


def rlt(
    words: Sequence[str], variables: Mapping[str, str], error_stream: int = subprocess.PIPE
) -> Row:
    """Run a command of `rlt` in a process of its own, and return what it says with `--json`."""
    command = [sys.executable, "-m", "rltools_host", *words, "--json"]
    environment = {**os.environ, **variables, "PYTHONPATH": str(TREE.root / "host")}
    name = f"rlt {words[0]}"
    result = run_to_end(name, command, PEER_LIMIT_S, environment, error_stream=error_stream)
    document = last_document(result.stdout)
    if result.returncode != 0:
        reason = document.get("error") or last_line(result.stderr or "")
        raise MeasurementError(f"{name}: {reason}")
    return document


def train_on_a_terminal(
    experiment: str, words: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> Row:
    """Run `rlt train --json` with the live screen, and return what it says."""
    words = ["train", experiment, *words, "--out", str(folder)]
    with terminal() as screen:
        return rlt(words, {**variables, "TERM": "xterm-256color"}, screen)


@contextlib.contextmanager
def terminal() -> Iterator[int]:
    """Open a terminal to write to, whose other side takes all there is as a window would."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", *TERMINAL_SIZE, 0, 0))

    def take_all() -> None:
        with contextlib.suppress(OSError):  # EIO: nobody writes any more
            while os.read(reader, 65536):
                pass

    window = threading.Thread(target=take_all, daemon=True)
    window.start()
    try:
        yield writer
    finally:
        os.close(writer)
        window.join(1.0)
        os.close(reader)


# ---- Charts --------------------------------------------------------------------------------------

OUR_COLOR, OTHER_COLOR = "#c2410c", "#64748b"


class Bar(NamedTuple):
    """A bar of a chart."""

    title: str
    value: float
    label: str
    is_ours: bool


class Panel(NamedTuple):
    """Bars on one axis."""

    bars: Sequence[Bar]
    unit: str
    is_logarithmic: bool = False


def bars_of(entries: Sequence[Row], key: str, form: str, ours: Sequence[str]) -> list[Bar]:
    """Return a bar for each entry of a summary that has this figure."""
    return [
        Bar(entry["title"], entry[key], form.format(entry[key]), entry["name"] in ours)
        for entry in entries
        if key in entry
    ]


def draw_panels(
    panels: Sequence[Panel], heading: str, document: Mapping[str, Any], path: Path
) -> None:
    """Draw panels into an SVG, one below the other, with the machine and the date."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    panels = [panel for panel in panels if panel.bars]
    if not panels:
        print("no chart: there is nothing to draw")
        return
    counts = [len(panel.bars) for panel in panels]
    size = (8, 0.8 * len(panels) + 0.42 * sum(counts))
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 11}
    with matplotlib.rc_context(style):
        figure, rows = pyplot.subplots(
            *(len(panels), 1),
            figsize=size,
            layout="constrained",
            height_ratios=counts,
            squeeze=False,
        )
        for axes, panel in zip(rows[:, 0], panels, strict=True):
            drawn = panel.bars[::-1]
            rectangles = axes.barh(
                [bar.title for bar in drawn],
                [bar.value for bar in drawn],
                color=[OUR_COLOR if bar.is_ours else OTHER_COLOR for bar in drawn],
            )
            axes.bar_label(rectangles, [bar.label for bar in drawn], padding=4)
            if panel.is_logarithmic:
                axes.set_xscale("log")
            axes.margins(x=0.12)
            axes.set_xlabel(panel.unit)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        where = f"{document['machine']['processor']}, {document['date']}"
        figure.suptitle(f"{heading}, {where}", fontsize=11)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    print(f"wrote {path}")
