"""`rlt bench inference`: one forward pass of a 13-64-64-4 policy, ours and others.

On this machine all compute the same network on the same inputs; whose outputs differ is not timed
but refused. With --board an emulated board computes it, and instructions are counted, not time: a
real processor issues up to two in a cycle, and stalls.
"""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import rltools_host
from benchmarks import harness
from benchmarks.harness import Json, MeasurementError, Peers, Row
from rltools_host.boards.board_link import open_board_link
from rltools_host.boards.transport import Link
from rltools_host.build import cmake
from rltools_host.build.boards import ALL_EMULATED, Board, emulated_boards, load_board
from rltools_host.errors import RefusedError, RltError, UsageError
from rltools_host.lines import aligned
from rltools_host.tree import PROJECT, command_line

PEERS = "inference"
WIDTHS = (13, 64, 64, 4)
NETWORK = "-".join(map(str, WIDTHS))
BATCH = 256
REPETITIONS = 20
TOLERANCE = 1e-4
OURS = "ours"
TITLES = {
    OURS: "this repository",
    "litert": "LiteRT",
    "numpy": "NumPy",
}


def inference(
    peers: Peers = None,
    repetitions: Annotated[
        int | None,
        typer.Option(metavar="N", help="Repetitions; the median counts. [default: 20]"),
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(
            metavar="BOARD",
            help="On an emulated board, or all-emulated: guest instructions of generic code, "
            "CMSIS-DSP, the board's kernels and a policy image.",
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Measure latency and throughput of a 13-64-64-4 policy."""
    if board is None:
        count = REPETITIONS if repetitions is None else repetitions
        harness.require_positive(repetitions=count)
        document = measure_here(harness.chosen_peers(PEERS, peers), count)
        harness.tell(document, lines(document), json_output)
        return
    if peers is not None or repetitions is not None:
        raise UsageError("--peers and --repetitions have no effect with --board: leave them out")
    document = measure_on_boards(chosen_boards(board))
    harness.tell(document, board_lines(document), json_output)


# ---- On this machine -----------------------------------------------------------------------------


def case() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return a case (parameters, then inputs), and its outputs in double precision."""
    rng = np.random.default_rng(0)
    parts = []
    inputs = rng.standard_normal((BATCH, WIDTHS[0])).astype(np.float32)
    values = inputs.astype(np.float64)
    for index, (fan_in, fan_out) in enumerate(itertools.pairwise(WIDTHS)):
        bound = fan_in**-0.5
        weights = rng.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32)
        bias = rng.uniform(-bound, bound, fan_out).astype(np.float32)
        parts += [weights.ravel(), bias]
        values = values @ weights + bias
        if index < len(WIDTHS) - 2:
            values = np.maximum(values, 0.0)
    return np.concatenate([*parts, inputs.ravel()]), values.astype(np.float32)


def measure_here(peers: Sequence[str], repetitions: int) -> Row:
    """Measure ours and these peers, and return what `--json` prints."""
    values, expected = case()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "case.bin"
        path.write_bytes(values.astype("<f4").tobytes())
        raw, core = harness.run_program("inference", path, repetitions)
        if not raw["same_bits"]:
            raise RefusedError(
                f"a batch gives other bits than a single sample: run `{command_line('test')}`"
            )
        row = {"version": rltools_host.__version__, "interface": "C++", **raw}
        rows = [checked(OURS, row, expected)]
        for name in peers:
            print(f"measuring {name}", file=sys.stderr)
            try:
                with harness.pinned():
                    row = harness.measure(PEERS, name, [path, "--repetitions", repetitions])
                rows.append(checked(name, row, expected))
            except RltError as error:
                rows.append({"name": name, "error": str(error)})
    return {
        "rows": rows,
        "network": NETWORK,
        "batch": BATCH,
        "repetitions": repetitions,
        "core": core,
        **harness.conditions(),
    }


def checked(name: str, raw: Mapping[str, Any], expected: NDArray[np.float32]) -> Row:
    """Return the row of a contender, whose outputs must be those of the network."""
    output = np.asarray(raw["output"], np.float32).reshape(expected.shape)
    difference = float(np.max(np.abs(output - expected)))
    if not difference <= TOLERANCE:  # a NaN too
        raise MeasurementError(f"{name} computes something else: off by {difference:.2g}")
    names = ("version", "interface", "latency_ns", "batched_ns")
    row = {key: raw[key] for key in names}
    return {"name": name, **row, "largest_difference": difference}


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table of times for people."""
    header = ("library", "version", "through", "one sample", "in batches", "million a second")
    entries = [{"title": TITLES.get(row["name"], row["name"]), **row} for row in document["rows"]]
    return [
        f"Forward pass of {document['network']} with ReLU, median of {document['repetitions']}, "
        f"batches of {document['batch']}; one core of "
        f"{harness.machine_text(document)}",
        "",
        *harness.table(header, entries, cells),
    ]


def cells(row: Row) -> tuple[str, ...]:
    """Return a contender's cells."""
    return (
        row["version"],
        row["interface"],
        f"{row['latency_ns']:,.0f} ns",
        f"{row['batched_ns']:,.0f} ns",
        f"{1e3 / row['batched_ns']:.2f}",
    )


# ---- On emulated boards --------------------------------------------------------------------------

TARGET = "bench-forward"
BOARD_LIMIT_S = 120.0
LARGEST_DIFFERENCE = 1e-5  # of another order of additions
CMSIS_DSP = harness.PROGRAMS / "cmsis_dsp.txt"
BOARDS_OURS = ("generic", "optimized", "policy image")


def chosen_boards(name: str) -> list[Board]:
    """Return the emulated board of this name, or all of them that can run here."""
    emulated = [board for board in emulated_boards() if board.has_counter]
    if name == ALL_EMULATED:
        return [b for b in emulated if not cmake.missing_optional_tools(b, to_run=True)]
    board = load_board(name)
    if board.name not in [known.name for known in emulated]:
        raise UsageError(
            f"nothing counts the instructions of {board.name}, as some emulators do: "
            f"choose {ALL_EMULATED} or one of {', '.join(known.name for known in emulated)}"
        )
    return [board]


def measure_on_boards(boards: Sequence[Board]) -> Row:
    """Count instructions on these boards, and return what `--json` prints."""
    results = []
    for board in boards:
        reason = None
        sources: Path | None = None
        if board.toolchain.cortex_m:
            try:
                sources = dsp_sources()
            except RltError as error:
                reason = str(error)
        rows = measure_on(board, sources)
        results.append({"board": board.name, "rows": rows, "left_out": reason})
    return {"network": NETWORK, "unit": "guest instructions", "results": results}


def dsp_sources() -> Path:
    """Return the folder of CMSIS-DSP's sources, fetched where they are not there."""
    directory = harness.ENVIRONMENTS / "cmsis-dsp"
    stamp = directory / "rlt-requirements.txt"
    if stamp.is_file() and stamp.read_bytes() == CMSIS_DSP.read_bytes():
        return directory
    print("Fetching CMSIS-DSP for comparison", file=sys.stderr)
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as temporary:
        pip = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps"]
        options = ["--disable-pip-version-check", "--no-binary", "cmsisdsp", "--require-hashes"]
        # pip asks a source distribution's build for its name and version, which needs no isolation
        # from what that build installs; a failure leaves the archive, whose hash was checked.
        command = [*pip, *options, "--dest", temporary, "-r", str(CMSIS_DSP)]
        harness.install("CMSIS-DSP", command)
        archives = list(Path(temporary).glob("*.tar.gz"))
        if len(archives) != 1:
            raise MeasurementError("CMSIS-DSP came without its sources")
        with tarfile.open(archives[0]) as archive:
            # Python 3.11 has no filters before 3.11.4.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(Path(temporary) / "sources")
        (unpacked,) = (Path(temporary) / "sources").iterdir()
        shutil.move(unpacked, directory)
    stamp.write_bytes(CMSIS_DSP.read_bytes())
    return directory


def measure_on(board: Board, sources: Path | None) -> list[Row]:
    """Build the board's program, beside CMSIS-DSP where there are sources, and return its rows."""
    options = {"RLT_CMSIS_DSP": str(sources) if sources is not None else ""}
    cmake.build_targets(board, [TARGET], options=options)
    program = PROJECT.board_build(board.name) / "bench" / f"forward{board.program_suffix}"
    link = open_board_link(board, None, program, "")
    try:
        return checked_on(board, [json.loads(line) for line in output_of(link).splitlines()])
    finally:
        link.close()


def output_of(link: Link) -> str:
    """Return what the program prints between the question that it begins with and its end."""
    received = b""
    deadline = time.monotonic() + BOARD_LIMIT_S
    while b"?" not in received and time.monotonic() < deadline:
        received += link.read(0.5)
    link.write(b"!")
    while b"{}\n" not in received:
        if time.monotonic() > deadline:
            raise MeasurementError(f"no end of the measurement within {BOARD_LIMIT_S:.0f} s")
        received += link.read(0.5)
    return received.decode().lstrip("?").removesuffix("{}\n")


def checked_on(board: Board, rows: list[Row]) -> list[Row]:
    """Return the rows: ours must have the reference's bits, others come close to them."""
    reference = {
        (row["hidden"], row["input"]): row["output_crc32"]
        for row in rows
        if row["implementation"] == "generic"
    }
    for row in rows:
        row["difference"] = row.pop("difference_1e9") / 1e9
        is_ours = row["implementation"] in BOARDS_OURS
        same_bits = row["output_crc32"] == reference[(row["hidden"], row["input"])]
        if (is_ours and not same_bits) or row["difference"] > LARGEST_DIFFERENCE:
            raise MeasurementError(
                f"{row['implementation']} computes something else on {board.name}: "
                f"off by {row['difference']:.2g}"
            )
    return rows


def board_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a table of instructions for each board."""
    text = [f"One forward pass of {NETWORK} with a tanh output, in guest instructions (not time)"]
    for result in document["results"]:
        cases = list(dict.fromkeys((row["hidden"], row["input"]) for row in result["rows"]))
        table = [(result["board"], *(f"{hidden}, {given}" for hidden, given in cases))]
        by_implementation: dict[str, dict[tuple[str, str], int]] = {}
        for row in result["rows"]:
            counts = by_implementation.setdefault(row["implementation"], {})
            counts[(row["hidden"], row["input"])] = row["counts"]
        for implementation, counts in by_implementation.items():
            table.append((implementation, *(f"{counts[case]:,}" for case in cases)))
        text += ["", *aligned(table)]
        if result["left_out"]:
            text.append(f"without CMSIS-DSP: {result['left_out']}")
    return text


if __name__ == "__main__":
    harness.main(inference, "--peers onnxruntime,litert")
