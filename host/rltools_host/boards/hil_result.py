"""The result of a check of a board, as text and JSON; the cost of a policy there, by its
counter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from numpy.typing import NDArray

from rltools_host.boards.messages import Progress
from rltools_host.boards.parity import Agreement, Parity
from rltools_host.boards.policies import MAX_SAMPLES, Measured, PolicyClient
from rltools_host.documents import Count, Digest, Line, Number
from rltools_host.lines import UNLIMITED, folded

PER_MILLE = {"median": 500, "p99": 990, "p999": 999}
BINS = 12
Samples = NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """Samples in counts of the board's counter, without the overhead of measuring."""

    samples: Samples

    def quantile(self, per_mille: int) -> int:
        """Return the smallest sample that so many per mille of the samples do not exceed."""
        rank = -(-len(self.samples) * per_mille // 1000)
        return int(np.partition(self.samples, rank - 1)[rank - 1])

    @property
    def mean(self) -> float:
        return float(self.samples.mean())

    def histogram(self) -> tuple[list[int], list[int]]:
        """Return the edges, and how many samples lie from each up to the next, to the last
        inclusive.

        All bins but one divide the range up to the 99th percentile; the last one reaches to the
        maximum.
        """
        low, most = int(self.samples.min()), int(self.samples.max())
        bulk = self.quantile(PER_MILLE["p99"])
        width = max(1, -(-(bulk + 1 - low) // (BINS - 1)))
        edges = [low + width * number for number in range((bulk - low) // width + 2)]
        if most >= edges[-1]:
            edges.append(most + 1)
        counts, _ = np.histogram(self.samples, np.array(edges))
        return edges, counts.tolist()

    def statistics(self) -> Statistics:
        edges, counts = self.histogram()
        return Statistics(
            min=int(self.samples.min()),
            mean=round(self.mean, 3),
            **{name: self.quantile(share) for name, share in PER_MILLE.items()},
            max=int(self.samples.max()),
            histogram=Histogram(edges, counts),
        )


@dataclass(frozen=True)
class Cost:
    """The cost of the acting policy."""

    overhead: int  # what measuring takes, the median; it has been subtracted
    forward: Distribution
    tick: Distribution


def measure_cost(client: PolicyClient, samples: int, progress: Progress | None = None) -> Cost:
    """Measure the forward pass and the executor's tick, `samples` times each."""
    whole = 2 * samples + min(samples, MAX_SAMPLES)
    done = 0

    def measured(what: int, count: int) -> Samples:
        nonlocal done
        taken: list[int] = []
        while len(taken) < count:
            taken += client.measure(what, min(count - len(taken), MAX_SAMPLES))
            if progress is not None:
                progress(done + len(taken), whole)
        done += count
        return np.array(taken, np.int64)

    nothing = Distribution(measured(Measured.NOTHING, min(samples, MAX_SAMPLES)))
    overhead = nothing.quantile(PER_MILLE["median"])
    forward = measured(Measured.FORWARD, samples)
    tick = measured(Measured.TICK, samples)
    without = [Distribution(np.maximum(values - overhead, 0)) for values in (forward, tick)]
    return Cost(overhead, *without)


INSTRUCTIONS, TIME = "instructions", "time_us"  # keys, and what their numbers are
UNITS = {INSTRUCTIONS: "guest instructions", TIME: "microseconds"}
STATISTICS = {
    "min": "min",
    "mean": "mean",
    "median": "median",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
}


class Histogram(Struct, frozen=True):
    edges: Annotated[list[Count], Meta(min_length=1)]
    counts: list[Count]


class Statistics(Struct, frozen=True):
    min: Count
    mean: Number
    median: Count
    p99: Count
    p999: Count
    max: Count
    histogram: Histogram


class Costs(Struct, frozen=True):
    """The costs in one of the units; null if the bits were wrong or the board counts nothing."""

    instructions: Statistics | UnsetType | None = UNSET
    time_us: Statistics | UnsetType | None = UNSET


class Found(Struct, frozen=True, kw_only=True):
    """The document hil-<board>.json; costs are null if the bits were wrong or the board counts
    nothing."""

    board: Line
    experiment: Line
    implementation: Line
    contract: Line
    network: Line
    policy_sha256: Digest
    samples: Count
    max_abs_diff: float
    instructions: Statistics | UnsetType | None = UNSET
    time_us: Statistics | UnsetType | None = UNSET
    tick: Costs
    overhead: Count | None
    flash_bytes: Count | None
    ram_bytes: Count | None
    stack_bytes: Count | None
    outputs_sha256: Digest
    parity: Agreement

    @property
    def unit(self) -> str:
        return TIME if self.instructions is UNSET else INSTRUCTIONS

    @property
    def costs(self) -> list[tuple[str, Statistics]]:
        """Return what was measured, with the name of each."""
        both = (("forward", getattr(self, self.unit)), ("tick", getattr(self.tick, self.unit)))
        return [(what, statistics) for what, statistics in both if statistics]


class Unchecked(Struct, frozen=True, omit_defaults=True):
    """A board of `--board all-emulated` that was not checked, with the reason."""

    board: str
    skipped: str = ""  # for tools that are missing
    error: str = ""


class Results(Struct, frozen=True):
    """The object that `--board all-emulated --json` prints."""

    results: list[Found | Unchecked]


@dataclass(frozen=True)
class HilResult:
    found: Found  # what `--json` and hil-<board>.json have
    parity: Parity


def number_text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


PARITY_HEADER = ("board", "implementation", "same bits", "outputs", "flash", "RAM", "stack")
COST_HEADER = ("board", "cost of", *STATISTICS.values(), "unit")


def parity_row(found: Found) -> tuple[str, ...]:
    """Return the row under PARITY_HEADER."""
    sizes = (found.flash_bytes, found.ram_bytes, found.stack_bytes)
    digits = found.outputs_sha256[:12]
    return (found.board, found.implementation, str(found.parity), digits, *map(number_text, sizes))


def cost_rows(found: Found) -> list[tuple[str, ...]]:
    """Return the rows under COST_HEADER."""
    return [
        (
            found.board,
            what,
            *(number_text(getattr(statistics, key)) for key in STATISTICS),
            UNITS[found.unit],
        )
        for what, statistics in found.costs
    ]


def lines(results: Sequence[Found | Unchecked], width: int = UNLIMITED) -> list[str]:
    """Return tables over boards; for a board that was not checked, the reason."""
    found = [each for each in results if isinstance(each, Found)]
    text = folded([PARITY_HEADER, *map(parity_row, found)], width) if found else []
    rows = [row for each in found for row in cost_rows(each)]
    if rows:
        text += ["", *folded([COST_HEADER, *rows], width)]
    for each in results:
        if isinstance(each, Found) and each.parity.holds and not each.costs:
            text.append(
                f"{each.board}: its emulator counts no instructions, so no cost is measured"
            )
        if isinstance(each, Unchecked):
            text.append(f"{each.board}: {each.skipped or each.error}")
    return text
