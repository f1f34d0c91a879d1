"""What was found of a board, for people and as JSON; what a policy costs there, by its counter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from numpy.typing import NDArray

from rltools_host.boards.messages import Identity, Progress
from rltools_host.boards.parity import Parity
from rltools_host.boards.policies import MOST_SAMPLES, Measured, PolicyClient
from rltools_host.build.firmware import Footprint
from rltools_host.documents import Count, Digest, Line, Number, typed
from rltools_host.lines import UNLIMITED, folded
from rltools_host.policies.image import PolicyImage

PER_MILLE = {"median": 500, "p99": 990, "p999": 999}
BINS = 12
Samples = NDArray[np.int64]


@dataclass(frozen=True)
class Distribution:
    """Samples without what measuring itself takes, in counts of the board's counter."""

    samples: Samples

    def quantile(self, per_mille: int) -> int:
        """The least sample that so many are not above."""
        rank = -(-len(self.samples) * per_mille // 1000)
        return int(np.partition(self.samples, rank - 1)[rank - 1])

    @property
    def mean(self) -> float:
        return float(self.samples.mean())

    def histogram(self) -> tuple[list[int], list[int]]:
        """Edges, and how many samples lie from each up to the next, to the last inclusive.

        Most bins are those of the bulk; the last one reaches to the maximum.
        """
        low, most = int(self.samples.min()), int(self.samples.max())
        bulk = self.quantile(PER_MILLE["p99"])
        width = max(1, -(-(bulk + 1 - low) // (BINS - 1)))
        edges = [low + width * number for number in range((bulk - low) // width + 2)]
        if most >= edges[-1]:
            edges.append(most + 1)
        counts, _ = np.histogram(self.samples, np.array(edges))
        return edges, counts.tolist()

    def document(self) -> dict[str, Any]:
        edges, counts = self.histogram()
        return {
            "min": int(self.samples.min()),
            "mean": round(self.mean, 3),
            **{name: self.quantile(share) for name, share in PER_MILLE.items()},
            "max": int(self.samples.max()),
            "histogram": {"edges": edges, "counts": counts},
        }


@dataclass(frozen=True)
class Cost:
    overhead: int  # what measuring takes, the median; it has been subtracted
    forward: Distribution
    tick: Distribution


def measure_cost(client: PolicyClient, samples: int, progress: Progress | None = None) -> Cost:
    """Of the forward pass and of the executor's tick; `samples` of each."""
    whole = 2 * samples + min(samples, MOST_SAMPLES)
    done = 0

    def measured(what: int, count: int) -> Samples:
        nonlocal done
        taken: list[int] = []
        while len(taken) < count:
            taken += client.measure(what, min(count - len(taken), MOST_SAMPLES))
            if progress is not None:
                progress(done + len(taken), whole)
        done += count
        return np.array(taken, np.int64)

    nothing = Distribution(measured(Measured.NOTHING, min(samples, MOST_SAMPLES)))
    overhead = nothing.quantile(PER_MILLE["median"])
    forward = measured(Measured.FORWARD, samples)
    tick = measured(Measured.TICK, samples)
    without = [Distribution(np.maximum(values - overhead, 0)) for values in (forward, tick)]
    return Cost(overhead, *without)


def bars(edges: Sequence[int], counts: Sequence[int], width: int = 40) -> list[str]:
    """A histogram as lines of text."""
    label = max(len(f"{edge:,}") for edge in edges)
    largest = max(counts, default=0) or 1
    return [
        f"{low:>{label},} - {high - 1:>{label},}  {count:>8,}  "
        f"{'#' * max(1 if count else 0, round(width * count / largest))}".rstrip()
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


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


@dataclass(frozen=True)
class HilResult:
    board: str
    contract: str
    identity: Identity
    image: PolicyImage
    parity: Parity
    cost: Cost | None  # None where the bits are wrong
    samples: int
    footprint: Footprint | None  # None where it is not known
    stack_bytes: int  # the most ever used; 0 where not known

    @property
    def unit(self) -> str:
        return INSTRUCTIONS if self.identity.counts_instructions else TIME

    def document(self) -> dict[str, Any]:
        cost, footprint = self.cost, self.footprint
        return {
            "board": self.board,
            "experiment": self.image.experiment,
            "implementation": self.identity.device,
            "contract": self.contract,
            "network": self.image.shape,
            "policy_sha256": self.image.sha256,
            "samples": self.samples if cost else 0,
            "max_abs_diff": self.parity.max_abs_diff,
            self.unit: cost.forward.document() if cost else None,
            "tick": {self.unit: cost.tick.document() if cost else None},
            "overhead": cost.overhead if cost else None,
            "flash_bytes": footprint.flash_bytes if footprint else None,
            "ram_bytes": footprint.ram_bytes if footprint else None,
            "stack_bytes": self.stack_bytes or None,
            "outputs_sha256": self.parity.outputs_sha256,
            "parity": self.parity.document(),
        }


# -- what was found, as it is written --------------------------------------------------------------


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
    """By one of the units; null where the bits were wrong."""

    instructions: Statistics | UnsetType | None = UNSET
    time_us: Statistics | None = None


class Agreement(Struct, frozen=True):
    inputs: Count
    not_finite_inputs: Count
    mismatches: Count
    executor_calls: Count
    executor_mismatches: Count

    def __str__(self) -> str:
        """For example "1,000 of 1,000 inputs, 65 of 65 calls"."""
        inputs, calls = self.inputs + self.not_finite_inputs, self.executor_calls
        return (
            f"{inputs - self.mismatches:,} of {inputs:,} inputs, "
            f"{calls - self.executor_mismatches:,} of {calls:,} calls"
        )


class Found(Costs, frozen=True, kw_only=True):
    """hil-<board>.json: what is shown of HilResult.document()."""

    board: Line
    implementation: Line
    policy_sha256: Digest
    outputs_sha256: Digest
    parity: Agreement
    samples: Count
    tick: Costs
    flash_bytes: Count | None
    ram_bytes: Count | None
    stack_bytes: Count | None

    @property
    def unit(self) -> str:
        return TIME if self.instructions is UNSET else INSTRUCTIONS

    @property
    def costs(self) -> list[tuple[str, Statistics]]:
        """What was measured."""
        both = (("forward", getattr(self, self.unit)), ("tick", getattr(self.tick, self.unit)))
        return [(what, statistics) for what, statistics in both if statistics]


def number_text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


PARITY_HEADER = ("board", "implementation", "same bits", "outputs", "flash", "RAM", "stack")
COST_HEADER = ("board", "cost of", *STATISTICS.values(), "unit")


def parity_row(found: Found) -> tuple[str, ...]:
    """Under PARITY_HEADER."""
    sizes = (found.flash_bytes, found.ram_bytes, found.stack_bytes)
    digits = found.outputs_sha256[:12]
    return (found.board, found.implementation, str(found.parity), digits, *map(number_text, sizes))


def cost_rows(found: Found) -> list[tuple[str, ...]]:
    """Under COST_HEADER."""
    return [
        (
            found.board,
            what,
            *(number_text(getattr(statistics, key)) for key in STATISTICS),
            UNITS[found.unit],
        )
        for what, statistics in found.costs
    ]


def lines(documents: Sequence[Mapping[str, Any]], width: int = UNLIMITED) -> list[str]:
    """Tables over boards; those that were not measured say why."""
    found: list[Found] = [typed(document, Found) for document in documents if "parity" in document]
    text = folded([PARITY_HEADER, *map(parity_row, found)], width) if found else []
    rows = [row for each in found for row in cost_rows(each)]
    if rows:
        text += ["", *folded([COST_HEADER, *rows], width)]
    for document in documents:
        if "parity" not in document:
            text.append(f"{document['board']}: {document.get('skipped') or document.get('error')}")
    return text


def histogram_lines(found: Found) -> list[str]:
    """The distributions of a board's costs, as bars."""
    text: list[str] = []
    for what, statistics in found.costs:
        title = f"{found.board}: {UNITS[found.unit]} of a {what}, {found.samples:,} samples"
        histogram = statistics.histogram
        text += ["", title, *bars(histogram.edges, histogram.counts)]
    return text
