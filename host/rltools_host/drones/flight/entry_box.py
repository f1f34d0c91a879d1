"""Starts of flights at which a vehicle is handed to a policy: drawn in a box of bounds, from random
numbers that are the same on any machine."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from rltools_host.documents import Whole

AT_SURFACE = 0.5  # part of the flights that begin at a bound, of each of the four
IN_SMALLER = 0.25  # part of the flights that begin in a smaller box, whose size is drawn
MAX_YAW = 60.0  # degrees from that to hold: vehicles hold theirs when they hand over
CANDIDATES = 24  # points of which the first in a ball counts: that there is none has odds of 2e-8
# By the contract, in which the policy's observations lie.
Speed = Annotated[float, Meta(ge=0, le=10)]
Offset = Annotated[float, Meta(ge=0, le=5)]
Tilt = Annotated[float, Meta(ge=0, le=180)]
Rate = Annotated[float, Meta(ge=0, le=35)]
FloatArray = NDArray[np.float64]


class EntryBox(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The bounds of entries: speed against the target's, distance from it, tilt in degrees, and
    turn rate, each in any direction. The yaw differs by up to MAX_YAW. Flights are numbered from
    first_episode on."""

    speed_m_s: Speed
    offset_m: Offset
    tilt: Tilt
    rate_rad_s: Rate
    first_episode: Whole = 0

    @property
    def bounds(self) -> FloatArray:
        return np.array([self.speed_m_s, self.offset_m, self.tilt, self.rate_rad_s])


def starts_within(box: EntryBox, seed: int, count: int) -> NDArray[np.float32]:
    """Return the starts (count, 13): the contract's numbers, without noise."""
    draws = Draws(seed, box.first_episode, count)
    magnitudes = draws.parts() * box.bounds
    speed, offset, tilt, rate = magnitudes.T
    starts = np.empty((count, 13))
    starts[:, 0:3] = offset[:, None] * draws.directions(3)
    starts[:, 3:6] = speed[:, None] * draws.directions(3)
    yaw = MAX_YAW * (2.0 * draws.uniform(1)[:, 0] - 1.0)
    starts[:, 6:10] = attitudes(tilt, draws.directions(2), yaw)
    starts[:, 10:13] = rate[:, None] * draws.directions(3)
    return starts.astype(np.float32)


def attitudes(tilt: FloatArray, axis: FloatArray, yaw: FloatArray) -> FloatArray:
    """Return quaternions (n, 4) as w, x, y, z with w not negative: tilted about an axis (n, 2) of
    the level body, and turned by `yaw`; angles in degrees."""
    w, s = half_angles(tilt)
    x, y = s * axis[:, 0], s * axis[:, 1]
    c, z = half_angles(yaw)
    found = np.stack([c * w, c * x - z * y, c * y + z * x, z * w], axis=1)
    turned: FloatArray = np.where(found[:, :1] < 0, -found, found)
    return turned


def half_angles(degrees: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return cosines and sines of the half angles, by the C library: NumPy's depend on the
    processor."""
    halves = [math.radians(0.5 * value) for value in degrees]
    return np.array([*map(math.cos, halves)]), np.array([*map(math.sin, halves)])


class Draws:
    """Random numbers in [0, 1) for a seed and a number, made of Philox's words."""

    def __init__(self, seed: int, number: int, count: int) -> None:
        self._words = np.random.Philox(key=[seed, number])
        self._count = count

    def uniform(self, *shape: int) -> FloatArray:
        words: Any = self._words.random_raw(self._count * math.prod(shape))
        found: FloatArray = ((words >> np.uint64(11)) * 2.0**-53).reshape(self._count, *shape)
        return found

    def parts(self) -> FloatArray:
        """Return the fractions (n, 4) of the four bounds that each flight uses."""
        drawn, chosen, size = self.uniform(4), self.uniform(4), self.uniform(2)
        parts = np.where(chosen < AT_SURFACE, 1.0, drawn)
        return np.where(size[:, :1] < IN_SMALLER, size[:, 1:], 1.0) * parts

    def directions(self, dimensions: int) -> FloatArray:
        """Return unit vectors (n, dimensions), evenly distributed over all directions."""
        points = 2.0 * self.uniform(CANDIDATES, dimensions) - 1.0
        lengths = np.sqrt((points * points).sum(axis=2))
        first = ((lengths > 0.1) & (lengths <= 1.0)).argmax(axis=1)
        rows = np.arange(self._count)
        found: FloatArray = points[rows, first] / lengths[rows, first][:, None]
        return found
