"""Contracts of policies and boards, with channels and rate, and the parts of a policy image
(docs/policy_image.md)."""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Annotated, NamedTuple

from msgspec import Meta

from rltools_host.build.description import (
    LONGEST_CHANNEL_NAME,
    LONGEST_NAME,
    LONGEST_UNIT,
    MAX_CHOICES,
    Channel,
    is_policy_text,
    is_subject_name,
    safe_value,
    unsafe,
    usual_safe_value,
)
from rltools_host.documents import LARGEST_BOUND, shown
from rltools_host.errors import DamagedFileError, UsageError, unknown_name
from rltools_host.policies.core import Float32Array, activations
from rltools_host.runs.contents import Run
from rltools_host.runs.task import IntervalSource, Task

Bound = Annotated[float, Meta(ge=0, le=LARGEST_BOUND)]
CHANNEL = struct.Struct("<24s16sff")  # as in a policy image, docs/policy_image.md
CHOICE = struct.Struct("<24s")  # a name
CHOICE_UNIT = "choice"  # unit of a discrete action's record
TAIL = struct.Struct("<IHH")  # of a board's contract: step_interval_us, observations, actions


def require_texts(origin: str, channels: Sequence[Channel], *subjects: str, name: str = "") -> None:
    """Raise DamagedFileError unless names and units can be shown, and pasted into headers.

    channels: of a policy or a contract; subjects: names of experiments and contracts; name: of an
    environment.
    """
    texts = [(channel.name, LONGEST_CHANNEL_NAME) for channel in channels]
    for channel in channels:
        names = [(name, LONGEST_CHANNEL_NAME) for name in channel.choices]
        texts += names or [(channel.unit, LONGEST_UNIT)]
    texts += [(name, LONGEST_NAME)] if name else []
    wrong = [text for text, longest in texts if not is_policy_text(text, longest)]
    wrong += [text for text in subjects if not is_subject_name(text)]
    if wrong:
        raise DamagedFileError(
            f"{origin} has a name or unit that is not plain text, {shown(wrong[0])}: do not use it"
        )


@dataclass(frozen=True)
class PastAction:
    """An element of the action of so many ticks ago, normalized to [-1, 1]."""

    action: int
    ticks: int


@dataclass(frozen=True)
class ObservationSum:
    """The sum of an element of the observation times seconds, over the ticks on which the policy
    acted."""

    observation: int
    minimum: float  # clipped to these
    maximum: float
    step_interval_us: int


AddedInput = PastAction | ObservationSum  # that the executor adds behind the observation


def past_action(channel: Channel, actions: Sequence[Channel]) -> PastAction | None:
    """Return the past action that a channel named `<action>_t-<n>` asks for (docs/policy_image.md),
    or None."""
    if (channel.unit, channel.minimum, channel.maximum) != ("1", -1.0, 1.0):
        return None
    for index, action in enumerate(actions):
        if channel.name.startswith(f"{action.name}_t-"):
            ticks = channel.name[len(action.name) + 3 :]
            if re.fullmatch("[1-9][0-9]*", ticks):
                return PastAction(index, int(ticks))
    return None


def channel_record(channel: Channel) -> bytes:
    """Return the channel's record in a policy image."""
    unit = CHOICE_UNIT if channel.choices else channel.unit
    return CHANNEL.pack(channel.name.encode(), unit.encode(), channel.minimum, channel.maximum)


def choices_of(actions: Sequence[Channel]) -> tuple[str, ...]:
    """Return the names of all discrete actions' choices, action after action."""
    return tuple(name for action in actions for name in action.choices)


LEAST_ALLOWED = 0.5  # kMinAllowed of policy/contract.h


def masks_of(observations: Sequence[Channel], actions: Sequence[Channel]) -> list[int | None]:
    """Return for each output of the network the index of the observation that masks it, or None.

    Such an observation is named `<action>:<choice>`.
    """
    positions = {channel.name: index for index, channel in reversed([*enumerate(observations)])}
    return [
        positions.get(f"{action.name}:{name}") if name else None
        for action in actions
        for name in action.choices or ("",)
    ]


def output_dim(actions: Sequence[Channel]) -> int:
    """Return the network's number of outputs: one for each choice of a discrete action, one for a
    continuous action."""
    return sum(len(action.choices) or 1 for action in actions)


STEP_INTERVAL_ASSUMED, SAFE_ACTION_ASSUMED = 8, 16  # flags of an image: nobody stated it
ASSUMPTIONS = STEP_INTERVAL_ASSUMED | SAFE_ACTION_ASSUMED
# The action after a fault: a value for each action, None where nobody states it.
SafeAction = tuple[float | None, ...]


def safe_action_of(text: str, actions: Sequence[Channel]) -> SafeAction:
    """Parse --safe-action: a value for each action in their order, or NAME=VALUE for some of them.

    A choice is given by its name or its number. Raise UsageError where an action cannot take the
    value.
    """
    words = [word.strip() for word in text.split(",")]
    found: list[float | None] = [None] * len(actions)
    names = [action.name for action in actions]
    named = [word.partition("=") for word in words]
    if all(equals and name.strip() in names for name, equals, _ in named):
        for name, _, value in named:
            index = names.index(name.strip())
            found[index] = safe_value(actions[index], value.strip())
        return tuple(found)
    unknown = [name.strip() for name, equals, _ in named if equals and name.strip() not in names]
    if unknown:
        raise UsageError(
            f"--safe-action {shown(text)}: {unknown_name('action', unknown[0], names)}"
        )
    if len(words) != len(actions):
        listed = ", ".join(names)
        raise UsageError(
            f"--safe-action {shown(text)}: give a value for each of {listed}, such as "
            f"{','.join(f'{usual_safe_value(action):g}' for action in actions)}, or NAME=VALUE"
        )
    return tuple(safe_value(action, word) for action, word in zip(actions, words, strict=True))


@dataclass(frozen=True)
class Contract:
    observations: tuple[Channel, ...]
    actions: tuple[Channel, ...]
    step_interval_us: int
    safe_action: SafeAction = field(default=(), compare=False)  # empty where nobody states any
    assumed: int = field(default=0, compare=False)  # of ASSUMPTIONS

    @property
    def checksum(self) -> int:
        """Return contract_crc32() of policy/format.h, which is a board's fingerprint."""
        records = b"".join(map(channel_record, (*self.observations, *self.actions)))
        choices = b"".join(CHOICE.pack(name.encode()) for name in choices_of(self.actions))
        return zlib.crc32(records + choices + self.step_interval_us.to_bytes(4, "little"))

    def added_inputs(self) -> tuple[AddedInput, ...]:
        """Return what the last observations ask the executor for. At least the first observation is
        measured."""
        found: list[AddedInput] = []
        for index in range(len(self.observations) - 1, 0, -1):
            channel = self.observations[index]
            asked = past_action(channel, self.actions) or self._sum(channel, index)
            if asked is None:
                break
            found.insert(0, asked)
        return tuple(found)

    def _sum(self, channel: Channel, index: int) -> ObservationSum | None:
        """Return the sum that a channel named `<observation>_sum` asks for (docs/policy_image.md),
        or None."""
        for position, observation in enumerate(self.observations[:index]):
            texts = (f"{observation.name}_sum", f"{observation.unit} s")
            if (channel.name, channel.unit) == texts and channel.minimum <= 0 <= channel.maximum:
                limits = (channel.minimum, channel.maximum)
                return ObservationSum(position, *limits, self.step_interval_us)
        return None

    def without_added_inputs(self) -> Contract:
        """Return the contract of a board or environment where such a policy acts, without the added
        inputs."""
        count = len(self.observations) - len(self.added_inputs())
        return Contract(self.observations[:count], self.actions, self.step_interval_us)

    def with_safe_action(self, stated: SafeAction) -> Contract:
        """Return the contract with this safe action, marked as assumed unless it states a value for
        each action."""
        assumed = self.assumed & ~SAFE_ACTION_ASSUMED
        assumed |= SAFE_ACTION_ASSUMED if not stated or None in stated else 0
        return replace(self, safe_action=stated, assumed=assumed)

    def difference(self, other: Contract) -> str:
        """Return the first difference from another contract as "X there, Y here", or an empty
        text."""
        for kind, theirs, ours in (
            ("observation", other.observations, self.observations),
            ("action", other.actions, self.actions),
        ):
            for index, (their, our) in enumerate(zip(theirs, ours, strict=False)):
                if their != our:
                    return f"{kind} {index} is {their} there, {our} here"
            if len(theirs) != len(ours):
                return f"{len(theirs)} {kind}s there, {len(ours)} here"
        if other.step_interval_us != self.step_interval_us:
            return f"a step is {other.step_interval_us:,} us there, {self.step_interval_us:,} here"
        return ""


def contract_of(task: Task) -> Contract:
    """Return the contract of a task's policies, with flags for what nobody states of it."""
    assumed = 0 if task.states_interval else STEP_INTERVAL_ASSUMED
    contract = Contract(task.observations, task.actions, task.step_interval_us, assumed=assumed)
    return contract.with_safe_action(task.safe_action)


@dataclass(frozen=True)
class Statements:
    """Statements on a policy's contract. safe_action: as its run states it; assumed: flags of
    ASSUMPTIONS."""

    safe_action: SafeAction = ()
    assumed: int = 0
    interval_from: IntervalSource = ""


NOTHING_STATED = Statements()


def statements_of(run: Run, actions: Sequence[Channel], assumed: int, origin: str) -> Statements:
    """Return what a run states of its policy's contract.

    actions, assumed: of the image, whose origin errors name. Runs of earlier tools state nothing.
    """
    task = run.gymnasium
    source: IntervalSource = ""
    safe_action = tuple(run.safe_action)
    if task is not None:
        safe_action, source = task.safe_action, task.step_interval_from
        assumed |= 0 if task.states_interval else STEP_INTERVAL_ASSUMED
    values = zip(actions, safe_action, strict=False)
    if len(safe_action) not in (0, len(actions)) or any(
        value is not None and unsafe(channel, value) for channel, value in values
    ):
        raise DamagedFileError(
            f"{origin}: the safe_action in its run.json is none of its actions: restore that file"
        )
    return Statements(safe_action, assumed, source)


def parse_contract(content: bytes, origin: str) -> Contract:
    """Parse a board's /contract.bin (docs/protocol.md, "Policies")."""
    if len(content) >= TAIL.size:
        step_interval_us, observation_dim, action_dim = TAIL.unpack(content[-TAIL.size :])
        records_bytes = (observation_dim + action_dim) * CHANNEL.size
        records, names = content[:records_bytes], content[records_bytes : -TAIL.size]
        is_whole = len(content) >= records_bytes + TAIL.size
        if is_whole and len(names) % CHOICE.size == 0:
            channels = [
                Channel(_text(name), _text(unit), minimum, maximum)
                for name, unit, minimum, maximum in CHANNEL.iter_unpack(records)
            ]
            actions = with_choices(channels[observation_dim:], names)
            if len(choices_of(actions)) * CHOICE.size == len(names):
                channels[observation_dim:] = actions
                require_texts(f"the contract of {origin}", channels)
                return Contract(tuple(channels[:observation_dim]), actions, step_interval_us)
    raise DamagedFileError(f"the contract of {origin} contradicts itself: flash it again")


def with_choices(actions: Sequence[Channel], names: bytes) -> tuple[Channel, ...]:
    """Return the actions, in which each discrete one takes as many of the names as its range has
    numbers."""
    left = [_text(name) for (name,) in CHOICE.iter_unpack(names)]
    found = []
    for action in actions:
        if left and action.unit == CHOICE_UNIT and 1 <= action.maximum < MAX_CHOICES:
            count = int(action.maximum) + 1
            action, left = replace(action, unit="|".join(left[:count])), left[count:]
        found.append(action)
    return tuple(found)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


HAS_NORMALIZER, HAS_CHOICES, HAS_ENTRY = 1, 2, 4
RESET_AT_ACTIVATION, RESET_AT_FAULT, RESET_AT_STALE_INPUT, RESET_AT_PAUSE = 1, 2, 4, 8
RESET_AT_ALL = 15
DENSE, GRU, LSTM = 0, 1, 2  # PolicyLayerKind
GATES = {GRU: 3, LSTM: 4}  # of a layer
STATES = {DENSE: 0, GRU: 1, LSTM: 2}  # numbers that each of its units remembers
WORD = struct.Struct("<I")
ENTRY = struct.Struct("<5fI")  # an EntryEnvelope, and a reserved word


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
        """Return how many numbers the layer remembers. An LSTM's cells lie behind its outputs."""
        return STATES[self.kind] * self.width

    @property
    def tensors(self) -> tuple[Float32Array, ...]:
        """Return the tensors in the order in which they lie in an image."""
        return (self.weights, self.bias, *(self.hidden or ()))


@dataclass(frozen=True)
class Recurrence:
    """The step with which a policy's hidden state moves on, and when it is zero."""

    trained_interval_us: int
    max_pause_us: int
    state_dim: int
    reset_at: int = RESET_AT_ALL  # PolicyStateReset of policy/format.h


@dataclass(frozen=True)
class EntryEnvelope:
    """The states from which a quadrotor's policy recovers: any within all of these bounds.

    A flight controller hands over no other one (policy/entry_envelope.h).
    """

    speed_m_s: Bound  # largest, against the target's
    offset_m: Bound  # largest distance from the target
    tilt_rad: Bound  # largest, from level
    rate_rad_s: Bound  # largest turn rate, about any axis
    height_m: Bound  # least, above ground, at these bounds

    def __str__(self) -> str:
        return (
            f"up to {self.speed_m_s:.3g} m/s, {self.offset_m:.3g} m from the target, "
            f"{math.degrees(self.tilt_rad):.0f} deg of tilt, {self.rate_rad_s:.3g} rad/s, from "
            f"{self.height_m:.2g} m above ground"
        )

    @property
    def record(self) -> bytes:
        return ENTRY.pack(*astuple(self), 0)


def entry_text(entry: EntryEnvelope) -> str:
    """Return the bounds in words, or that there are none where all are 0."""
    return str(entry) if entry.speed_m_s > 0 else "none: it recovers from no entry that was tried"


QUADROTOR = 0x61C8D10A  # the checksum of policy/contracts/quadrotor.h
# kEntryAtRest: of an image that states none.
ENTRY_AT_REST = EntryEnvelope(0.5, 0.3, 0.35, 1.0, 0.5)


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
