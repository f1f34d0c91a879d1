"""Corrections of what a foreign policy observes or does: the words by which a user names them, and
their stages in front of its network and behind it.

A correction of observations says what the policy gets instead of the observation; one of actions
what is done with its actions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import Channel
from rltools_host.errors import UsageError, near_matches
from rltools_host.policies.contract import Contract, choices_of
from rltools_host.policies.importing.network import (
    Clip,
    Dense,
    Normalize,
    Stage,
)
from rltools_host.policies.importing.pickles import Array

DEGREES = 180 / math.pi
ACTIONS = "actions"
ORDER = "order"
MAX_BLOCKS, MAX_ACTIONS = 5, 4  # of which all orders are tried
PART = re.compile(r"_(?:[wxyz]|\d+)$")  # of a channel's name, behind that of its block
AXES = ("xzy", "yxz", "yzx", "zxy", "zyx")
FRAMES = {"frd": (1, -1, -1)}  # x forward, y right, z down, for forward, left, up
SCALES = (0.5, 2.0)


@dataclass(frozen=True, eq=False)
class Correction:
    """A correction of observations or of actions: given[i] = scale[i] * value[source[i]] +
    offset[i]."""

    word: str
    meaning: str  # a clause: "its attitude is x, y, z, w"
    of_actions: bool
    source: NDArray[np.intp]
    scale: Array
    offset: Array

    @property
    def limits(self) -> tuple[float, float]:
        """Return the range to which actions are clipped before the correction.

        It is their range, which an offset would move: then the corrected actions alone are clipped.
        """
        return (-math.inf, math.inf) if self.offset.any() else (-1.0, 1.0)

    def apply(self, values: Array) -> Array:
        return values[..., self.source] * self.scale + self.offset


def blocks_of(channels: Sequence[Channel]) -> dict[str, list[int]]:
    """Return the channels that belong together by their names, such as velocity_x, velocity_y,
    velocity_z: name -> indices."""
    blocks: dict[str, list[int]] = {}
    last = ""
    for index, channel in enumerate(channels):
        stem = PART.sub("", channel.name)
        name = stem if stem == last or stem not in blocks else channel.name
        blocks.setdefault(name, []).append(index)
        last = stem
    return blocks


def changed(
    width: int,
    word: str,
    meaning: str,
    sources: Sequence[tuple[int, int]] = (),
    scales: Sequence[tuple[int, float]] = (),
    *,
    of_actions: bool = False,
    offset: float = 0.0,
) -> Correction:
    """Return a correction that changes these elements, and leaves all others as they are."""
    source, scale = np.arange(width), np.ones(width)
    for index, from_index in sources:
        source[index] = from_index
    for index, factor in scales:
        scale[index] = factor
    return Correction(word, meaning, of_actions, source, scale, np.full(width, offset))


def known_corrections(contract: Contract) -> Iterator[Correction]:
    """Yield all corrections that are tried, each by itself."""
    channels = contract.observations
    width = len(channels)
    blocks = blocks_of(channels)
    yield from orders(blocks, width)
    for name, block in blocks.items():
        yield from of_block(name, block, channels)
    vectors = [block for block in blocks.values() if len(block) == 3]
    if len(vectors) > 1:
        for frame, signs in FRAMES.items():
            turned = [*vectors, *(block[1:] for block in blocks.values() if len(block) == 4)]
            scales = [(i, sign) for block in turned for i, sign in zip(block, signs, strict=True)]
            meaning = "its frame is x forward, y right, z down"
            yield changed(width, f"{frame}", meaning, scales=scales)
    if not choices_of(contract.actions):
        yield from of_actions(len(contract.actions))


def orders(blocks: dict[str, list[int]], width: int) -> Iterator[Correction]:
    """Yield the blocks, one behind the other, in every other order."""
    if not 2 <= len(blocks) <= MAX_BLOCKS:
        return
    for order in list(permutations(blocks))[1:]:
        given = [index for name in order for index in blocks[name]]
        word = f"{ORDER}:{','.join(order)}"
        meaning = f"its observations come in the order {', '.join(order)}"
        yield changed(width, word, meaning, list(enumerate(given)))


def of_block(name: str, block: Sequence[int], channels: Sequence[Channel]) -> Iterator[Correction]:
    width = len(channels)
    parts = "".join(channels[index].name[-1] for index in block)
    yield changed(
        width,
        f"{name}:negated",
        f"its {name} has the other sign",
        scales=[(i, -1.0) for i in block],
    )
    if {channels[index].unit for index in block} <= {"rad", "rad/s"}:
        for word, factor in (("degrees", DEGREES), ("radians", 1 / DEGREES)):
            scales = [(index, factor) for index in block]
            yield changed(width, f"{name}:{word}", f"its {name} is in {word}", scales=scales)
    if len(block) > 1:
        for index in block:
            channel = channels[index].name
            meaning = f"its {channel} has the other sign"
            yield changed(width, f"{channel}:negated", meaning, scales=[(index, -1.0)])
    if parts == "xyz":
        for axes in AXES:
            given = [(block[i], block["xyz".index(axis)]) for i, axis in enumerate(axes)]
            yield changed(width, f"{name}:{axes}", f"its {name} comes in the order {axes}", given)
    if parts in ("wxyz", "xyzw"):
        other = "xyzw" if parts == "wxyz" else "wxyz"
        given = [(block[i], block[parts.index(axis)]) for i, axis in enumerate(other)]
        yield changed(width, f"{name}:{other}", f"its {name} comes in the order {other}", given)
        imaginary = [(block[i], -1.0) for i, axis in enumerate(parts) if axis != "w"]
        meaning = f"its {name} is the inverse rotation"
        yield changed(width, f"{name}:inverse", meaning, scales=imaginary)


def of_actions(width: int) -> Iterator[Correction]:
    """Yield corrections of actions normalized to [-1, 1]."""
    for word, meaning, scale, offset in (
        ("negated", "its actions have the other sign", -1.0, 0.0),
        *((f"{x:g}", f"its actions are to be taken times {x:g}", x, 0.0) for x in SCALES),
        ("unit", "its actions are from 0 to 1 where they are taken as from -1 to 1", 2.0, -1.0),
        ("symmetric", "its actions are from -1 to 1 where they are taken as from 0 to 1", 0.5, 0.5),
    ):
        scales = [(index, scale) for index in range(width)]
        yield changed(
            width, f"{ACTIONS}:{word}", meaning, scales=scales, of_actions=True, offset=offset
        )
    if 2 <= width <= MAX_ACTIONS:
        for order in list(permutations(range(width)))[1:]:
            word = f"{ACTIONS}:{','.join(map(str, order))}"
            meaning = f"its actions come in the order {', '.join(map(str, order))}"
            yield changed(width, word, meaning, list(enumerate(order)), of_actions=True)


def corrections_of(words: Sequence[str], contract: Contract) -> list[Correction]:
    """Return the corrections that a user names. Raise UsageError for an unknown word."""
    known = {each.word: each for each in known_corrections(contract)} if words else {}
    for word in words:
        if word not in known:
            raise UsageError(f'--correct "{word}": {near_matches(word, known)}')
    return [known[word] for word in words]


# -- as stages -------------------------------------------------------------------------------------


def corrected(stages: Sequence[Stage], corrections: Sequence[Correction]) -> list[Stage]:
    """Return the stages, to actions in [-1, 1], with the corrections.

    The last named one is next to the network.
    """
    result = list(stages)
    for each in reversed(corrections):
        if each.of_actions:
            width = each.source.size
            weights = np.zeros((width, width))
            weights[each.source, np.arange(width)] = each.scale
            low, high = (np.full(width, end) for end in each.limits)
            clips = [Clip(low, high)] if np.isfinite(low).all() else []
            result = [*result, *clips, Dense(weights, each.offset)]
        else:
            result = in_front(result, each)
    return result


def in_front(stages: list[Stage], each: Correction) -> list[Stage]:
    """Return the stages with the correction in front, but behind a normalizer, which takes the
    observations unchanged."""
    width = each.source.size
    weights = np.zeros((width, width))
    rest = list(stages)
    if not isinstance(rest[0], Normalize):
        weights[each.source, np.arange(width)] = each.scale
        return [Dense(weights, np.zeros(width)), *rest]
    first = rest.pop(0)
    assert isinstance(first, Normalize)
    mean, inverse_std = np.empty(width), np.empty(width)
    mean[each.source] = first.mean / each.scale
    inverse_std[each.source] = first.inverse_std * np.abs(each.scale)
    front: list[Stage] = [Normalize(mean, inverse_std)]
    sign = np.sign(each.scale)
    if isinstance(rest[0], Clip):
        clip = rest.pop(0)
        assert isinstance(clip, Clip)
        low, high = np.empty(width), np.empty(width)
        ends = np.sort([clip.low * sign, clip.high * sign], axis=0)
        low[each.source], high[each.source] = ends
        front.append(Clip(low, high))
    weights[each.source, np.arange(width)] = sign
    return [*front, Dense(weights, np.zeros(width)), *rest]
