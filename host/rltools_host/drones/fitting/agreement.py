"""The comparison of two sensors of one motion: scale, sign, order, frame and delay.

The attitude's turns and the gyroscope's integral are the same rotation; so are a velocity's change
and the integral of what an accelerometer measures, turned by the attitude and less gravity. Both
are compared within windows at many delays, in each order and with each sign of the axes. Two
sensors with noise of unknown sizes bound the ratio of their values: it lies between the slopes of
the two regressions, r s and s / r, where s is the ratio of their deviations. A log is refused where
all of that interval is wrong, and a note names what moved too little to tell.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rltools_host.drones.fitting.formats import GRAVITY_M_S2, interpolated
from rltools_host.drones.fitting.log import FlightLog
from rltools_host.drones.fitting.model import rotation

Array = NDArray[np.float64]

PLAINLY = 3.0  # times that: motion that no noise is taken for
MAX_WINDOWS = 4000
DELAYS_S = 0.24  # that are searched, early and late
DELAYS = 49
DELAY_ROWS = 2.0
SHARPER = 1.5  # what is left without a delay, over what is left with it
WORST = 0.02  # the part of the windows that is left out: knocks, rows that were lost
WEAKEST = 0.6  # mean correlation of sensors that say the same
AXIS_WEAKEST = 0.5
DRAW = 0.04  # by which each deviation from docs/fit.md has to be better than without it
EQUAL = 0.005  # less than that says nothing of a frame
SAME_RATIO = 1.2  # ratios of axes that have one cause
DEGREES = 180.0 / np.pi

# A sensor's numbers over what they should be, why, what to do.
DEGREE_CAUSES = (
    (DEGREES, "degrees where radians are expected", "divide by 57.3"),
    (1 / DEGREES, "radians that were taken for degrees and divided by 57.3", "multiply by 57.3"),
)
G_CAUSES = (
    (1 / GRAVITY_M_S2, "in g", "multiply by 9.81"),
    (GRAVITY_M_S2, "multiplied by 9.81 once too often", "divide by 9.81"),
)
SPEED_CAUSES = (
    (100.0, "cm/s where m/s are expected", "divide by 100"),
    (0.01, "divided by 100 once too often", "multiply by 100"),
    (3.2808, "feet where meters are expected", "divide by 3.281"),
    (3.6, "km/h where m/s are expected", "divide by 3.6"),
    (1.9438, "knots where m/s are expected", "divide by 1.944"),
)
CAUSES = (
    (1000.0, "thousandths of the unit", "divide by 1000"),
    (0.001, "divided by 1000 once too often", "multiply by 1000"),
    (2.0, "another full scale of the sensor, or time_s of another clock", "divide by 2"),
    (0.5, "another full scale of the sensor, or time_s of another clock", "multiply by 2"),
)
ACCELERATION_CAUSES = (*G_CAUSES, *CAUSES)
CAUSE_ERROR = 0.08
Causes = tuple[tuple[float, str, str], ...]


def cause_of(ratio: float, causes: Causes) -> str:
    """Return the likely causes of a scale and the remedies."""
    near = [
        f"{why}? {remedy}"
        for factor, why, remedy in sorted(causes, key=lambda each: abs(np.log(ratio / each[0])))
        if abs(np.log(ratio / factor)) < CAUSE_ERROR
    ]
    return "; or ".join(near) or f"of no unit that is known here; divide by {ratio:.3g}"


class Windows:
    """Windows of equal length, limited in number, away from the ends by the longest delay."""

    def __init__(self, log: FlightLog, duration_s: float) -> None:
        self.time_s, self.duration_s = log.time_s, duration_s
        length = max(round(duration_s / log.step_s), 1)
        start = int(np.searchsorted(log.time_s, log.time_s[0] + DELAYS_S))
        end = int(np.searchsorted(log.time_s, log.time_s[-1] - DELAYS_S)) - length
        stride = max((end - start) // MAX_WINDOWS, 1)
        self.first = np.arange(start, end, stride)
        self.last = self.first + length
        self.independent = max(log.duration_s / duration_s, 1.0)

    def change(self, curve: Array, delay_s: float = 0.0) -> Array:
        """Return the change from each window's start to its end, less the mean: [window, 3]. A
        curve that is late is read later."""
        start, end = self.time_s[self.first] + delay_s, self.time_s[self.last] + delay_s
        changes = interpolated(end, self.time_s, curve) - interpolated(start, self.time_s, curve)
        result: Array = changes - changes.mean(axis=0)
        return result

    def turned(self, attitude: Array) -> Array:
        """Return the rotation vectors from each window's start to its end, in the body, less the
        mean."""
        turns = rotation(attitude)
        vectors = (turns[self.first].inv() * turns[self.last]).as_rotvec()
        result: Array = vectors - vectors.mean(axis=0)
        return result


@dataclass(frozen=True)
class Match:
    """The order, signs and delay by which a sensor's axes follow another sensor: axis `of[i]` times
    `signs[i]` follows i."""

    of: tuple[int, ...]
    signs: tuple[int, ...]
    delay_s: float
    left: float  # 1 less the mean correlation of the axes that move
    left_now: float  # without the delay
    axes: tuple[tuple[float, float, float], ...]  # each for itself: delay, left with it, without it
    seen: tuple[bool, ...]  # which expected axes move enough
    correlations: Array
    ratios: Array  # of deviations
    independent: float

    @property
    def cost(self) -> float:
        """Return the residual, and the cost of what it assumes: other axes, another scale."""
        ratios = self.ratios[list(self.seen)]
        scale = float(np.abs(np.log(np.maximum(ratios, 1e-9))).mean()) if len(ratios) else 0.0
        return self.left + 1.5 * DRAW * bool(self.moved()) + 4.0 * DRAW * min(scale, 1.0)

    def moved(self) -> list[int]:
        """Return the expected axes that move and that another axis or sign follows."""
        return [i for i in range(3) if self.seen[i] and (self.of[i] != i or self.signs[i] < 0)]

    def bounds(self, axis: int) -> tuple[float, float]:
        """Return the bounds of the scale."""
        r, ratio = float(self.correlations[axis]), float(self.ratios[axis])
        r = min(max(r, 1e-3), 1.0)
        error = 1.0 + 2.0 * np.sqrt((1.0 - r * r) / self.independent)
        return r * ratio / error, ratio / r * error


ORDERS = tuple(itertools.permutations(range(3)))
SIGNS = tuple(itertools.product((1, -1), repeat=3))


def match(windows: Windows, curve: Array, expected: Array, smallest: float) -> Match:
    """Return the order, signs and delay by which a curve's changes follow the expected ones
    best."""
    seen = expected.std(axis=0) > smallest
    unit = np.where(seen, expected / np.maximum(expected.std(axis=0), 1e-12), 0.0)
    delays = np.linspace(-DELAYS_S, DELAYS_S, DELAYS)
    curve = np.asfortranarray(curve)  # whose columns are read at each delay
    tables = []  # [delay, of the curve, expected]: correlations
    for delay in delays:
        found = windows.change(curve, delay)
        size = found.std(axis=0)
        tables.append((found / np.where(size > 0.0, size, 1.0)).T @ unit / len(unit))
    table = np.stack(tables)
    now = DELAYS // 2
    best, chosen = -np.inf, (ORDERS[0], SIGNS[0], now)
    for of, signs in itertools.product(ORDERS, SIGNS):
        along = (table[:, of, range(3)] * signs).sum(axis=1) / max(int(seen.sum()), 1)
        index = int(np.argmax(along))
        deviates = any(seen[i] and (of[i] != i or signs[i] < 0) for i in range(3))
        if along[index] - DRAW * deviates > best:
            best, chosen = float(along[index]) - DRAW * deviates, (of, signs, index)
    of, signs, index = chosen
    here = windows.change(curve, float(delays[index]))[:, of] * np.array(signs)
    size = np.maximum(here.std(axis=0), 1e-12)
    distance = ((here / size - unit)[:, seen] ** 2).sum(axis=1)
    kept = distance <= np.quantile(distance, 1.0 - WORST)
    by_axis = table[:, of, range(3)] * signs
    along = by_axis.sum(axis=1) / max(int(seen.sum()), 1)
    indices = by_axis.argmax(axis=0)
    here, there = here[kept] - here[kept].mean(axis=0), expected[kept]
    there = there - there.mean(axis=0)
    wide, narrow = here.std(axis=0), np.maximum(there.std(axis=0), 1e-12)
    products = (here * there).mean(axis=0)
    return Match(
        of,
        signs,
        float(delays[index]),
        1.0 - float(along[index]),
        1.0 - float(along[now]),
        tuple(
            (float(delays[at]), 1.0 - float(values[at]), 1.0 - float(values[now]))
            for at, values in zip(indices, by_axis.T, strict=True)
        ),
        tuple(bool(each) for each in seen),
        products / np.maximum(wide * narrow, 1e-12),
        wide / narrow,
        windows.independent,
    )


@dataclass(frozen=True)
class Reading:
    """One interpretation of two sensors: what is wrong with the log if it is the right one, and
    what to write instead; none for docs/fit.md's."""

    faults: tuple[tuple[str, str], ...]
    match: Match

    @property
    def cost(self) -> float:
        return self.match.cost + DRAW * (0.75 * bool(self.faults) + 0.25 * len(self.faults))


def chosen(readings: list[Reading]) -> tuple[Reading, list[str]]:
    """Return the likeliest reading; where that is docs/fit.md's, the first, also notes on frames
    that are as likely."""
    best = min(readings, key=lambda each: each.cost)
    if best.faults or best.match.moved():
        return best, []
    return best, [
        f"it leans too little to tell whether {fault[0].replace(' seems to be', ' is')}"
        for each in readings[1:]
        for fault in each.faults
        if not each.match.moved() and each.match.left < best.match.left + EQUAL
    ]


@dataclass(frozen=True)
class Pair:
    """Two sensors that are compared."""

    log: FlightLog
    names: tuple[str, ...]  # of the measured one's columns
    what: str  # it
    by: str  # what says how it should be
    verb: str
    frame: str  # what it should be
    windows: Windows
    smallest: float  # standard deviation in a window, that says something
    delay_s: float  # that may be
    ratio: float  # that may be
    unit: str
    causes: Causes

    @property
    def by_says(self) -> str:
        return f"{self.by} {'say' if ' and ' in self.by else 'says'}"

    def compared(
        self, readings: Iterable[Reading], curve: Array, axes: int = 3
    ) -> tuple[Match, list[str]]:
        """Return the likeliest reading's match, and notes on what moves too little to tell; raise
        DamagedFileError unless order, signs, frame and delay are docs/fit.md's. `curve` is what the
        first reading compares."""
        reading, notes = chosen(list(readings))
        found = reading.match
        measured = self.windows.change(curve, found.delay_s).std(axis=0)
        if any(found.seen):
            self._require_frame(reading)
            return found, notes + self._unseen_axes(found, measured, axes)
        if measured.max() > PLAINLY * self.smallest:
            raise self.log.fault(
                f"{self.what} changes by {measured.max():.2g} {self.unit} in "
                f"{self.windows.duration_s:g} s, and {self.by_says} nothing of it: {self.frame}"
            )
        return found, [f"it hardly moves: {self.what} is not checked against {self.by}"]

    def _require_frame(self, reading: Reading) -> None:
        """Raise DamagedFileError unless order, signs, frame and delay are docs/fit.md's."""
        found = reading.match
        if found.left > 1.0 - WEAKEST:
            raise self.log.fault(
                f"{self.what} does not {self.verb} as {self.by_says}, in no order, with no sign "
                f"and no delay up to {DELAYS_S} s: {self.frame}"
            )
        faults = list(reading.faults)
        if found.moved():
            faults.append(self._axes(found))
        if faults:
            wrong, remedies = (" and ".join(each) for each in zip(*faults, strict=True))
            raise self.log.fault(f"{wrong}: {remedies}")
        self._require_time(self.what, found.delay_s, found.left, found.left_now)
        for name, seen, axis in zip(self.names, found.seen, found.axes, strict=True):
            if seen:
                self._require_time(name, *axis)

    def _require_time(self, what: str, late_s: float, left: float, left_now: float) -> None:
        may_be = max(self.delay_s, DELAY_ROWS * self.log.step_s)
        if abs(late_s) > may_be and left < 1.0 - AXIS_WEAKEST and left_now > SHARPER * left + 0.01:
            raise self.log.fault(
                f"{what} is {1000 * abs(late_s):.0f} ms {'later' if late_s > 0 else 'earlier'} "
                f"than {self.by_says}: stamp each with the time at which it was measured "
                f"({1000 * may_be:.0f} ms may be between them)"
            )

    def _axes(self, found: Match) -> tuple[str, str]:
        if found.of == ORDERS[0] and [i for i in range(3) if found.signs[i] < 0] == [1, 2]:
            return (
                f"{self.what} is of another frame than {self.by_says}",
                "change the signs of data with y to the right and z down",
            )
        swaps = [
            f"{self.names[found.of[i]]} follows {'minus ' if found.signs[i] < 0 else ''}{'xyz'[i]}"
            for i in found.moved()
        ]
        swapped = any(found.of[i] != i for i in found.moved())
        return (
            f"{self.what} has {'its axes in another order' if swapped else 'other signs'} than "
            f"{self.by_says} ({', '.join(swaps)})",
            self.frame,
        )

    def _unseen_axes(self, found: Match, measured: Array, axes: int) -> list[str]:
        """Raise DamagedFileError for a single axis that does not follow; return notes for those
        that move too little to tell."""
        unseen = []
        for axis, name in enumerate(self.names[:axes]):
            if found.seen[axis] and found.correlations[axis] >= AXIS_WEAKEST:
                continue
            expected = measured[axis] / max(float(found.ratios[axis]), 1e-12)
            largest = max(float(measured[axis]), expected)
            if largest > PLAINLY * self.smallest and (
                found.seen[axis] or measured[axis] > PLAINLY * self.smallest
            ):
                raise self.log.fault(
                    f"{name} does not {self.verb} as {self.by_says} (it changes by "
                    f"{measured[axis]:.2g}, and should by {expected:.2g} {self.unit}): {self.frame}"
                )
            unseen.append(name)
        if not unseen:
            return []
        return [
            f"{', '.join(unseen)}: too little motion to check scale, sign and delay against "
            f"{self.by}"
        ]

    def wrong_axes(self, found: Match) -> dict[int, float]:
        """Return the scale of each axis whose scale noise does not explain."""
        wrong = {}
        for axis in range(3):
            low, high = found.bounds(axis)
            if found.seen[axis] and (low > self.ratio or high < 1.0 / self.ratio):
                wrong[axis] = float(found.ratios[axis])
        return wrong

    def scale_fault(self, found: Match, wrong: dict[int, float]) -> str:
        """Return the sentence for scales that are wrong."""
        ratios = list(wrong.values())
        if len(wrong) == sum(found.seen) and max(ratios) < SAME_RATIO * min(ratios):
            ratio = float(np.median(ratios))
            return (
                f"{self.what} is {ratio:.3g} times what {self.by_says}: "
                f"{cause_of(ratio, self.causes)}"
            )
        return "; ".join(
            f"{self.names[axis]} is {ratio:.3g} times what {self.by_says}: "
            f"{cause_of(ratio, self.causes)}"
            for axis, ratio in wrong.items()
        )
