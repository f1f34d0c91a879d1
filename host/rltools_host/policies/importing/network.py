"""A foreign policy as a list of stages, and what a description of it states of its contract.

Each format becomes such a list. `run` computes it stage by stage in double precision, by the
library's formulas. layers.py folds it into what an image has, and proof.py compares one with the
other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import NDArray

from rltools_host.build.description import (
    LONGEST_CHANNEL_NAME,
    LONGEST_UNIT,
    Channel,
    described,
    is_policy_text,
)
from rltools_host.documents import shown
from rltools_host.policies.activations import ACTIVATIONS, logistic
from rltools_host.policies.contract import GATES, GRU, LSTM, STATES, Contract
from rltools_host.policies.importing.pickles import MAX_ELEMENTS, Array, UnreadableError

UNITS, MINIMUM, MAXIMUM, FREQUENCY = "units", "minimum", "maximum", "frequency"


@dataclass(frozen=True)
class Tensor:
    """An input or an output. None: the description does not state it."""

    name: str
    elements: tuple[str, ...] | None  # names
    width: int
    units: tuple[str, ...] | None
    minimum: Array | None
    maximum: Array | None

    @property
    def lacks_names(self) -> bool:
        """Return whether only a number tells its elements from each other."""
        return self.width > 1 and self.elements is None

    def channels(self) -> list[Channel]:
        """Return the channels.

        Raise UnreadableError for a name or a unit that a contract cannot have.
        """
        assert self.units is not None
        assert self.minimum is not None
        assert self.maximum is not None
        parts = self.elements or tuple(map(str, range(self.width)))
        own = re.split("[:/]", self.name)[-1]  # of a path: a mask has a colon in its name
        names = [own] if self.width == 1 else [f"{own}_{part}" for part in parts]
        found = []
        for name, unit, low, high in zip(
            names, self.units, self.minimum.tolist(), self.maximum.tolist(), strict=True
        ):
            for text, longest in ((name, LONGEST_CHANNEL_NAME), (unit, LONGEST_UNIT)):
                if not is_policy_text(text, longest) or "|" in text:
                    raise UnreadableError(
                        f"its {shown(text)} is not a channel's name or unit: {described(longest)}"
                    )
            if not low < high:
                raise UnreadableError(f"its {name} is from {low:g} to {high:g}, not a range")
            found.append(Channel(name, unit, low, high))
        return found


@dataclass(frozen=True)
class Stated:
    """The statements of a description on a contract: names, units, ranges, rate."""

    inputs: tuple[Tensor, ...]  # in the model's order
    outputs: tuple[Tensor, ...]
    rate_hz: float | None

    def missing(self, rate_hz: float | None) -> tuple[str, ...]:
        """Return what a contract has and the description lacks, each with the tensors' names.

        rate_hz: a rate that is known otherwise.
        """
        keys_of: dict[tuple[str, ...], list[str]] = {}
        for key in (UNITS, MINIMUM, MAXIMUM):
            tensors = (*self.inputs, *self.outputs)
            names = tuple(each.name for each in tensors if getattr(each, key) is None)
            keys_of.setdefault(names, []).append(key)
        found = [
            f"{', '.join(keys)} of {', '.join(names)}" for names, keys in keys_of.items() if names
        ]
        return (*found, f"{FREQUENCY} (or --rate HZ)") if rate_hz is None else tuple(found)

    def contract(self, rate_hz: float) -> Contract:
        observations = tuple(channel for each in self.inputs for channel in each.channels())
        actions = tuple(channel for each in self.outputs for channel in each.channels())
        for channels in (observations, actions):
            name, count = Counter(channel.name for channel in channels).most_common(1)[0]
            if count > 1:
                raise UnreadableError(f"it has {count} elements that are called {name}")
        return Contract(observations, actions, round(1e6 / rate_hz))

    def notes(self) -> tuple[str, ...]:
        """Return notes on names that were made up for the description's contract."""
        bare = [each.name for each in (*self.inputs, *self.outputs) if each.lacks_names]
        if not bare:
            return ()
        return (f"elements without names are numbered from 0: those of {', '.join(bare)}",)


WIDEST = 4096  # of a layer
MAX_LAYERS = 32
MAX_STATE = 2**16 - 1  # numbers of a hidden state


class Normalize(Struct, frozen=True, eq=False, tag=True):
    """(x - mean) * inverse_std, element by element."""

    mean: Array
    inverse_std: Array


class Clip(Struct, frozen=True, eq=False, tag=True):
    """The clipping of each element to [low, high]."""

    low: Array
    high: Array


class Dense(Struct, frozen=True, eq=False, tag=True):
    weights: Array  # (in, out)
    bias: Array  # (out)


class Recurrent(Struct, frozen=True, eq=False, tag=True):
    """One layer of torch.nn.GRU, whose columns are the gates r, z and n side by side, or of
    torch.nn.LSTM, whose gates are i, f, g and o. Its state is zero at the beginning of an
    episode."""

    weights: Array  # (in, gates width)
    bias: Array  # (gates width)
    hidden_weights: Array  # (width, gates width)
    hidden_bias: Array  # (gates width)

    @property
    def is_lstm(self) -> bool:
        return bool(self.bias.size == GATES[LSTM] * len(self.hidden_weights))

    @property
    def state_dim(self) -> int:
        return STATES[LSTM if self.is_lstm else GRU] * len(self.hidden_weights)


class Activate(Struct, frozen=True, tag=True):
    """An activation, by its name in RLT_ACTIVATION_LIST."""

    name: str


Layer = Dense | Recurrent
Stage = Normalize | Clip | Layer | Activate
Starts = NDArray[np.bool_]  # which rows begin an episode


@dataclass(frozen=True)
class ForeignPolicy:
    """A policy as its file states it: from observations in the environment's units to an action.

    Where `is_normalized`, the stages' output is an action in [-1, 1], which is scaled to the
    environment's ranges; where it is False, the output is in the environment's units and clipped to
    the ranges; where it is None, the file does not say. Bounds are those of the environment's
    spaces, where the file states them.
    """

    library: str  # for example "Stable-Baselines3 PPO"
    stages: tuple[Stage, ...]
    is_normalized: bool | None = None
    # Number of choices of each discrete action. The outputs are then a number for each choice, and
    # the largest counts.
    choices: tuple[int, ...] = ()
    observation_bounds: tuple[Array, Array] | None = None
    action_bounds: tuple[Array, Array] | None = None
    step: int = 0
    seed: int = 0
    expected_return: float | None = None  # of the last training episodes
    algorithm: str = ""  # of this tree, by the same name
    step_interval_us: int | None = None
    lacks_normalizer: bool = False  # it lies in another file
    notes: tuple[str, ...] = ()
    # What it does not state, and is assumed: "<what>, state it by <how>".
    assumed: tuple[str, ...] = ()
    # Whether `is_normalized` is assumed, because the network ends in tanh.
    is_scaling_assumed: bool = False
    # The library's own outputs, if it is installed: (n, out) for (n, in).
    reference: Callable[[NDArray[np.float32]], Array] | None = None
    input_names: tuple[str, ...] = ()  # of the vectors that make up an observation
    # Whether twice as many outputs as actions are means and, behind them, deviations.
    may_have_deviations: bool = False
    has_half_precision: bool = False  # the library computes with 16 bits
    asks_for_masks: bool = False  # it was trained with some of its choices forbidden
    channel_names: tuple[str, ...] = ()  # of its observations, where the file states them
    stated: Stated | None = None  # statements of the file on its contract

    @property
    def precision(self) -> type[np.floating[Any]]:
        """Return the type of the numbers that the library computes with."""
        return np.float16 if self.has_half_precision else np.float32

    @property
    def observation_dim(self) -> int:
        return widths(self.stages)[0]

    @property
    def output_dim(self) -> int:
        return widths(self.stages)[1]


def is_recurrent(stages: Sequence[Stage]) -> bool:
    """Return whether the outputs depend on earlier inputs."""
    return any(isinstance(stage, Recurrent) for stage in stages)


def widths(stages: Sequence[Stage]) -> tuple[int, int]:
    """Return the numbers of inputs and outputs.

    Raise UnreadableError where the stages do not follow each other.
    """
    width: int | None = None
    first: int | None = None
    for stage in stages:
        if isinstance(stage, Activate):
            continue
        taken, given = ends_of(stage)
        if width not in (None, taken):
            raise UnreadableError(f"a layer of {taken} inputs follows one of {width} outputs")
        first = taken if first is None else first
        width = given
    if first is None or width is None:
        raise UnreadableError("it has no layer")
    return first, width


def ends_of(stage: Normalize | Clip | Layer) -> tuple[int, int]:
    """Return how many numbers the stage takes, and returns."""
    if isinstance(stage, Dense):
        return stage.weights.shape[0], stage.weights.shape[1]
    if isinstance(stage, Recurrent):
        return stage.weights.shape[0], stage.hidden_weights.shape[0]
    width = stage.mean.size if isinstance(stage, Normalize) else stage.low.size
    return width, width


def numbers_of(stage: Stage) -> tuple[Array, ...]:
    """Return all arrays of the stage."""
    if isinstance(stage, Activate):
        return ()
    return astuple(stage)


def check_stages(stages: Sequence[Stage]) -> None:
    """Raise UnreadableError unless an image can hold the stages."""
    layers = [stage for stage in stages if isinstance(stage, Dense | Recurrent)]
    if not layers or len(layers) > MAX_LAYERS:
        raise UnreadableError(f"it has {len(layers)} layers, and 1 to {MAX_LAYERS} are supported")
    if not all(has_fitting_shapes(layer) for layer in layers):
        raise UnreadableError("a layer's weights and bias have shapes that do not fit together")
    if sum(layer.state_dim for layer in layers if isinstance(layer, Recurrent)) > MAX_STATE:
        raise UnreadableError(f"its hidden state has more than {MAX_STATE:,} numbers")
    for each in stages:
        finite = np.isnan if isinstance(each, Clip) else lambda values: ~np.isfinite(values)
        if any(finite(values).any() for values in numbers_of(each)):
            raise UnreadableError("a number of its network is infinite or not a number")
        if isinstance(each, Clip) and (each.low >= each.high).any():
            raise UnreadableError("it clips to a range that is empty")
        if isinstance(each, Normalize) and not (each.inverse_std > 0).all():
            raise UnreadableError("its normalizer divides by a number that is not above 0")
    widths(stages)
    if folded_numbers(stages) > MAX_ELEMENTS:
        raise UnreadableError(
            f"its layers, with what scaling and clipping take, have more than {MAX_ELEMENTS:,} "
            "numbers"
        )


def folded_numbers(stages: Sequence[Stage]) -> int:
    """Return about how many numbers the stages have when layers alone compute them: a matrix for
    each scaling behind the first, and for a clip two, and two of twice the rows, at most."""
    total = sum(values.size for stage in stages for values in numbers_of(stage))
    for index, stage in enumerate(stages):
        if isinstance(stage, Normalize) and index > 0:
            total += stage.mean.size**2
        elif isinstance(stage, Clip):
            total += 8 * stage.low.size**2
    return total


def has_fitting_shapes(layer: Layer) -> bool:
    columns = layer.bias.shape
    if layer.weights.ndim != 2 or layer.weights.shape[1:] != columns:
        return False
    taken, width = layer.weights.shape
    if isinstance(layer, Recurrent):
        width, own = layer.hidden_weights.shape
        known = [gates * width for gates in GATES.values()]
        if (own,) != columns or layer.hidden_bias.shape != columns or own not in known:
            return False
    return bool(1 <= min(taken, width) <= max(taken, width) <= WIDEST)


def run(stages: Sequence[Stage], x: Array, starts: Starts | None = None) -> Array:
    """Return outputs (n, out) for inputs (n, in), in double precision.

    starts (n): which rows begin an episode, where recurrent stages take rows as steps in time;
    None: each row does.
    """
    for stage in stages:
        if isinstance(stage, Normalize):
            x = (x - stage.mean) * stage.inverse_std
        elif isinstance(stage, Clip):
            x = np.clip(x, stage.low, stage.high)
        elif isinstance(stage, Dense):
            x = x @ stage.weights + stage.bias
        elif isinstance(stage, Recurrent):
            cell = lstm if stage.is_lstm else gru
            x = cell(stage, x, np.ones(len(x), bool) if starts is None else starts)
        else:
            x = ACTIVATIONS[stage.name].value(x)
    return x


def gru(layer: Recurrent, x: Array, starts: Starts) -> Array:
    """Return the states (n, width) after each step: h = (1 - z) n + z h, where n is tanh(x_n + r
    h_n).

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html
    """
    sums = x @ layer.weights + layer.bias
    zeros = np.zeros(len(layer.hidden_weights), sums.dtype)
    found = np.empty((len(x), zeros.size), sums.dtype)
    state = zeros
    for row, begins in enumerate(starts):
        state = zeros if begins else state
        own = np.split(state @ layer.hidden_weights + layer.hidden_bias, GATES[GRU])
        given = np.split(sums[row], GATES[GRU])
        reset, keep = (logistic(given[gate] + own[gate]) for gate in range(2))
        candidate = np.tanh(given[2] + reset * own[2])
        state = (1 - keep) * candidate + keep * state
        found[row] = state
    return found


def lstm(layer: Recurrent, x: Array, starts: Starts) -> Array:
    """Return the outputs (n, width) after each step: h = o tanh(c), where c is f c + i g.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
    """
    sums = x @ layer.weights + (layer.bias + layer.hidden_bias)
    zeros = np.zeros(len(layer.hidden_weights), sums.dtype)
    found = np.empty((len(x), zeros.size), sums.dtype)
    state = cells = zeros
    for row, begins in enumerate(starts):
        if begins:
            state = cells = zeros
        into, forget, candidate, out = np.split(
            sums[row] + state @ layer.hidden_weights, GATES[LSTM]
        )
        cells = logistic(forget) * cells + logistic(into) * np.tanh(candidate)
        state = logistic(out) * np.tanh(cells)
        found[row] = state
    return found


def run_in(
    precision: type[np.floating[Any]],
    stages: Sequence[Stage],
    x: NDArray[np.float32],
    starts: Starts | None = None,
) -> Array:
    """Return the outputs of run() in the precision with which a library computes."""
    single: list[Stage] = []
    for stage in stages:
        arrays = [values.astype(precision) for values in numbers_of(stage)]
        single.append(type(stage)(*arrays) if arrays else stage)  # type: ignore[arg-type]
    return run(single, x.astype(precision), starts).astype(float)
