"""Dense and recurrent layers in tables of tensors by PyTorch's names, and the order in which they
follow each other; the folding of a foreign policy's stages into what an image holds, a normalizer
and layers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count, groupby, pairwise, permutations, takewhile
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from rltools_host.documents import shown
from rltools_host.policies.contract import GATES
from rltools_host.policies.importing.network import (
    MAX_LAYERS,
    WIDEST,
    Activate,
    Clip,
    Dense,
    Layer,
    Normalize,
    Recurrent,
    Stage,
    ends_of,
    numbers_of,
)
from rltools_host.policies.importing.pickles import Array, UnreadableError

NUMBER = re.compile(r"(\d+)")
DENSE = re.compile(r"(.*)\.weight")
# Tensors of torch.nn.GRU and LSTM, whose layers are numbered, and of their cells, which are not.
RECURRENT = re.compile(r"(?:(.*)\.)?(?:weight|bias)_(ih|hh|hr)(?:_l(\d+))?(_reverse)?")
ENDLESS = 2.0**64  # a clip's end beyond this one is none
ROUNDED = 3e-7  # error of bounds about 1 in single precision
MAX_RECURRENT = 3  # modules, each of which has any number of layers
MAX_LISTED = 8
MAX_TABLES = 6  # of dense layers, whose orders are tried
UNKNOWN_BEHIND = (
    "nothing behind its recurrent layers but the next layer (the file does not say), state it by "
    "--recorded FILE"
)


class Tensors(dict[str, Array]):
    """Tensors by their names, with UnreadableError for one that is missing."""

    def __init__(self, tensors: Mapping[str, Array], what: str) -> None:
        super().__init__(tensors)
        self.what = what

    def __missing__(self, name: str) -> Array:
        raise UnreadableError(f"its {self.what} has no {shown(name)}")


def tensors_of(document: Any, what: str) -> Tensors:
    """Return the tensors of a table. Raise UnreadableError where it is no table."""
    if not isinstance(document, Mapping):
        raise UnreadableError(f"its {what} is not a table of tensors")
    arrays = {
        name: value
        for name, value in document.items()
        if isinstance(name, str) and isinstance(value, np.ndarray)
    }
    return Tensors(arrays, what)


def in_order(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which `net.10` comes behind `net.2`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in NUMBER.split(name)]


def dense(tensors: Tensors, name: str) -> Dense:
    """Return a torch.nn.Linear, whose weights are (out, in)."""
    weights = tensors[f"{name}.weight"]
    if weights.ndim != 2:
        raise UnreadableError(f"{shown(name)} is not a dense layer, and no other is supported")
    bias = tensors.get(f"{name}.bias")
    return Dense(weights.T, np.zeros(weights.shape[0]) if bias is None else bias)


def layers_under(tensors: Tensors, prefix: str) -> list[str]:
    """Return the names of the dense layers with this prefix, in their order."""
    found = [
        match[1] for name in tensors if name.startswith(prefix) and (match := DENSE.fullmatch(name))
    ]
    return sorted_names(found)


def recurrent_under(tensors: Tensors, prefix: str) -> list[str]:
    """Return the names of the modules with recurrent layers that have this prefix, in their
    order."""
    found = {
        match[1] or ""
        for name in tensors
        if name.startswith(prefix) and (match := RECURRENT.fullmatch(name))
    }
    return sorted_names(found)


def sorted_names(names: Collection[str]) -> list[str]:
    """Return the names in their order.

    Raise UnreadableError for more than MAX_LAYERS, which would take long to search.
    """
    if len(names) > MAX_LAYERS:
        raise UnreadableError(f"it has {len(names):,} layers, and 1 to {MAX_LAYERS} are supported")
    return sorted(names, key=in_order)


def recurrent(tensors: Tensors, name: str) -> list[Recurrent]:
    """Return the layers of a torch.nn.GRU or LSTM, or the one of a cell, whose weights are (gates
    width, in)."""
    prefix = f"{name}." if name else ""
    parts = [
        match
        for match in map(RECURRENT.fullmatch, tensors)
        if match is not None and (match[1] or "") == name
    ]
    if any(match[4] for match in parts):
        raise UnreadableError(f"{shown(name)} also reads time backwards, which is not supported")
    if any(match[2] == "hr" for match in parts):
        raise UnreadableError(f"{shown(name)} projects its state, which is not supported")
    numbered = takewhile(
        lambda end: f"{prefix}weight_ih{end}" in tensors, map("_l{}".format, count())
    )
    ends = [""] if f"{prefix}weight_ih" in tensors else list(numbered)
    if {"" if match[3] is None else f"_l{match[3]}" for match in parts} != set(ends):
        raise UnreadableError(f"layers of {shown(name)} are missing")
    return [recurrent_layer(tensors, prefix, end) for end in ends]


def recurrent_layer(tensors: Tensors, prefix: str, end: str) -> Recurrent:
    weights, hidden = (tensors[f"{prefix}weight_{part}{end}"] for part in ("ih", "hh"))
    if weights.ndim != 2 or hidden.ndim != 2:
        raise UnreadableError(f"{shown(prefix + end)} is not a recurrent layer of PyTorch's")
    rows, width = hidden.shape
    if rows not in (gates * width for gates in GATES.values()):
        raise UnreadableError(
            f"{shown(prefix + end)} is a recurrent layer that is neither a GRU nor an LSTM"
        )
    biases = [tensors.get(f"{prefix}bias_{part}{end}") for part in ("ih", "hh")]
    own, others = (np.zeros(rows) if bias is None else bias for bias in biases)
    return Recurrent(weights.T, own, hidden.T, others)


def module(tensors: Tensors, name: str) -> list[Layer]:
    """Return the layers of the module with this name."""
    return [*recurrent(tensors, name)] or [dense(tensors, name)]


def follow_on(tensors: Tensors, orders: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return those orders of modules in which each takes as many numbers as the one before
    returns."""
    ends: dict[str, tuple[int, int]] = {}

    def of(name: str) -> tuple[int, int]:
        if name not in ends:
            layers = module(tensors, name)
            ends[name] = ends_of(layers[0])[0], ends_of(layers[-1])[1]
        return ends[name]

    return [[*names] for names in orders if all(of(a)[1] == of(b)[0] for a, b in pairwise(names))]


def in_chain(tensors: Tensors, *, keeps_order: bool) -> list[str]:
    """Return the names of all modules of a table, one behind the other.

    keeps_order: the table has the order in which the modules were made, which counts if the widths
    agree. Otherwise dense layers are in the order of their names, and recurrent ones where they
    fit.
    """
    names, inner = layers_under(tensors, ""), recurrent_under(tensors, "")
    if not inner:
        return in_dense_chain(tensors, names, keeps_order=keeps_order)
    total = len(names) + len(inner)
    if len(inner) > MAX_RECURRENT or total > MAX_LAYERS:
        raise UnreadableError(
            f"it has {len(inner)} recurrent modules among {total}: at most {MAX_RECURRENT} among "
            f"{MAX_LAYERS} are supported"
        )

    stored = list(dict.fromkeys(match[1] or "" for match in map(any_layer, tensors) if match))
    if keeps_order and follow_on(tensors, [stored]):
        return stored

    def merged(positions: Sequence[int]) -> list[str]:
        own, others = iter(inner), iter(names)
        return [next(own if position in positions else others) for position in range(total)]

    found = follow_on(tensors, map(merged, combinations(range(total), len(inner))))
    if len(found) != 1:
        how = "in more than one order" if found else "in no order"
        raise UnreadableError(
            f"its layers follow on each other {how}: save the state_dict() of a module that makes "
            "them in their order, with torch.save"
        )
    return found[0]


def in_dense_chain(tensors: Tensors, names: list[str], *, keeps_order: bool) -> list[str]:
    """Return the order of dense layers: as they were made, by their names, or the one order of
    tables in which they follow on each other; by their names where there is none."""
    stored = [match[1] for match in map(DENSE.fullmatch, tensors) if match]
    if found := follow_on(tensors, [stored, names] if keeps_order else [names]):
        return found[0]

    def table(name: str) -> str:
        head, _, last = name.rpartition(".")
        return head if last.isdecimal() else name

    tables = [[*group] for _, group in groupby(names, table)]
    if len(tables) > MAX_TABLES:
        return names
    found = follow_on(
        tensors, ([name for each in order for name in each] for order in permutations(tables))
    )
    return found[0] if len(found) == 1 else names


def any_layer(name: str) -> re.Match[str] | None:
    return DENSE.fullmatch(name) or RECURRENT.fullmatch(name)


def perceptron(
    tensors: Tensors, names: Sequence[str], activation: str, output: str = "identity"
) -> list[Stage]:
    """Return the modules with an activation behind each dense layer, and another behind the last
    one.

    Recurrent layers have activations of their own, and nothing follows them.
    """
    if not names:
        raise UnreadableError("it has no dense layer where its policy's are expected")
    stages: list[Stage] = []
    for name in names:
        layers = module(tensors, name)
        stages += layers
        if isinstance(layers[-1], Dense) and name != names[-1]:
            stages.append(Activate(activation))
    return [*stages, Activate(output)]


def only(tensors: Tensors, taken: Sequence[str], allowed: str, library: str) -> None:
    """Raise UnreadableError for tensors of the policy that are not read, and would be left out."""
    known = {f"{name}.{part}" for name in taken for part in ("weight", "bias")}
    known |= {
        name
        for name in tensors
        if (match := RECURRENT.fullmatch(name)) and (match[1] or "") in taken
    }
    strange = [name for name in tensors if name not in known and not re.fullmatch(allowed, name)]
    if strange:
        raise UnreadableError(
            f"it is a {library} with {shown(min(strange))}, which is not supported: only dense "
            "and recurrent layers are"
        )


def listed(names: Sequence[str]) -> str:
    """Return the names for a message, the first MAX_LISTED of many."""
    some = ", ".join(map(shown, names[:MAX_LISTED]))
    more = len(names) - MAX_LISTED
    return f"{some} and {more} more" if more > 0 else some


@dataclass(frozen=True, eq=False)
class Folded:
    """The contents of an image: a normalizer, or none, and layers with their activations."""

    normalizer: tuple[Array, Array] | None  # mean and inverse standard deviation
    layers: tuple[tuple[Layer, str], ...]


def fold(stages: Sequence[Stage], ranges: tuple[Array, Array]) -> Folded:
    """Return the normalizer and the layers that compute the stages.

    ranges: of the observations (low, high); a clip that nothing in them reaches is left out.
    """
    rest = list(stages)
    normalizer = None
    if isinstance(rest[0], Normalize):
        first = rest.pop(0)
        assert isinstance(first, Normalize)
        while isinstance(rest[0], Normalize):
            first = both(first, rest.pop(0))
        normalizer = (first.mean, first.inverse_std)
        ranges = (
            (ranges[0] - first.mean) * first.inverse_std,
            (ranges[1] - first.mean) * first.inverse_std,
        )
    if rest and isinstance(rest[0], Clip) and not reached(rest[0], ranges).any():
        rest.pop(0)
    layers: list[tuple[Layer, str]] = []
    open_layer: Dense | None = None  # whose activation is not known yet
    for stage in plain_stages(rest):
        if isinstance(stage, Activate):
            if open_layer is None:  # the activation of the inputs, or behind another activation
                width = ends_of(layers[-1][0])[1] if layers else ranges[0].size
                open_layer = Dense(np.eye(width), np.zeros(width))
            layers.append((open_layer, stage.name))
            open_layer = None
        elif isinstance(stage, Recurrent):
            if open_layer is not None:
                taken = product(open_layer, Dense(stage.weights, stage.bias))
                stage = structs.replace(stage, weights=taken.weights, bias=taken.bias)
            layers.append((stage, "identity"))
            open_layer = None
        else:
            open_layer = stage if open_layer is None else product(open_layer, stage)
    if open_layer is not None:
        layers.append((open_layer, "identity"))
    if any(max(ends_of(each)) > WIDEST for each, _ in layers):
        raise UnreadableError(f"a layer of it is wider than {WIDEST}, with what its clipping takes")
    return Folded(normalizer, tuple(layers))


def reached(clip: Clip, ranges: tuple[Array, Array]) -> NDArray[np.bool_]:
    """Return which elements can leave the clip's range, (width,)."""
    return (ranges[0] < clip.low) | (ranges[1] > clip.high)


def plain_stages(stages: Sequence[Stage]) -> list[Layer | Activate]:
    """Return the same computation with layers and activations alone."""
    plain: list[Layer | Activate] = []
    for index, stage in enumerate(stages):
        if isinstance(stage, Normalize):
            plain.append(scaling(stage))
        elif isinstance(stage, Clip):
            plain += clip_layers(stage)
        elif stage != Activate("identity") or is_between(plain, stages[index + 1 :]):
            plain.append(stage)
    return plain


def is_between(before: Sequence[Stage], behind: Sequence[Stage]) -> bool:
    """Return whether these are two layers, which must not be merged, because that would round
    otherwise."""
    is_dense = bool(before) and isinstance(before[-1], Dense)
    return is_dense and bool(behind) and isinstance(behind[0], Dense | Recurrent)


def scaling(stage: Normalize) -> Dense:
    return Dense(np.diag(stage.inverse_std), -stage.mean * stage.inverse_std)


def clip_layers(clip: Clip) -> list[Dense | Activate]:
    """Return layers that clip: middle + half hardtanh((x - middle) / half) where there are two
    ends, and low + relu(x - low) where there is one."""
    has_low, has_high = np.abs(clip.low) < ENDLESS, np.abs(clip.high) < ENDLESS
    layers: list[Dense | Activate] = []
    two = has_low & has_high
    if two.any():  # the others pass, as a power of two scales them without rounding
        low, high = np.where(two, clip.low, -ENDLESS), np.where(two, clip.high, ENDLESS)
        middle, half = (low + high) / 2, (high - low) / 2
        layers += [
            scaling(Normalize(middle, 1 / half)),
            Activate("hardtanh"),
            scaling(Normalize(-middle / half, half)),
        ]
    if (has_low ^ has_high).any():
        columns, biases, rows = [], [], []
        for unit, *ends in zip(
            np.eye(two.size), clip.low, clip.high, has_low, has_high, strict=True
        ):
            for sign, end in signs_of(*ends):
                columns.append(sign * unit)
                biases.append(-sign * end)
                rows.append(sign * unit)
        bias = np.where(two, 0.0, np.where(has_low, clip.low, np.where(has_high, clip.high, 0.0)))
        spread = Dense(np.array(columns).T, np.array(biases))
        layers += [spread, Activate("relu"), Dense(np.array(rows), bias)]
    return layers


def signs_of(low: float, high: float, has_low: bool, has_high: bool) -> list[tuple[float, float]]:
    """Return the sign and the end of each ReLU whose sum clips at one end. x itself is relu(x) -
    relu(-x)."""
    if has_low == has_high:
        return [(1.0, 0.0), (-1.0, 0.0)]
    return [(1.0, low)] if has_low else [(-1.0, high)]


def affine(scale: Array, offset: Array) -> Stage:
    """Return the stage scale x + offset, element by element."""
    if (scale > 0).all():
        return Normalize(-offset / scale, scale)
    return Dense(np.diag(scale), offset)


def both(first: Normalize, second: Stage) -> Normalize:
    """Return one normalizer for two, the second behind the first."""
    assert isinstance(second, Normalize)
    mean = first.mean + second.mean / first.inverse_std
    return Normalize(mean, first.inverse_std * second.inverse_std)


def product(first: Dense, second: Dense) -> Dense:
    """Return one layer for two with nothing between them."""
    return Dense(first.weights @ second.weights, first.bias @ second.weights + second.bias)


def first_outputs(stages: Sequence[Stage], count: int) -> tuple[Stage, ...]:
    """Return the stages with their first outputs alone."""
    rest, tail = list(stages), list[Stage]()
    while rest and not isinstance(rest[-1], Dense | Recurrent):
        last = rest.pop()
        if not isinstance(last, Activate):
            last = type(last)(*(values[:count] for values in numbers_of(last)))
        tail.insert(0, last)
    layer = rest[-1]
    if isinstance(layer, Dense):
        return (*rest[:-1], Dense(layer.weights[:, :count], layer.bias[:count]), *tail)
    width = 2 * count
    return (*rest, Dense(np.eye(width)[:, :count], np.zeros(count)), *tail)


def trimmed(stages: Sequence[Stage]) -> list[Stage]:
    """Return the stages without scaling and clipping behind the last layer that have no effect.

    The output is clipped to [-1, 1] anyway. What stays is clip(scale x + offset, low, high).
    """
    rest = list(stages)
    tail: list[Normalize | Clip] = []
    while rest and isinstance(rest[-1], Normalize | Clip):
        last = rest.pop()
        assert isinstance(last, Normalize | Clip)
        tail.insert(0, last)
    if not tail or not rest:
        return list(stages)
    width = ends_of(tail[0])[0]
    scale, offset = np.ones(width), np.zeros(width)
    low, high = np.full(width, -np.inf), np.full(width, np.inf)
    for each in tail:
        if isinstance(each, Normalize):
            scale, offset = scale * each.inverse_std, (offset - each.mean) * each.inverse_std
            low, high = (low - each.mean) * each.inverse_std, (high - each.mean) * each.inverse_std
        else:
            low, high = np.clip(low, each.low, each.high), np.clip(high, each.low, each.high)
    if np.abs(scale - 1).max() > ROUNDED or np.abs(offset).max() > ROUNDED:
        rest.append(Normalize(-offset / scale, scale))
    if (low > -1 + ROUNDED).any() or (high < 1 - ROUNDED).any():
        rest.append(Clip(low, high))
    return rest
