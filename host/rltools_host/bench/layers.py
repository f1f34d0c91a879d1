"""`rlt bench layers`: a dense layer's three products by width, our kernels and OpenBLAS's, and a
small network with a recurrent layer.

The programs of programs/layers.cpp, one for each width, measure one shape at a time, all sides
taking turns with the core's peak; programs/recurrent.cpp measures the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from rltools_host.bench import harness
from rltools_host.boards.description import load_board
from rltools_host.errors import UsageError, VerificationError
from rltools_host.lines import aligned
from rltools_host.toolchain import tools
from rltools_host.tree import command_line

WIDTHS = (16, 32, 64, 128, 256, 512, 1024)  # programs/layers.cpp lists them too
BATCHES = (1, 32, 100, 256)
OURS_BOARD = "host"
BLAS_BOARD = "host-blas"
# Of the largest element. Rounding is 2 n 2^-24 of the sum of absolute products for n = 1,024 terms
# at most, and far less in fact; another product is off by about 1.
TOLERANCE = 1e-3


class Product(TypedDict):
    """One product of a shape; what is BLAS's only where that is there."""

    product: str
    width: int
    batch: int
    peak_gflops: float
    ours_gflops: float
    ours_share: float
    blas_gflops: NotRequired[float]
    blas_share: NotRequired[float]
    blas_time: NotRequired[float]
    blas_is_selected: NotRequired[bool]
    largest_difference: NotRequired[float]


class Layers(harness.Conditions):
    """What `--json` prints."""

    rows: list[Product]
    recurrent: Mapping[str, Any]  # evaluated_network()
    peak_gflops: float
    zeros_percent: int
    repetitions: int
    vector_lanes: int
    blas: Mapping[str, str] | None
    without_blas: str | None
    core: int | None


def run(widths: str, batches: str, zeros: int, repetitions: int) -> Layers:
    """Measures, and prints the table."""
    harness.require_positive(repetitions=repetitions)
    if not 0 <= zeros <= 100:
        raise UsageError(f"--zeros {zeros}: a percentage from 0 to 100 is needed")
    chosen_widths = chosen("widths", widths, WIDTHS)
    chosen_batches = chosen("batches", batches, BATCHES)
    missing = tools.missing_names(load_board(BLAS_BOARD).libraries)
    board = OURS_BOARD if missing else BLAS_BOARD
    conditions = harness.conditions()
    rows: list[Product] = []
    core: int | None = None
    blas = None
    for batch in chosen_batches:
        for width in chosen_widths:
            raw, core = harness.run_program(
                f"layers_{width}", batch, zeros, repetitions, board=board
            )
            rows += evaluated(raw, width, batch)
            blas = raw["blas"]
    recurrent, core = harness.run_program("recurrent", repetitions, board=OURS_BOARD)
    document: Layers = {
        "rows": rows,
        "recurrent": evaluated_network(recurrent),
        "peak_gflops": harness.median([row["peak_gflops"] for row in rows]),
        "zeros_percent": zeros,
        "repetitions": repetitions,
        "vector_lanes": raw["lanes"],
        "blas": blas,
        "without_blas": f"{missing[0]} is not installed: see `{command_line('doctor')}`"
        if missing
        else None,
        "core": core,
        **conditions,
    }
    print("\n".join(lines(document)))
    return document


def chosen(name: str, value: str, known: Sequence[int]) -> list[int]:
    """The numbers of an option such as --widths 64,128."""
    numbers = [int(word) if word.isdigit() else -1 for word in value.split(",")]
    if not set(numbers) <= set(known):
        listed = ", ".join(map(str, known))
        raise UsageError(f"--{name} {value}: choose among {listed}, separated by commas")
    return sorted(set(numbers))


def evaluated(raw: Mapping[str, Any], width: int, batch: int) -> list[Product]:
    """One row for each product of a shape; medians, and ratios within a repetition."""
    rows: list[Product] = []
    repetitions = len(raw["products"][0]["ours_gflops"])
    for index, product in enumerate(raw["products"]):
        peaks = raw["peak_gflops"][index * repetitions : (index + 1) * repetitions]
        ours = product["ours_gflops"]
        row: Product = {
            "product": product["name"],
            "width": width,
            "batch": batch,
            "peak_gflops": harness.median(peaks),
            "ours_gflops": harness.median(ours),
            "ours_share": harness.median(ratios(ours, peaks)),
        }
        if "blas_gflops" in product:
            difference = product["largest_difference"]
            if not difference <= TOLERANCE:  # a NaN too
                raise VerificationError(
                    f"BLAS gives another {product['name']} for width {width}, batch {batch} "
                    f"(off by {difference:.2g}): check the installed OpenBLAS with "
                    f"`{command_line('test')}`"
                )
            blas = product["blas_gflops"]
            row |= {
                "blas_gflops": harness.median(blas),
                "blas_share": harness.median(ratios(blas, peaks)),
                "blas_time": harness.median(ratios(ours, blas)),
                "blas_is_selected": product["blas_is_selected"],
                "largest_difference": difference,
            }
        rows.append(row)
    return rows


def evaluated_network(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Medians and fastest times, and of the core's peak the share within a repetition."""
    row = {key: raw[key] for key in ("network", "windows", "steps", "lanes")}
    for name, count in (("forward", "forward_multiply_adds"), ("step", "multiply_adds")):
        times = raw[f"{name}_ns"]
        reached = [2 * raw[count] / time for time in times]
        row |= {
            count: raw[count],
            f"{name}_ns": harness.median(times),
            f"{name}_fastest_ns": min(times),
            f"{name}_share": harness.median(ratios(reached, raw["peak_gflops"])),
        }
    return row


def ratios(values: Sequence[float], others: Sequence[float]) -> list[float]:
    return [value / other for value, other in zip(values, others, strict=True)]


def lines(document: Layers) -> list[str]:
    """What a person reads."""
    table = [("batch", "width", "product", "ours", "of the peak", "BLAS", "of the peak", "BLAS's")]
    table.append(("", "", "", "GFLOP/s", "", "GFLOP/s", "", "time / ours"))
    for row in document["rows"]:
        blas = ("-", "-", "-")
        if "blas_gflops" in row:
            mark = " *" if row["blas_is_selected"] else ""
            share = f"{100 * row['blas_share']:.0f} %"
            blas = (f"{row['blas_gflops']:.1f}", share, f"{row['blas_time']:.2f}{mark}")
        ours = (f"{row['ours_gflops']:.1f}", f"{100 * row['ours_share']:.0f} %")
        table.append((str(row["batch"]), str(row["width"]), row["product"], *ours, *blas))
    zeros = document["zeros_percent"]
    return [
        "Products of a square dense layer, median of "
        f"{document['repetitions']}, on one core of {harness.machine_text(document)}",
        f"  multiply-add peak   {document['peak_gflops']:.1f} GFLOP/s   "
        f"{document['vector_lanes']} lanes of 32 bits",
        f"  BLAS                {blas_line(document)}",
        f"  zeros               {zeros} % of the inputs and output gradients"
        + ("; skipped terms count as computed" if zeros else ""),
        "",
        *aligned(table),
        *([] if document["blas"] is None else ["", "* the board host-blas takes BLAS there"]),
        "",
        *network_lines(document["recurrent"]),
    ]


def network_lines(row: Mapping[str, Any]) -> list[str]:
    """The network's passes; its sigmoids and tanhs count as nothing."""
    table = [("", "time a step", "fastest", "multiply-adds", "of the peak")]
    for name, key, count in (
        ("forward", "forward", "forward_multiply_adds"),
        ("forward and backward", "step", "multiply_adds"),
    ):
        times = (f"{row[f'{key}_ns']:.0f} ns", f"{row[f'{key}_fastest_ns']:.0f} ns")
        table.append((name, *times, f"{row[count]:,}", f"{100 * row[f'{key}_share']:.0f} %"))
    heading = f"{row['network']} over {row['windows']} windows of {row['steps']} steps"
    return [heading, *aligned(table)]


def blas_line(document: Layers) -> str:
    """Which library, and for which processor it chose its kernels."""
    blas = document["blas"]
    if blas is None:
        return f"not measured: {document['without_blas']}"
    name, _, version = str(blas["library"]).partition(" ")
    return f"{name} {version.split()[0]}, one thread, kernels for {blas['kernels']}"
