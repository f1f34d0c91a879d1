"""`rlt bench inference --board all-emulated`: one forward pass of 13-64-64-4 on emulated boards.

Instructions are counted, not time: a real processor issues up to two in a cycle, and stalls.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from rltools_host.bench import harness, peer_environment, static_estimate
from rltools_host.boards.description import ALL_EMULATED, Board, emulated_boards, load_board
from rltools_host.build import cmake
from rltools_host.errors import RltError, UsageError
from rltools_host.link.board_link import open_board_link
from rltools_host.link.transport import Link
from rltools_host.project import PROJECT
from rltools_host.ui.table import aligned

TARGET = "bench-forward"
NETWORK = "13-64-64-4"
LIMIT_S = 120.0
LARGEST_DIFFERENCE = 1e-5  # of another order of additions
REQUIREMENTS = harness.BENCHMARKS_DIRECTORY / "cmsis_dsp.txt"
# Where the multiply-adds of a pass are, by a part of the function's symbol.
HOT_LOOPS = {"optimised": "accumulate_terms", "cmsis-dsp": "arm_mat_vec_mult_f32"}
OURS = ("generic", "optimised", "policy image")

Row = dict[str, Any]


def run(board_name: str, json_output: bool = False, dsp: bool = True) -> dict[str, Any]:
    """Measures on one board or all emulated ones; prints tables, returns what `--json` prints."""
    results = []
    for board in chosen_boards(board_name):
        reason = None
        sources: Path | None = None
        cortex_m = board.toolchain.cortex_m
        if dsp and cortex_m:
            try:
                sources = dsp_sources()
            except RltError as error:
                reason = str(error)
        rows = measure(board, sources)
        found = estimates(board) if cortex_m else []
        results.append({"board": board.name, "rows": rows, "left_out": reason, "estimates": found})
    document = {"network": NETWORK, "unit": "guest instructions", "results": results}
    print("\n".join(lines(document)))
    if json_output:
        print(json.dumps(document))
    return document


def chosen_boards(name: str) -> list[Board]:
    emulated = emulated_boards()
    if name == ALL_EMULATED:
        return [b for b in emulated if not cmake.missing_optional_tools(b, to_run=True)]
    board = load_board(name)
    if board.emulator is None:
        raise UsageError(
            f"{board.name} is not emulated, and instructions are counted by an emulator: "
            f"choose {ALL_EMULATED} or one of {', '.join(known.name for known in emulated)}"
        )
    return [board]


def dsp_sources(directory: Path | None = None) -> Path:
    """The folder of CMSIS-DSP's sources, fetched where they are not there."""
    directory = directory or PROJECT.benchmarks / "cmsis-dsp"
    stamp = directory / "rlt-requirements.txt"
    if stamp.is_file() and stamp.read_bytes() == REQUIREMENTS.read_bytes():
        return directory
    print("Fetching CMSIS-DSP for comparison", file=sys.stderr, flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as temporary:
        pip = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps"]
        options = ["--disable-pip-version-check", "--no-binary", "cmsisdsp", "--require-hashes"]
        # pip asks a source distribution's build for its name and version, which needs no isolation
        # from what that build installs; a failure leaves the archive, whose hash was checked.
        command = [*pip, *options, "--dest", temporary, "-r", str(REQUIREMENTS)]
        peer_environment.install("CMSIS-DSP", command)
        archives = list(Path(temporary).glob("*.tar.gz"))
        if len(archives) != 1:
            raise harness.MeasurementError("CMSIS-DSP came without its sources")
        with tarfile.open(archives[0]) as archive:
            # Python 3.11 has no filters before 3.11.4.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(Path(temporary) / "sources")
        (unpacked,) = (Path(temporary) / "sources").iterdir()
        shutil.move(unpacked, directory)
    stamp.write_bytes(REQUIREMENTS.read_bytes())
    return directory


def program_of(board: Board) -> Path:
    tree = PROJECT.board_build(board.name)
    return tree / "bench" / f"forward{board.program_suffix}"


def estimates(board: Board) -> list[dict[str, object]]:
    """Of the loops in the program that was measured."""
    objdump = f"{board.toolchain.prefix}objdump"
    return static_estimate.estimates(objdump, program_of(board), HOT_LOOPS)


def measure(board: Board, sources: Path | None) -> list[Row]:
    options = {"RLT_CMSIS_DSP": str(sources) if sources is not None else ""}
    cmake.build_targets(board, [TARGET], options=options)
    link = open_board_link(board, None, program_of(board), "")
    try:
        return checked(board, [json.loads(line) for line in output_of(link).splitlines()])
    finally:
        link.close()


def output_of(link: Link) -> str:
    """What the program prints, without the question that it begins with and the empty object."""
    received = b""
    deadline = time.monotonic() + LIMIT_S
    while b"?" not in received and time.monotonic() < deadline:
        received += link.read(0.5)
    link.write(b"!")
    while b"{}\n" not in received:
        if time.monotonic() > deadline:
            raise harness.MeasurementError(f"no end of the measurement within {LIMIT_S:.0f} s")
        received += link.read(0.5)
    return received.decode().lstrip("?").removesuffix("{}\n")


def checked(board: Board, rows: list[Row]) -> list[Row]:
    """Ours have the reference's bits, others come close; who does not is not compared."""
    reference = {
        (row["hidden"], row["input"]): row["output_crc32"]
        for row in rows
        if row["implementation"] == "generic"
    }
    for row in rows:
        row["difference"] = row.pop("difference_1e9") / 1e9
        ours = row["implementation"] in OURS
        same_bits = row["output_crc32"] == reference[(row["hidden"], row["input"])]
        if (ours and not same_bits) or row["difference"] > LARGEST_DIFFERENCE:
            raise harness.MeasurementError(
                f"{row['implementation']} computes something else on {board.name}: "
                f"off by {row['difference']:.2g}"
            )
    return rows


def lines(document: dict[str, Any]) -> list[str]:
    """What a person reads: a table for each board."""
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
        if result["estimates"]:
            text += ["", *estimate_lines(result["estimates"])]
    return text


def estimate_lines(rows: list[dict[str, Any]]) -> list[str]:
    def cell(value: float | None) -> str:
        return "llvm-mca is not installed" if value is None else f"{value:.2f}"

    table = [("estimated cycles a multiply-add in the hot loop", "Cortex-M7", "Cortex-M4")]
    for row in rows:
        table.append((row["loop"], cell(row["cortex_m7_cycles"]), cell(row["cortex_m4_cycles"])))
    return aligned(table)
