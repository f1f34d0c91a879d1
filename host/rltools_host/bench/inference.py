"""`rlt bench inference`: one forward pass of a 13-64-64-4 policy on this machine, ours and others.

All compute the same network on the same inputs; whose outputs differ is not timed but refused.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rltools_host
from rltools_host.bench import harness
from rltools_host.bench.harness import Row
from rltools_host.bench.training import chosen_peers
from rltools_host.errors import RltError, VerificationError
from rltools_host.tree import PROJECT, command_line

WIDTHS = (13, 64, 64, 4)
BATCH = 256
PEERS_DIRECTORY = harness.PEERS_DIRECTORY / "inference"
PEER_LIMIT_S = 600.0
TOLERANCE = 1e-4
OURS = "ours"
TITLES = {
    OURS: "this repository",
    "emlearn": "emlearn",
    "litert": "LiteRT",
    "numpy": "NumPy",
    "onnxruntime": "onnxruntime",
}


def case() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The floats of a case (parameters, then inputs), and the outputs in double precision."""
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


def run(
    peers: str | None,
    repetitions: int,
    peers_directory: Path = PEERS_DIRECTORY,
    environments_directory: Path | None = None,
) -> dict[str, Any]:
    """Measures, prints the table and returns what `--json` prints."""
    harness.require_positive(repetitions=repetitions)
    names = chosen_peers("run", peers, False, peers_directory)
    values, expected = case()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "case.bin"
        path.write_bytes(values.astype("<f4").tobytes())
        raw, core = harness.run_program("inference", path, repetitions)
        if not raw["same_bits"]:
            raise VerificationError(
                f"a batch gives other bits than a single sample: run `{command_line('test')}`"
            )
        row = {"version": rltools_host.__version__, "interface": "C++", **raw}
        rows = [checked(OURS, row, expected)]
        for name in names:
            print(f"measuring {name}", file=sys.stderr)
            try:
                folder = peers_directory / name
                python = harness.python_of(
                    name, folder / "requirements.txt", environments_directory or PROJECT.benchmarks
                )
                arguments = [path, "--repetitions", repetitions]
                with harness.pinned():
                    row = harness.measure(name, python, folder / "run.py", arguments, PEER_LIMIT_S)
                rows.append(checked(name, row, expected))
            except RltError as error:
                rows.append({"name": name, "error": str(error)})
    document = {
        "rows": rows,
        "network": "-".join(map(str, WIDTHS)),
        "batch": BATCH,
        "repetitions": repetitions,
        "core": core,
        **harness.conditions(),
    }
    print("\n".join(lines(document)))
    return document


def checked(name: str, raw: Mapping[str, Any], expected: NDArray[np.float32]) -> Row:
    """The row of a peer, once its outputs are those of the network."""
    try:
        output = np.asarray(raw["output"], np.float32).reshape(expected.shape)
        row = {
            "name": name,
            "version": str(raw["version"]),
            "interface": str(raw["interface"]),
            "latency_ns": float(raw["latency_ns"]),
            "batched_ns": float(raw["batched_ns"]),
        }
    except (KeyError, TypeError, ValueError):
        raise harness.MeasurementError(f"{name} printed no measurement") from None
    difference = float(np.max(np.abs(output - expected)))
    if not difference <= TOLERANCE:  # a NaN too
        raise harness.MeasurementError(f"{name} computes something else: off by {difference:.2g}")
    return {**row, "largest_difference": difference}


def lines(document: Mapping[str, Any]) -> list[str]:
    """What a person reads."""
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
    return (
        row["version"],
        row["interface"],
        f"{row['latency_ns']:,.0f} ns",
        f"{row['batched_ns']:,.0f} ns",
        f"{1e3 / row['batched_ns']:.2f}",
    )
