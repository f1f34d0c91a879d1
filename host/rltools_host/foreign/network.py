"""A foreign policy as a list of stages, and what an image holds of it.

Each format becomes such a list. `run` computes it stage by stage in double precision, as the
library's formulas stand; `layers_of` folds it into a normaliser and dense layers, which the image
has. One is compared with the other (foreign/proof.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rltools_host.foreign.pickles import Array, UnreadableError

WIDEST = 4096  # of a layer
MOST_LAYERS = 32
ROUNDED = 3e-7  # of what single precision makes of bounds about 1


@dataclass(frozen=True, eq=False)
class Normalise:
    """(x - mean) * inverse_std, element by element."""

    mean: Array
    inverse_std: Array


@dataclass(frozen=True, eq=False)
class Clip:
    """Each element to [low, high]."""

    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Dense:
    weights: Array  # (in, out)
    bias: Array  # (out)


@dataclass(frozen=True)
class Activate:
    """By its name in RLT_ACTIVATION_LIST."""

    name: str


Stage = Normalise | Clip | Dense | Activate


def erf(x: Array) -> Array:
    values: Array = np.vectorize(math.erf, otypes=[float])(x)
    return values


def logistic(x: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -x))


# In double precision; the names are the core's.
VALUES: Mapping[str, Callable[[Array], Array]] = {
    "identity": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1.0 + erf(x / math.sqrt(2.0))),
    "tanh": np.tanh,
    "sigmoid": logistic,
    "softplus": lambda x: np.logaddexp(0.0, x),
    "elu": lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
    "silu": lambda x: x * logistic(x),
}


@dataclass(frozen=True)
class ForeignPolicy:
    """What a file says of a policy: from observations in the environment's units to an action.

    The stages' output is an action in [-1, 1], which is taken to the environment's ranges, where
    `is_normalised`; where it is False, the output is in the environment's units and cut off at the
    ranges; where it is None, the file does not tell. Bounds are those that the file states of the
    environment's spaces, where it does.
    """

    library: str  # for example "Stable-Baselines3 PPO"
    stages: tuple[Stage, ...]
    is_normalised: bool | None = None
    # How many each of its actions chooses from, where the file says that it chooses; its outputs
    # are then a number for each of these, of which the largest is chosen.
    choices: tuple[int, ...] = ()
    observation_bounds: tuple[Array, Array] | None = None
    action_bounds: tuple[Array, Array] | None = None
    step: int = 0
    seed: int = 0
    expected_return: float | None = None  # of the last episodes of training, where it is stated
    algorithm: str = ""  # ours of the same name, where there is one
    step_interval_us: int | None = None
    lacks_normaliser: bool = False  # it was trained with one, which lies in another file
    notes: tuple[str, ...] = ()
    # What the library itself gives for observations, where it is at hand: (n, out) for (n, in).
    reference: Callable[[NDArray[np.float32]], Array] | None = None

    @property
    def observation_dim(self) -> int:
        return widths(self.stages)[0]

    @property
    def output_dim(self) -> int:
        return widths(self.stages)[1]


def widths(stages: Sequence[Stage]) -> tuple[int, int]:
    """Of what goes in and comes out; UnreadableError where the stages do not follow each other."""
    width: int | None = None
    first: int | None = None
    for stage in stages:
        if isinstance(stage, Activate):
            continue
        taken = stage.weights.shape[0] if isinstance(stage, Dense) else stage_width(stage)
        if width not in (None, taken):
            raise UnreadableError(f"a layer of {taken} inputs follows one of {width} outputs")
        first = taken if first is None else first
        width = stage.weights.shape[1] if isinstance(stage, Dense) else taken
    if first is None or width is None:
        raise UnreadableError("it has no layer")
    return first, width


def stage_width(stage: Normalise | Clip) -> int:
    return stage.mean.size if isinstance(stage, Normalise) else stage.low.size


def numbers_of(stage: Stage) -> tuple[Array, ...]:
    """All its arrays."""
    if isinstance(stage, Activate):
        return ()
    return tuple(getattr(stage, each.name) for each in fields(stage))


def check_stages(stages: Sequence[Stage]) -> None:
    """UnreadableError unless an image can hold them."""
    dense = [stage for stage in stages if isinstance(stage, Dense)]
    if not dense or len(dense) > MOST_LAYERS:
        raise UnreadableError(f"it has {len(dense)} layers, and from 1 to {MOST_LAYERS} are taken")
    for stage in dense:
        is_fitting = stage.weights.ndim == 2 and stage.bias.shape == stage.weights.shape[1:]
        if (
            not is_fitting
            or not 1 <= min(stage.weights.shape) <= max(stage.weights.shape) <= WIDEST
        ):
            raise UnreadableError("a layer's weights and bias have shapes that do not fit together")
    for each in stages:
        finite = np.isnan if isinstance(each, Clip) else lambda values: ~np.isfinite(values)
        if any(finite(values).any() for values in numbers_of(each)):
            raise UnreadableError("a number of its network is infinite or not a number")
        if isinstance(each, Clip) and (each.low >= each.high).any():
            raise UnreadableError("it clips to a range that is empty")
        if isinstance(each, Normalise) and not (each.inverse_std > 0).all():
            raise UnreadableError("its normaliser divides by a number that is not above 0")
    widths(stages)


def run(stages: Sequence[Stage], x: Array) -> Array:
    """Outputs (n, out) for inputs (n, in), in double precision."""
    for stage in stages:
        if isinstance(stage, Normalise):
            x = (x - stage.mean) * stage.inverse_std
        elif isinstance(stage, Clip):
            x = np.clip(x, stage.low, stage.high)
        elif isinstance(stage, Dense):
            x = x @ stage.weights + stage.bias
        else:
            x = VALUES[stage.name](x)
    return x


def run_in_single(stages: Sequence[Stage], x: NDArray[np.float32]) -> Array:
    """The same in the precision that libraries compute with."""
    single: list[Stage] = []
    for stage in stages:
        arrays = [values.astype(np.float32) for values in numbers_of(stage)]
        single.append(type(stage)(*arrays) if arrays else stage)  # type: ignore[arg-type]
    return run(single, x.astype(np.float32)).astype(float)


# -- the end of a network --------------------------------------------------------------------------


def trimmed(stages: Sequence[Stage]) -> list[Stage]:
    """Without scaling and clipping behind the last layer that come to nothing, as the output is cut
    off at -1 and 1 anyway: what is there is clip(scale x + offset, low, high)."""
    rest = list(stages)
    tail: list[Normalise | Clip] = []
    while rest and isinstance(rest[-1], Normalise | Clip):
        last = rest.pop()
        assert isinstance(last, Normalise | Clip)
        tail.insert(0, last)
    if not tail or not rest:
        return list(stages)
    width = stage_width(tail[0])
    scale, offset = np.ones(width), np.zeros(width)
    low, high = np.full(width, -np.inf), np.full(width, np.inf)
    for each in tail:
        if isinstance(each, Normalise):
            scale, offset = scale * each.inverse_std, (offset - each.mean) * each.inverse_std
            low, high = (low - each.mean) * each.inverse_std, (high - each.mean) * each.inverse_std
        else:
            low, high = np.clip(low, each.low, each.high), np.clip(high, each.low, each.high)
    if np.abs(scale - 1).max() > ROUNDED or np.abs(offset).max() > ROUNDED:
        rest.append(Normalise(-offset / scale, scale))
    if (low > -1 + ROUNDED).any() or (high < 1 - ROUNDED).any():
        rest.append(Clip(low, high))
    return rest


# -- folding ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Folded:
    """What an image holds: a normaliser, or none, and layers (activation, weights, bias)."""

    normaliser: tuple[Array, Array] | None  # mean and inverse standard deviation
    layers: tuple[tuple[str, Array, Array], ...]


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
    layers: list[tuple[str, Array, Array]] = []
    open_layer: Dense | None = None  # whose activation is not known yet
    for stage in plain_stages(rest, ranges):
        if isinstance(stage, Activate):
            if open_layer is None:  # of the inputs themselves, or of another activation
                width = layers[-1][1].shape[1] if layers else ranges[0].size
                open_layer = Dense(np.eye(width), np.zeros(width))
            layers.append((stage.name, open_layer.weights, open_layer.bias))
            open_layer = None
        else:
            open_layer = stage if open_layer is None else product(open_layer, stage)
    if open_layer is not None:
        layers.append(("identity", open_layer.weights, open_layer.bias))
    if any(max(weights.shape) > WIDEST for _, weights, _ in layers):
        raise UnreadableError(f"a layer of it is wider than {WIDEST}, with what its clipping takes")
    return Folded(normaliser, tuple(layers))


def reached(clip: Clip, ranges: tuple[Array, Array]) -> NDArray[np.bool_]:
    """Which elements can leave the clip's range, (width)."""
    return (ranges[0] < clip.low) | (ranges[1] > clip.high)


def plain_stages(stages: Sequence[Stage], ranges: tuple[Array, Array]) -> list[Dense | Activate]:
    """The same with dense layers and activations alone."""
    plain: list[Dense | Activate] = []
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
