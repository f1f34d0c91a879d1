"""What a policy costs on a board: samples of its counter, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rltools_host.clients.file_packet import Progress
from rltools_host.clients.policies import MOST_SAMPLES, Measured, PolicyClient

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
