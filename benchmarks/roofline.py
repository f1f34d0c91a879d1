"""`rlt bench roofline`: one TD3 step against the multiply-add peak of the core that it runs on.

programs/roofline.cpp measures; here medians become ratios, which hold on a busy machine too.
The same run takes turns with one that has a second thread (programs/training_loop.cpp).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from benchmarks import harness
from benchmarks.harness import Json, Repetitions, Row
from rltools_host.errors import RefusedError
from rltools_host.lines import aligned
from rltools_host.system import processors

LARGEST_BUFFER_MB = 256
SMALLEST_BUFFER_MB = 64
CACHES_PER_BUFFER = 8
FALLBACK_CACHE_BYTES = 32 << 20


def roofline(
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of a run.")] = 10_000,
    repetitions: Repetitions = 5,
    buffer_mb: Annotated[
        int | None,
        typer.Option(
            metavar="MB", help="Buffer for the memory bandwidth. [default: well beyond the caches]"
        ),
    ] = None,
    json_output: Json = False,
) -> None:
    """Compare a TD3 step with the core's peak, by phase."""
    buffer_mb = usual_buffer_mb() if buffer_mb is None else buffer_mb
    harness.require_positive(steps=steps, repetitions=repetitions, buffer_mb=buffer_mb)
    conditions = harness.conditions()
    raw, core = harness.run_program("roofline", steps, repetitions, buffer_mb)
    cores = processors()
    pairs = [turns(steps) for _ in range(repetitions if cores > 1 else 0)]
    document = {
        **evaluated(raw),
        "two_threads": two_threads(cores, pairs),
        "core": core,
        **conditions,
    }
    harness.tell(document, lines(document), json_output)


def usual_buffer_mb() -> int:
    """Return megabytes of the triad's three arrays: well beyond the last cache, or the cap."""
    cache_bytes = 0
    with contextlib.suppress(ValueError, OSError):
        cache_bytes = os.sysconf("SC_LEVEL3_CACHE_SIZE")
    if cache_bytes <= 0:
        cache_bytes = FALLBACK_CACHE_BYTES
    wanted = CACHES_PER_BUFFER * cache_bytes >> 20
    return max(SMALLEST_BUFFER_MB, min(LARGEST_BUFFER_MB, wanted))


def evaluated(raw: Mapping[str, Any]) -> Row:
    """Return the figures of what the program measured."""
    if not raw["same_bits"]:
        raise RefusedError(
            "the run with clocks ended in other bits than train_step: bring profiled_train_step "
            "of programs/roofline.cpp up to date with rl/algorithms/td3.h"
        )
    operations = sum(phase["operations"] for phase in raw["phases"])
    ticks = sum(phase["ticks"] for phase in raw["phases"])
    peaks, runs = raw["peak_gflops"], raw["plain_s"]
    # A run is compared with the peaks before and after it: the clock rate may drift.
    shares = [
        operations / run_s / 1e9 / ((peaks[2 * index] + peaks[2 * index + 1]) / 2)
        for index, run_s in enumerate(runs)
    ]
    run_s = harness.median(runs)
    peak_gflops = harness.median(peaks)
    updates = max(1, raw["updates"])
    phases: list[Row] = []
    for phase in raw["phases"]:
        share = phase["ticks"] / ticks if ticks else 0.0
        gflops = phase["operations"] / (share * run_s) / 1e9 if share else 0.0
        phases.append(
            {
                "name": phase["name"],
                "share_of_time": share,
                "us_per_step": 1e6 * share * run_s / raw["steps"],
                "mflop_per_step": phase["operations"] / updates / 1e6,
                "gflops": gflops,
                "share_of_peak": gflops / peak_gflops,
            }
        )
    return {
        "peak_gflops": peak_gflops,
        "achieved_gflops": operations / run_s / 1e9,
        "share": harness.median(shares),
        "shares": shares,
        "phases": phases,
        "bandwidth_gb_s": harness.median(raw["bandwidth_gb_s"]),
        "mflop_per_step": operations / updates / 1e6,
        "step_us": 1e6 * run_s / raw["steps"],
        "run_s": run_s,
        "clocks_cost": harness.median(raw["profiled_s"]) / run_s - 1,
        "vector_lanes": raw["lanes"],
        "kind_of_core": raw["kind_of_core"],
        "steps": raw["steps"],
        "repetitions": len(runs),
    }


def turns(steps: int) -> tuple[Row, Row]:
    """Run with one thread, then with two."""
    one, _ = harness.run_program("training_loop", "td3", steps)
    two, _ = harness.run_program("training_loop", "td3", steps, board="host-threads", cores=2)
    return one, two


def two_threads(
    processors: int, pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> Row:
    """Return what the second thread gains, from pairs of runs with one and with two."""
    if any(one["state_sha256"] != two["state_sha256"] for one, two in pairs):
        raise RefusedError(
            "the run with two threads ended in other bits than the run with one: "
            "see tests/lib/kernels/threads/test_host_threads.cpp"
        )
    if processors < 2:
        return {"processors": processors, "ratio": None}
    ratios = [two["wall_s"] / one["wall_s"] for one, two in pairs]
    return {
        "processors": processors,
        "run_s": harness.median([two["wall_s"] for _, two in pairs]),
        "one_thread_s": harness.median([one["wall_s"] for one, _ in pairs]),
        "ratio": harness.median(ratios),
        "ratios": ratios,
    }


def two_threads_line(measured: Mapping[str, Any]) -> str:
    """Return the line about the second thread."""
    if measured["ratio"] is None:
        return (
            "  two threads         not measured: this process may use one core only, "
            "and a second thread needs another"
        )
    return (
        f"  two threads         {measured['run_s']:.3f} s   {measured['ratio']:.2f} of the "
        f"{measured['one_thread_s']:.3f} s that one thread takes in turn with it"
    )


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the table for people."""
    header = ("phase", "time", "us a step", "MFLOP a step", "GFLOP/s", "of the peak")
    rows = [
        (
            phase["name"],
            f"{100 * phase['share_of_time']:.1f} %",
            f"{phase['us_per_step']:.2f}",
            f"{phase['mflop_per_step']:.3f}",
            f"{phase['gflops']:.1f}",
            f"{100 * phase['share_of_peak']:.0f} %",
        )
        for phase in document["phases"]
    ]
    whole = (
        "whole step",
        "100 %",
        f"{document['step_us']:.2f}",
        f"{document['mflop_per_step']:.3f}",
        f"{document['achieved_gflops']:.1f}",
        f"{100 * document['share']:.0f} %",
    )
    return [
        f"TD3 on Pendulum-v1, {document['steps']:,} steps, median of {document['repetitions']} "
        f"runs on one core of {harness.machine_text(document)}",
        f"  multiply-add peak   {document['peak_gflops']:.1f} GFLOP/s   "
        f"{document['vector_lanes']} lanes of 32 bits; kernels for a core with "
        f"{document['kind_of_core']}",
        f"  memory bandwidth    {document['bandwidth_gb_s']:.1f} GB/s   triad",
        f"  training            {document['achieved_gflops']:.1f} GFLOP/s   "
        f"{100 * document['share']:.1f} % of the peak   {document['run_s']:.3f} s",
        two_threads_line(document["two_threads"]),
        "",
        *aligned([header, *rows, whole]),
        "",
        "Times are processor time, with two threads time on the clock. The phases' shares are of a "
        f"second run that reads the clock between them ({100 * document['clocks_cost']:+.1f} %).",
    ]


if __name__ == "__main__":
    harness.main(roofline, "--json")
