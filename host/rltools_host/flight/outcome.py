"""What counts as a successful flight, why one fails, and how sure a rate of success is."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

NORMAL_QUANTILE_95 = 1.959963984540054  # 97.5 % of a standard normal distribution lie below


class Cause(enum.IntEnum):
    """Of a flight's end, as host/native/flight_library.cpp numbers them."""

    SUCCESS = 0
    POSITION_LIMIT = 1
    VELOCITY_LIMIT = 2
    RATE_LIMIT = 3
    EXECUTOR_FAULT = 4
    TOO_FAR = 5

    @property
    def key(self) -> str:
        """In JSON."""
        return self.name.lower()

    @property
    def text(self) -> str:
        return TEXTS[self][1]

    @property
    def short(self) -> str:
        return TEXTS[self][0]

    @classmethod
    def of(cls, key: str) -> Cause:
        return cls[key.upper()]


# In a table, and in a sentence.
TEXTS = {
    Cause.SUCCESS: ("success", "success"),
    Cause.POSITION_LIMIT: ("away", "the limit of the distance from the target was broken"),
    Cause.VELOCITY_LIMIT: ("fast", "the limit of the velocity was broken"),
    Cause.RATE_LIMIT: ("spin", "the limit of the angular velocity was broken"),
    Cause.EXECUTOR_FAULT: ("fault", "the executor found a fault, and the policy did not act"),
    Cause.TOO_FAR: ("far", "it was not within the radius when it had to be"),
}
FAILURES = tuple(cause for cause in Cause if cause != Cause.SUCCESS)


@dataclass(frozen=True)
class Rule:
    """A flight succeeds where it lasts `seconds`, no limit broken and no fault on the way, and is
    within `radius_m` of its target for the part `share` of the ticks of the last `last_seconds`."""

    seconds: float
    last_seconds: float
    radius_m: float
    share: float = 1.0

    @property
    def text(self) -> str:
        share = "" if self.share == 1 else f"{100 * self.share:g} % of "
        return (
            f"within {self.radius_m:g} m for {share}the last {self.last_seconds:g} s "
            f"of {self.seconds:g} s"
        )

    def in_ticks(self, tick_s: float) -> tuple[int, int, int]:
        """Of the flight, of its end that is judged, and of these those that are needed."""
        ticks, judged = round(self.seconds / tick_s), round(self.last_seconds / tick_s)
        return ticks, judged, math.ceil(self.share * judged - 1e-9)


def settled_from(errors_m: NDArray[Any], radius_m: float) -> int | None:
    """The index from which on all distances are within the radius; None: the last one is not."""
    far = np.flatnonzero(errors_m > radius_m)
    if not far.size:
        return 0
    return int(far[-1]) + 1 if far[-1] + 1 < errors_m.size else None


def wilson_interval(successes: int, count: int) -> tuple[float, float]:
    """In which the rate lies with 95 % confidence: Wilson 1927, doi:10.1080/01621459.1927.10502953.

    Within [0, 1], and right too where nearly all succeed.
    """
    z2 = NORMAL_QUANTILE_95**2
    rate = successes / count
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    half = math.sqrt(rate * (1 - rate) * z2 / count + (z2 / (2 * count)) ** 2) / (1 + z2 / count)
    low = 0.0 if successes == 0 else middle - half
    high = 1.0 if successes == count else middle + half
    return low, high
