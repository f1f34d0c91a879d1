"""What a policy image is made of (docs/policy_image.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from rltools_host.policies.core import Float32Array, activations

HAS_NORMALISER, HAS_CHOICES = 1, 2
RESET_AT_ACTIVATION, RESET_AT_FAULT, RESET_AT_STALE_INPUT, RESET_AT_PAUSE = 1, 2, 4, 8
RESET_AT_ALL = 15
DENSE, GRU, LSTM = 0, 1, 2  # PolicyLayerKind
GATES = {GRU: 3, LSTM: 4}  # of a recurrent layer
STATES = {DENSE: 0, GRU: 1, LSTM: 2}  # numbers that each of its units remembers
WORD = struct.Struct("<I")


@dataclass(frozen=True)
class Layer:
    """A dense layer, or with hidden weights a recurrent one: a GRU, whose columns are its gates r,
    z and n, or an LSTM, whose gates are i, f, g and o."""

    activation: str
    weights: Float32Array  # (in, columns)
    bias: Float32Array  # (columns)
    hidden: tuple[Float32Array, Float32Array] | None = None  # weights (width, columns) and bias

    @property
    def width(self) -> int:
        return self.bias.size if self.hidden is None else len(self.hidden[0])

    @property
    def kind(self) -> int:
        if self.hidden is None:
            return DENSE
        return LSTM if self.bias.size == GATES[LSTM] * self.width else GRU

    @property
    def state_dim(self) -> int:
        """Numbers that it remembers: of an LSTM its outputs and behind them its cells."""
        return STATES[self.kind] * self.width

    @property
    def tensors(self) -> tuple[Float32Array, ...]:
        """In the order in which they lie in an image."""
        return (self.weights, self.bias, *(self.hidden or ()))


@dataclass(frozen=True)
class Recurrence:
    """Of a policy with a hidden state: the step with which that moves on, and when it is zero."""

    trained_interval_us: int
    most_pause_us: int
    state_dim: int
    reset_at: int = RESET_AT_ALL  # PolicyStateReset of policy/format.h


@dataclass(frozen=True)
class Example:
    """An observation and what the device that wrote the image computed for it."""

    observation: Float32Array
    trace: int
    output: Float32Array
    action: Float32Array
    begins: bool = True  # with a hidden state of zeros


class Shape(NamedTuple):
    """A layer's record."""

    in_dim: int
    out_dim: int
    activation: int
    kind: int
    reserved: bytes

    def is_known(self, may_be_recurrent: bool) -> bool:
        if self.kind in GATES:
            is_one = may_be_recurrent and self.activation == 0
        else:
            is_one = self.kind == DENSE and self.activation < len(activations())
        return is_one and self.out_dim > 0 and not any(self.reserved)

    @property
    def columns(self) -> int:
        return GATES.get(self.kind, 1) * self.out_dim

    @property
    def state_dim(self) -> int:
        return STATES[self.kind] * self.out_dim

    @property
    def parameters(self) -> int:
        hidden = (self.out_dim + 1) * self.columns if self.kind in GATES else 0
        return (self.in_dim + 1) * self.columns + hidden
