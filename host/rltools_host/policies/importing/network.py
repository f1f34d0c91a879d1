"""A foreign policy as a list of stages.

Each format becomes such a list. `run` computes it stage by stage in double precision, as the
library's formulas stand; layers.py makes a normalizer and layers of it, which the image has.
proof.py compares one with the other.

What a description of a policy states of the contract by which it acts: names, units, ranges, rate;
and what it lacks for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rltools_host.build.description import (
    LONGEST_CHANNEL_NAME,
    LONGEST_UNIT,
    Channel,
    described,
    is_policy_text,
)
from rltools_host.documents import shown
from rltools_host.policies.contract import GATES, GRU, LSTM, STATES, Contract
from rltools_host.policies.double_precision import VALUES as VALUES
from rltools_host.policies.double_precision import logistic
from rltools_host.policies.importing.pickles import Array, UnreadableError

UNITS, MINIMUM, MAXIMUM, FREQUENCY = "units", "minimum", "maximum", "frequency"


@dataclass(frozen=True)
class Tensor:
    """An input or an output; None: the description does not state it."""

    name: str
    elements: tuple[str, ...] | None  # names
    width: int
    units: tuple[str, ...] | None
    minimum: Array | None
    maximum: Array | None

    def channels(self) -> list[Channel]:
        """UnreadableError: a name or a unit is none that a contract can have."""
        assert self.units is not None
        assert self.minimum is not None
        assert self.maximum is not None
        parts = self.elements or tuple(map(str, range(self.width)))
        names = [self.name] if self.width == 1 else [f"{self.name}_{part}" for part in parts]
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
    """What a description states of a contract."""

    inputs: tuple[Tensor, ...]  # in the model's order
    outputs: tuple[Tensor, ...]
    rate_hz: float | None

    def missing(self, rate_hz: float | None) -> tuple[str, ...]:
        """What a contract has and the description lacks, each with the tensors' names; rate_hz:
        what else is known of it."""
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
        """What is made up where the contract is the description's."""
        bare = [
            each.name
            for each in (*self.inputs, *self.outputs)
            if each.width > 1 and each.elements is None
        ]
        if not bare:
            return ()
        return (f"elements without names are numbered from 0: those of {', '.join(bare)}",)


WIDEST = 4096  # of a layer
MAX_LAYERS = 32
MOST_STATE = 2**16 - 1  # numbers of a hidden state


@dataclass(frozen=True, eq=False)
class Normalize:
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


@dataclass(frozen=True, eq=False)
class Recurrent:
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


@dataclass(frozen=True)
class Activate:
    """By its name in RLT_ACTIVATION_LIST."""

    name: str


Layer = Dense | Recurrent
Stage = Normalize | Clip | Layer | Activate
Starts = NDArray[np.bool_]  # which observations, of rows in time, begin an episode


@dataclass(frozen=True)
class ForeignPolicy:
    """What a file says of a policy: from observations in the environment's units to an action.

    The stages' output is an action in [-1, 1], which is taken to the environment's ranges, where
    `is_normalized`; where it is False, the output is in the environment's units and cut off at the
    ranges; where it is None, the file does not tell. Bounds are those that the file states of the
    environment's spaces, where it does.
    """

    library: str  # for example "Stable-Baselines3 PPO"
    stages: tuple[Stage, ...]
    is_normalized: bool | None = None
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
    lacks_normalizer: bool = False  # it was trained with one, which lies in another file
    notes: tuple[str, ...] = ()
    # What it does not state and is taken to be so: "<what>, state it by <how>".
    assumed: tuple[str, ...] = ()
    # Whether `is_normalized` is one of these: a tanh is its end, and nothing says what that means.
    is_scaling_assumed: bool = False
    # What the library itself gives for observations, where it is at hand: (n, out) for (n, in).
    reference: Callable[[NDArray[np.float32]], Array] | None = None
    input_names: tuple[str, ...] = ()  # of vectors that an observation has one behind the other
    channel_names: tuple[str, ...] = ()  # of its observations, where the file states them
    stated: Stated | None = None  # what the file states of where it acts

    @property
    def observation_dim(self) -> int:
        return widths(self.stages)[0]

    @property
    def output_dim(self) -> int:
        return widths(self.stages)[1]


def is_recurrent(stages: Sequence[Stage]) -> bool:
    """Whether what they give depends on what they were given before."""
    return any(isinstance(stage, Recurrent) for stage in stages)


def widths(stages: Sequence[Stage]) -> tuple[int, int]:
    """Of what goes in and comes out; UnreadableError where the stages do not follow each other."""
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
    """How many numbers it takes, and gives."""
    if isinstance(stage, Dense):
        return stage.weights.shape[0], stage.weights.shape[1]
    if isinstance(stage, Recurrent):
        return stage.weights.shape[0], stage.hidden_weights.shape[0]
    width = stage.mean.size if isinstance(stage, Normalize) else stage.low.size
    return width, width


def numbers_of(stage: Stage) -> tuple[Array, ...]:
    """All its arrays."""
    if isinstance(stage, Activate):
        return ()
    return tuple(getattr(stage, each.name) for each in fields(stage))


def check_stages(stages: Sequence[Stage]) -> None:
    """UnreadableError unless an image can hold them."""
    layers = [stage for stage in stages if isinstance(stage, Dense | Recurrent)]
    if not layers or len(layers) > MAX_LAYERS:
        raise UnreadableError(f"it has {len(layers)} layers, and from 1 to {MAX_LAYERS} are taken")
    if not all(has_fitting_shapes(layer) for layer in layers):
        raise UnreadableError("a layer's weights and bias have shapes that do not fit together")
    if sum(layer.state_dim for layer in layers if isinstance(layer, Recurrent)) > MOST_STATE:
        raise UnreadableError(f"its hidden state has more than {MOST_STATE:,} numbers")
    for each in stages:
        finite = np.isnan if isinstance(each, Clip) else lambda values: ~np.isfinite(values)
        if any(finite(values).any() for values in numbers_of(each)):
            raise UnreadableError("a number of its network is infinite or not a number")
        if isinstance(each, Clip) and (each.low >= each.high).any():
            raise UnreadableError("it clips to a range that is empty")
        if isinstance(each, Normalize) and not (each.inverse_std > 0).all():
            raise UnreadableError("its normalizer divides by a number that is not above 0")
    widths(stages)


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
    """Outputs (n, out) for inputs (n, in), in double precision.

    starts (n): of recurrent stages the rows are steps in time, and which of them begin an episode;
    None: each does.
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
            x = VALUES[stage.name](x)
    return x


def gru(layer: Recurrent, x: Array, starts: Starts) -> Array:
    """States (n, width) after each step (https://docs.pytorch.org/docs/stable/generated/torch.nn.
    GRU.html): h = (1 - z) n + z h, where n is tanh(x_n + r h_n)."""
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
    """Outputs (n, width) after each step (https://docs.pytorch.org/docs/stable/generated/torch.nn.
    LSTM.html): h = o tanh(c), where c is f c + i g."""
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


def run_in_single(
    stages: Sequence[Stage], x: NDArray[np.float32], starts: Starts | None = None
) -> Array:
    """The same in the precision that libraries compute with."""
    single: list[Stage] = []
    for stage in stages:
        arrays = [values.astype(np.float32) for values in numbers_of(stage)]
        single.append(type(stage)(*arrays) if arrays else stage)  # type: ignore[arg-type]
    return run(single, x.astype(np.float32), starts).astype(float)
