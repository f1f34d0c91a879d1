"""Observations that a board is checked with: the same for every board, with edge cases among them.

They follow from their index and the policy's channels alone: the numbers are those of Philox, whose
stream NumPy keeps, and what is made of them is defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import Channel, ranges_of
from rltools_host.policies.image import Float32Array

SEED = 2306_03530
SIGN = np.uint32(0x80000000)
FRACTION = np.uint32(0x007FFFFF)
EXPONENT_SHIFT = np.uint32(23)
LARGEST = np.uint32(0x7F7FFFFF)  # the largest finite number
LARGEST_EXPONENT = 254  # of a finite number
HUGE_EXPONENTS = 15  # from 2^113 on

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Ranges:
    """The channels' ranges, each (observation_dim)."""

    minimum: Float32Array
    maximum: Float32Array


def as_floats(bits: Words) -> Float32Array:
    return np.asarray(bits).view(np.float32)


def within(ranges: Ranges, words: Words) -> Float32Array:
    """Return values anywhere in the range."""
    low, high = ranges.minimum.astype(np.float64), ranges.maximum.astype(np.float64)
    values = (low + words / 2.0**32 * (high - low)).astype(np.float32)
    return np.clip(values, ranges.minimum, ranges.maximum)


def at_ends(ranges: Ranges, words: Words) -> Float32Array:
    """Return an end of the range, or the number next to it on either side."""
    up, down = np.float32(np.inf), np.float32(-np.inf)
    with np.errstate(over="ignore"):  # a range may end with the largest number
        ends = [
            np.nextafter(end, toward) if toward else end
            for end in (ranges.minimum, ranges.maximum)
            for toward in (None, down, up)
        ]
    shape = words.shape
    choices = [np.nan_to_num(np.broadcast_to(end, shape)) for end in ends]
    return np.choose(words % len(choices), choices).astype(np.float32)


def subnormal(_: Ranges, words: Words) -> Float32Array:
    """Return subnormal numbers of either sign."""
    return as_floats(words & (SIGN | FRACTION))


def zeros(_: Ranges, words: Words) -> Float32Array:
    """Return zeros of either sign."""
    return as_floats(words & SIGN)


def huge(_: Ranges, words: Words) -> Float32Array:
    """Return finite numbers so large that layers may overflow."""
    exponent = LARGEST_EXPONENT - (words >> EXPONENT_SHIFT) % HUGE_EXPONENTS
    bits = (words & (SIGN | FRACTION)) | (exponent.astype(np.uint32) << EXPONENT_SHIFT)
    return as_floats(bits)


def largest(_: Ranges, words: Words) -> Float32Array:
    """Return the largest number, of either sign."""
    return as_floats((words & SIGN) | LARGEST)


def any_finite(_: Ranges, words: Words) -> Float32Array:
    """Return any bits of a finite number."""
    is_finite = np.isfinite(as_floats(words))
    return as_floats(np.where(is_finite, words, words & (SIGN | FRACTION)).astype(np.uint32))


Make = Callable[[Ranges, Words], Float32Array]
KINDS: dict[str, Make] = {
    "within its range": within,
    "at the ends of its range": at_ends,
    "subnormal": subnormal,
    "zero": zeros,
    "huge": huge,
    "largest": largest,
    "any finite number": any_finite,
}
MIXED = "mixed"
# Over and over: every second one is what a policy is for.
ROUND = tuple(
    name
    for kind in (*KINDS, MIXED)
    if kind != "within its range"
    for name in ("within its range", kind)
)


@dataclass(frozen=True)
class Inputs:
    values: Float32Array  # (count, observation_dim)
    kinds: tuple[str, ...]


def make_inputs(channels: Sequence[Channel], count: int) -> Inputs:
    """Return `count` observations; the first ones are those of any smaller count."""
    ranges = Ranges(*ranges_of(channels))
    kinds = tuple(ROUND[index % len(ROUND)] for index in range(count))
    shape = (count, len(channels))
    raw = np.random.Philox(key=SEED).random_raw(count * len(channels)).reshape(shape)
    words, choice = raw.astype(np.uint32), (raw >> np.uint64(32)) % np.uint64(len(KINDS))
    values = np.empty(shape, np.float32)
    for index, (name, make) in enumerate(KINDS.items()):
        row_is_mixed = np.array([kind == MIXED for kind in kinds])[:, None]
        is_meant = np.array([kind == name for kind in kinds])[:, None]
        is_meant = is_meant | (row_is_mixed & (choice == index))
        values = np.where(is_meant, make(ranges, words), values)
    return Inputs(values, kinds)


def make_not_finite(channels: Sequence[Channel]) -> Inputs:
    """Return an observation for each of NaN and both infinities in each element, good otherwise."""
    middle = [np.float32(0.5 * (channel.minimum + channel.maximum)) for channel in channels]
    values, kinds = [], []
    for index, value in product(range(len(channels)), (np.nan, np.inf, -np.inf)):
        values.append([*middle[:index], value, *middle[index + 1 :]])
        kinds.append(f"{value} in element {index}")
    return Inputs(np.array(values, np.float32), tuple(kinds))
