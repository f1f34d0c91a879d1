"""Folds the stages of a foreign policy into what an image holds: a normaliser and layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rltools_host.foreign.network import (
    WIDEST,
    Activate,
    Clip,
    Dense,
    Layer,
    Normalise,
    Recurrent,
    Stage,
)
from rltools_host.foreign.pickles import Array, UnreadableError


@dataclass(frozen=True, eq=False)
class FoldedLayer:
    """As an image's Layer, in double precision."""

    activation: str
    weights: Array
    bias: Array
    hidden: tuple[Array, Array] | None = None  # of a recurrent one

    @property
    def width(self) -> int:
        return self.bias.size if self.hidden is None else len(self.hidden[0])


@dataclass(frozen=True, eq=False)
class Folded:
    """What an image holds: a normaliser, or none, and layers."""

    normaliser: tuple[Array, Array] | None  # mean and inverse standard deviation
    layers: tuple[FoldedLayer, ...]


def fold(stages: Sequence[Stage], ranges: tuple[Array, Array]) -> Folded:
    """Normaliser and layers that compute the stages.

    ranges: of the observations (low, high), within which a clip that nothing reaches is left out.
    """
    rest = list(stages)
    normaliser = None
    if isinstance(rest[0], Normalise):
        first = rest.pop(0)
        assert isinstance(first, Normalise)
        while isinstance(rest[0], Normalise):
            first = both(first, rest.pop(0))
        normaliser = (first.mean, first.inverse_std)
        ranges = (
            (ranges[0] - first.mean) * first.inverse_std,
            (ranges[1] - first.mean) * first.inverse_std,
        )
    if rest and isinstance(rest[0], Clip) and not reached(rest[0], ranges).any():
        rest.pop(0)
    layers: list[FoldedLayer] = []
    open_layer: Dense | None = None  # whose activation is not known yet
    for stage in plain_stages(rest, ranges):
        if isinstance(stage, Activate):
            if open_layer is None:  # of the inputs themselves, or of what has its own
                width = layers[-1].width if layers else ranges[0].size
                open_layer = Dense(np.eye(width), np.zeros(width))
            layers.append(FoldedLayer(stage.name, open_layer.weights, open_layer.bias))
            open_layer = None
        elif isinstance(stage, Recurrent):
            first_product = Dense(stage.weights, stage.bias)
            if open_layer is not None:
                first_product = product(open_layer, first_product)
            own = (stage.hidden_weights, stage.hidden_bias)
            taken = (first_product.weights, first_product.bias)
            layers.append(FoldedLayer("identity", *taken, own))
            open_layer = None
        else:
            open_layer = stage if open_layer is None else product(open_layer, stage)
    if open_layer is not None:
        layers.append(FoldedLayer("identity", open_layer.weights, open_layer.bias))
    if any(max(len(each.weights), each.width) > WIDEST for each in layers):
        raise UnreadableError(f"a layer of it is wider than {WIDEST}, with what its clipping takes")
    return Folded(normaliser, tuple(layers))


def reached(clip: Clip, ranges: tuple[Array, Array]) -> NDArray[np.bool_]:
    """Which elements can leave the clip's range, (width)."""
    return (ranges[0] < clip.low) | (ranges[1] > clip.high)


def plain_stages(stages: Sequence[Stage], ranges: tuple[Array, Array]) -> list[Layer | Activate]:
    """The same with layers and activations alone."""
    plain: list[Layer | Activate] = []
    for stage in stages:
        if isinstance(stage, Normalise):
            scale = stage.inverse_std
            plain.append(Dense(np.diag(scale), -stage.mean * scale))
        elif isinstance(stage, Clip):
            may_leave = reached(stage, ranges) if not plain else np.ones(stage.low.size, bool)
            plain += clip_layers(stage, may_leave)
        elif stage != Activate("identity"):
            plain.append(stage)
    return plain


def clip_layers(clip: Clip, may_leave: NDArray[np.bool_]) -> list[Dense | Activate]:
    """x = relu(x) - relu(-x), less relu(x - high), and with relu(low - x): without rounding where x
    lies within the range. (relu(x - low) - relu(x - high) + low would lose x's last digits.)"""
    columns, biases, rows = [], [], []
    width = clip.low.size
    for i in range(width):
        unit = np.eye(width)[i]
        parts = [(1.0, 0.0, 1.0), (-1.0, 0.0, -1.0)]
        if may_leave[i] and np.isfinite(clip.high[i]):
            parts.append((1.0, -clip.high[i], -1.0))
        if may_leave[i] and np.isfinite(clip.low[i]):
            parts.append((-1.0, clip.low[i], 1.0))
        for sign, bias, weight in parts:
            columns.append(sign * unit)
            biases.append(bias)
            rows.append(weight * unit)
    spread = Dense(np.array(columns).T, np.array(biases))
    return [spread, Activate("relu"), Dense(np.array(rows), np.zeros(width))]


def both(first: Normalise, second: Stage) -> Normalise:
    """One for two, the second behind the first."""
    assert isinstance(second, Normalise)
    mean = first.mean + second.mean / first.inverse_std
    return Normalise(mean, first.inverse_std * second.inverse_std)


def product(first: Dense, second: Dense) -> Dense:
    """One layer for two with nothing between them."""
    return Dense(first.weights @ second.weights, first.bias @ second.weights + second.bias)
