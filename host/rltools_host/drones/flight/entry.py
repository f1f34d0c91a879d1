"""The search for the largest box of entries from each of which a policy recovers: found by flights,
and confirmed by others (docs/gate.md)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import structs

from rltools_host.drones.flight.entry_box import EntryBox, FloatArray
from rltools_host.drones.flight.gate import Gate
from rltools_host.drones.flight.simulator import POSITION, Array, Cause, flight_library
from rltools_host.policies.contract import EntryEnvelope
from rltools_host.policies.image import PolicyImage

STEPS = 16  # of each bound, up to the gate's
TRIED = 500  # flights of a box on the way, of which a failure ends it
FIRST = 100  # of them, in which most boxes that do not stand show it
MARGIN_M = 0.5  # kEntryMargin_m of policy/entry_envelope.h
MIN_MARGIN_M = 0.25  # of what a smaller state loses, above what it needs
HEIGHT_STEP_M = 0.05
HELD = 7  # of the STEPS of tilt and turn rate, which a vehicle has that brakes: 21 deg
GROWN = (0, 1)  # speed and distance
Parts = tuple[int, ...]  # of STEPS, of each bound


def largest(below: int, above: int, stands: Callable[[int], bool]) -> int:
    """Return the largest number for which `stands` is true; it is at `below`, and not at
    `above`."""
    while above - below > 1:
        middle = (below + above) // 2
        if stands(middle):
            below = middle
        else:
            above = middle
    return below


class EntrySearch:
    """The search for one policy and a gate whose box has the largest bounds that are tried. Each
    box that is judged flies its own flights."""

    def __init__(self, gate: Gate, image: PolicyImage) -> None:
        assert gate.entry is not None
        self._gate, self._image = gate, image
        self._whole = gate.entry
        self._flown = 0  # flights

    def found(self) -> tuple[Gate, Array, EntryEnvelope]:
        """Return the gate with the box that stands, its outcomes, and the envelope that they show.
        The box is empty where the policy does not even recover from the smallest."""
        parts = self._grown()
        while True:
            gate = self._with(parts, self._gate.episodes)
            excursions = np.zeros(gate.episodes, flight_library().records["Excursion"])
            outcomes = gate.fly(self._image, excursions)
            if not any(parts) or (outcomes["cause"] == Cause.SUCCESS).all():
                return gate, outcomes, envelope(gate, excursions["height_lost_m"], any(parts))
            smaller = tuple(part - 1 for part in parts)
            parts = smaller if all(smaller) else (0, 0, 0, 0)

    def _grown(self) -> Parts:
        """Grow speed and distance together as far as they go, and then each by itself."""
        part = largest(0, STEPS + 1, lambda part: self._stands((part, part, HELD, HELD)))
        if not part:
            return (0, 0, 0, 0)
        parts: Parts = (part, part, HELD, HELD)
        for index in GROWN:
            parts = self._grown_at(index, parts)
        return parts

    def _grown_at(self, index: int, parts: Parts) -> Parts:
        def of(part: int) -> Parts:
            return (*parts[:index], part, *parts[index + 1 :])

        return of(largest(parts[index], STEPS + 1, lambda part: self._stands(of(part))))

    def _stands(self, parts: Parts) -> bool:
        return self._with(parts, TRIED).is_flown_without_failure(self._image, FIRST)

    def _with(self, parts: Parts, count: int) -> Gate:
        bounds = self._whole.bounds * np.array(parts) / STEPS
        speed, offset, tilt, rate = bounds.tolist()
        box = EntryBox(speed, offset, tilt, rate, self._flown)
        self._flown += count
        return structs.replace(self._gate, entry=box, episodes=count)


def envelope(gate: Gate, lost_m: FloatArray, stands: bool) -> EntryEnvelope:
    """Return the box as an envelope, with the height at which each of the flights has a margin
    above ground."""
    assert gate.entry is not None
    if not stands:
        return EntryEnvelope(0.0, 0.0, 0.0, 0.0, 0.0)
    parts = parts_of(gate)
    beyond = np.maximum(lost_m - MIN_MARGIN_M, 0.0) / np.maximum(parts, 1e-3)
    height_m = MARGIN_M + max(float(lost_m.max()), float(beyond.max()))
    speed, offset, tilt, rate = gate.entry.bounds.tolist()
    height_m = math.ceil(height_m / HEIGHT_STEP_M - 1e-9) * HEIGHT_STEP_M
    return EntryEnvelope(speed, offset, round(math.radians(tilt), 4), rate, round(height_m, 2))


def parts_of(gate: Gate) -> FloatArray:
    """Return how far each start of the gate goes to its nearest bound, as a fraction of it."""
    starts, box = gate.starts(), gate.entry
    assert starts is not None
    assert box is not None
    lengths = [np.linalg.norm(starts[:, part], axis=1) for part in (slice(3, 6), POSITION)]
    sine = np.linalg.norm(starts[:, 7:9], axis=1)
    tilt = np.degrees(2.0 * np.arcsin(np.minimum(sine, 1.0)))
    rate = np.linalg.norm(starts[:, 10:13], axis=1)
    values = np.stack([*lengths, tilt, rate], axis=1)
    parts: FloatArray = (values / np.maximum(box.bounds, 1e-9)).max(axis=1)
    return parts
