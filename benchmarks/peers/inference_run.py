"""The network, the clock and the printed line that peers of `rlt bench inference` share.

inference/<name>/run.py defines two functions and calls run().
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

WIDTHS = (13, 64, 64, 4)
BATCH = 256
SECONDS = 0.02  # of one repetition


@dataclass(frozen=True)
class Case:
    """Layers of weights (in, out) and biases (out), ReLU between them, and BATCH inputs."""

    layers: tuple[tuple[Any, Any], ...]
    inputs: Any


def read_case(path: str) -> Case:
    values = np.fromfile(path, np.float32)
    layers = []
    offset = 0
    for inputs, outputs in itertools.pairwise(WIDTHS):
        weights = values[offset : offset + inputs * outputs].reshape(inputs, outputs)
        offset += inputs * outputs
        layers.append((weights, values[offset : offset + outputs]))
        offset += outputs
    return Case(tuple(layers), values[offset:].reshape(BATCH, WIDTHS[0]))


def call_ns(call: Callable[[], object], repetitions: int) -> float:
    """Return the processor time of a call, the median over the repetitions."""
    calls = 1
    results: list[float] = []
    while len(results) < repetitions:
        began = time.process_time_ns()
        for _ in range(calls):
            call()
        elapsed_ns = time.process_time_ns() - began
        if elapsed_ns < SECONDS / 2 * 1e9:
            calls *= 2
        else:
            results.append(elapsed_ns / calls)
    return statistics.median(results)


def run(
    package: str,
    prepare: Callable[[Case], tuple[Callable[[], object], Callable[[], Any]]],
    interface: str,
    passes_per_call: int = 1,
) -> None:
    """Time the two functions that `prepare` returns, and print a line of results."""
    from importlib import metadata

    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("--repetitions", type=int, default=20)
    arguments = parser.parse_args()
    single, batched = prepare(read_case(arguments.case))
    output = np.asarray(batched(), np.float32).ravel()
    print(
        json.dumps(
            {
                "version": metadata.version(package),
                "interface": interface,
                "latency_ns": call_ns(single, arguments.repetitions) / passes_per_call,
                "batched_ns": call_ns(batched, arguments.repetitions) / BATCH,
                "batch": BATCH,
                "output": output.tolist(),
            }
        )
    )
