"""A disturbed link between the simulator and a board, and injected faults, in simulated time.

Everything follows from the seed and the tick alone, and so is the same for every board and for the
flight on this machine. The random numbers are those of Philox, whose stream NumPy keeps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rltools_host.errors import UsageError
from rltools_host.policies.image import Float32Array

TICK_US = 2000
TICKS_A_S = 500
START_US = 1_000_000  # the executor's time of the first tick
OFF_US = 10_000  # by how much a time is wrong: more than an executor puts up with
MAX_DELAY_MS = 1000.0

TRIAL = "trial"
# What happened, and the status that the executor answers it with (docs/executor.md).
FAULTS: Mapping[str, tuple[str, str]] = {
    "cut": ("the link was cut", "observation_stale"),
    "stale": ("observations became 10 ms old", "observation_stale"),
    "nan": ("an observation was not a number", "observation_not_finite"),
    "range": ("an observation left its range", "observation_out_of_range"),
    "future": ("observations came from 10 ms ahead", "observation_out_of_order"),
    TRIAL: ("the policy's trial was over", "no_policy"),
}
FAULT = re.compile(r"([a-z]+)@(\d+(?:\.\d*)?)(?:\.\.(\d+(?:\.\d*)?))?")


@dataclass(frozen=True)
class Fault:
    """A fault from the tick `first` on, up to `end`; None: to the end of the flight."""

    what: str  # of FAULTS
    first: int
    end: int | None = None

    @property
    def text(self) -> str:
        return FAULTS[self.what][0]

    def holds_at(self, tick: int) -> bool:
        return tick >= self.first and (self.end is None or tick < self.end)


def parse_fault(text: str) -> Fault:
    """Return the fault of a text such as nan@2 or cut@2..2.5, in seconds; raise UsageError for
    others."""
    match = FAULT.fullmatch(text)
    if match is None or match[1] not in FAULTS:
        names = ", ".join(FAULTS)
        raise UsageError(f"--fault {text}: write WHAT@SECONDS or WHAT@FROM..TO; WHAT is of {names}")
    first = tick_of(float(match[2]))
    if match[1] == TRIAL and match[3]:
        raise UsageError(f"--fault {text}: a trial that is over does not come back")
    end = tick_of(float(match[3])) if match[3] else None
    if end is not None and end <= first:
        raise UsageError(f"--fault {text}: it ends before it begins")
    return Fault(match[1], first, end)


def tick_of(seconds: float) -> int:
    return round(seconds * TICKS_A_S)


@dataclass(frozen=True)
class Disturbances:
    """Disturbances on the way from the simulator's sensors to the board."""

    latency_ms: float = 0.0  # of each observation
    jitter_ms: float = 0.0  # ... and up to so much more
    loss: float = 0.0  # share of the observations that never arrive
    faults: tuple[Fault, ...] = ()
    seed: int = 0

    def document(self) -> dict[str, object]:
        return {
            "latency_ms": self.latency_ms,
            "jitter_ms": self.jitter_ms,
            "loss": self.loss,
            "faults": [
                {
                    "what": fault.what,
                    "from_s": fault.first / TICKS_A_S,
                    "to_s": None if fault.end is None else fault.end / TICKS_A_S,
                }
                for fault in self.faults
            ],
            "seed": self.seed,
        }

    def check(self) -> None:
        for option, value, limit in (
            ("--latency", self.latency_ms, MAX_DELAY_MS),
            ("--jitter", self.jitter_ms, MAX_DELAY_MS),
            ("--loss", self.loss, 1.0),
        ):
            if not (math.isfinite(value) and 0.0 <= value <= limit):
                raise UsageError(f"{option} {value:g}: give 0 to {limit:g}")

    @property
    def first_fault(self) -> Fault | None:
        return min(self.faults, key=lambda fault: fault.first, default=None)

    @property
    def trial_ends(self) -> list[int]:
        """Return the ticks at which the trial is to be over."""
        return [fault.first for fault in self.faults if fault.what == TRIAL]


@dataclass(frozen=True)
class Delivery:
    """The observation that the board has at a tick: the tick when it was taken, and the time that
    it states."""

    taken_tick: int  # below 0: before the flight, while the drone is held at its start
    taken_us: int


class DisturbedLink:
    """The link that decides which observation a board has at each of `ticks` ticks: the newest that
    has arrived.

    An overtaken observation is dropped. The drone is held at its start until the flight begins, and
    is observed there too, so that there is an observation at the first tick.
    """

    def __init__(self, disturbances: Disturbances, ticks: int) -> None:
        self._disturbances = disturbances
        self._newest = newest_arrived(disturbances, ticks)

    def at(self, tick: int) -> Delivery:
        taken_tick = self._newest[tick]
        taken_us = START_US + taken_tick * TICK_US
        now_us = START_US + tick * TICK_US
        for fault in self._faults_at(tick):
            if fault.what == "stale":
                taken_us = now_us - OFF_US
            elif fault.what == "future":
                taken_us = now_us + OFF_US
        return Delivery(taken_tick, taken_us)

    def spoil(self, tick: int, observation: Float32Array) -> Float32Array:
        """Return the observation as it arrives."""
        for fault in self._faults_at(tick):
            if fault.what in ("nan", "range"):
                observation = observation.copy()
                observation[0] = np.nan if fault.what == "nan" else 1e6
        return observation

    def _faults_at(self, tick: int) -> list[Fault]:
        return [fault for fault in self._disturbances.faults if fault.holds_at(tick)]


def newest_arrived(disturbances: Disturbances, ticks: int) -> Sequence[int]:
    """Return, for each tick, which tick's observation is the newest that has arrived."""
    numbers = uniform(disturbances.seed, 2 * ticks).reshape(ticks, 2)
    latency_us, jitter_us = 1e3 * disturbances.latency_ms, 1e3 * disturbances.jitter_ms
    arrivals: list[list[int]] = [[] for _ in range(ticks)]  # by the tick that has them first
    for taken, (lost, late) in enumerate(numbers):
        tick = taken + math.ceil((latency_us + jitter_us * late) / TICK_US)
        if lost >= disturbances.loss and tick < ticks:
            arrivals[tick].append(taken)
    cuts = [fault for fault in disturbances.faults if fault.what == "cut"]
    behind = math.ceil(latency_us / TICK_US)  # of observations before the flight, which are sure
    newest, found = -1 - behind, []
    for tick in range(ticks):
        if not any(cut.holds_at(tick) for cut in cuts):
            # The last one from before the flight is that of the tick -1.
            newest = max(newest, min(tick - behind, -1), *arrivals[tick])
        found.append(newest)
    return found


def uniform(seed: int, count: int) -> NDArray[np.float64]:
    """Return `count` numbers in [0, 1)."""
    words = np.random.Philox(key=seed).random_raw(count)
    numbers: NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers
