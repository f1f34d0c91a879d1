"""Readers of the sections of a policy image (docs/policy_image.md), one after another."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np

from rltools_host.build.description import (
    MAX_CHOICES,
    MAX_STEP_INTERVAL_US,
    Channel,
)
from rltools_host.policies.contract import (
    CHANNEL,
    CHOICE,
    CHOICE_UNIT,
    DENSE,
    ENTRY,
    RESET_AT_ACTIVATION,
    RESET_AT_ALL,
    WORD,
    EntryEnvelope,
    Example,
    Layer,
    Recurrence,
    Shape,
)
from rltools_host.policies.core import LAYER, DamagedPolicyError, Float32Array, activations
from rltools_host.runs.saves import RECURRENCE


class SectionReader:
    """A reader of section after section, from the front of an image."""

    def __init__(self, data: bytes, origin: str) -> None:
        self.data = data
        self.origin = origin
        self.position = 0

    def refuse(self, reason: str, detail: str) -> DamagedPolicyError:
        return DamagedPolicyError(self.origin, reason, detail)

    def read_recurrence(self, header: tuple[Any, ...]) -> Recurrence:
        *fields, reserved = self.take(RECURRENCE)
        found = Recurrence(*fields)
        interval = header[10]
        if (
            reserved
            or not 1 <= found.trained_interval_us <= MAX_STEP_INTERVAL_US
            or found.trained_interval_us % interval
            or not interval <= found.max_pause_us <= MAX_STEP_INTERVAL_US
            or not found.state_dim
            or not found.reset_at & RESET_AT_ACTIVATION
            or found.reset_at > RESET_AT_ALL
        ):
            raise self.refuse("malformed", "what it says of its hidden state contradicts itself")
        return found

    def text(self, field: bytes, what: str) -> str:
        value, _, rest = field.partition(b"\0")
        if not value or len(value) == len(field) or rest.strip(b"\0"):
            raise self.refuse("malformed", f"a text of its {what} is empty or not ended by a zero")
        return value.decode("utf-8", "replace")

    def take(self, record: struct.Struct) -> tuple[Any, ...]:
        fields = record.unpack_from(self.data, self.position)
        self.position += record.size
        return fields

    def choice_counts(self, counts: tuple[int, int, int, int]) -> list[int]:
        """Return how many choices each action has, 0 for a continuous one."""
        observation_dim, action_dim, layer_count, _ = counts
        found = []
        for index in range(observation_dim, observation_dim + action_dim):
            position = self.position + layer_count * LAYER.size + index * CHANNEL.size
            _, unit, minimum, maximum = CHANNEL.unpack_from(self.data, position)
            is_choice = unit.partition(b"\0")[0] == CHOICE_UNIT.encode()
            if is_choice and not (
                minimum == 0 and 1 <= maximum < MAX_CHOICES and maximum == int(maximum)
            ):
                raise self.refuse("malformed", f"channel {index} is not a choice of 2 to 256 names")
            found.append(int(maximum) + 1 if is_choice else 0)
        if not any(found):
            raise self.refuse("malformed", "it says that an action is a choice, and none is")
        return found

    def read_choices(self, channel: Channel, count: int) -> Channel:
        """Return the action with the names of its `count` choices; unchanged where that is 0."""
        if not count:
            return channel
        what = f'choice of "{channel.name}"'
        names = [self.text(self.take(CHOICE)[0], what) for _ in range(count)]
        if any("|" in name for name in names):
            raise self.refuse("malformed", f"a name of a {what} has a bar")
        return replace(channel, unit="|".join(names))

    def read_entry(self) -> EntryEnvelope:
        *bounds, reserved = self.take(ENTRY)
        if not np.isfinite(bounds).all():
            raise self.refuse("not_finite", "what it may be handed has a bound that is not finite")
        if min(bounds) < 0 or reserved:
            raise self.refuse("malformed", "what it may be handed contradicts itself")
        return EntryEnvelope(*bounds)

    def read_layer_table(
        self, observation_dim: int, width: int, layer_count: int, recurrence: Recurrence | None
    ) -> list[Shape]:
        """Return each layer's record. They lead from the observations to the outputs."""
        shapes = []
        present = observation_dim
        for index in range(layer_count):
            shape = Shape(*self.take(LAYER))
            if shape.in_dim != present or not shape.is_known(recurrence is not None):
                raise self.refuse("malformed", f"layer {index} does not fit the one before")
            shapes.append(shape)
            present = shape.out_dim
        if present != width:
            raise self.refuse("malformed", "the last layer's width is not that of the actions")
        state_dim = sum(shape.state_dim for shape in shapes)
        if state_dim != (0 if recurrence is None else recurrence.state_dim):
            raise self.refuse("malformed", "its hidden state is not that of its layers")
        return shapes

    def read_channel(self, index: int) -> Channel:
        name, unit, minimum, maximum = self.take(CHANNEL)
        if b"|" in unit:
            raise self.refuse("malformed", f"the unit of channel {index} has a bar")
        channel = Channel(
            self.text(name, f"channel {index}"),
            self.text(unit, f"channel {index}"),
            minimum,
            maximum,
        )
        with np.errstate(over="ignore", invalid="ignore"):
            span = np.float32(maximum) - np.float32(minimum)
        if not np.isfinite([minimum, maximum, span]).all():
            raise self.refuse("not_finite", f"the range of channel {index} is not finite")
        if not minimum < maximum:
            raise self.refuse("malformed", f"the range of channel {index} is empty")
        return channel

    def read_floats(self, count: int, what: str) -> Float32Array:
        values = np.frombuffer(self.data, "<f4", count, self.position).astype(np.float32)
        self.position += 4 * count
        if not np.isfinite(values).all():
            raise self.refuse("not_finite", f"a number of {what} is infinite or not a number")
        return values

    def read_layer(self, index: int, shape: Shape) -> Layer:
        name = list(activations())[shape.activation]
        product = self.read_product(index, shape.in_dim, shape.columns)
        if shape.kind == DENSE:
            return Layer(name, *product)
        return Layer(name, *product, self.read_product(index, shape.out_dim, shape.columns))

    def read_product(
        self, index: int, rows: int, columns: int
    ) -> tuple[Float32Array, Float32Array]:
        weights = self.read_floats(rows * columns, f"layer {index}").reshape(rows, columns)
        return weights, self.read_floats(columns, f"layer {index}")

    def read_example(self, index: int, dims: tuple[int, int, int], is_step: bool) -> Example:
        observation_dim, width, action_dim = dims
        (begins,) = self.take(WORD) if is_step else (1,)
        if begins > 1 or (index == 0 and not begins):
            raise self.refuse("malformed", f"example {index} neither begins a sequence nor goes on")
        observation = self.read_floats(observation_dim, f"example {index}")
        (trace,) = self.take(WORD)
        output = self.read_floats(width, f"example {index}")
        action = self.read_floats(action_dim, f"example {index}")
        return Example(observation, trace, output, action, bool(begins))
