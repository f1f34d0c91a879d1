"""Types of what compiled code states about itself (host/native/describe.h)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rltools_host.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


LARGEST_FLOAT32 = 3.4028234663852886e38


@dataclass(frozen=True)
class Channel:
    """One element of an observation or an action vector, in the order of the list.

    The unit of a discrete action has the names of its choices with a bar between them; its value is
    the number of a choice, from 0.
    """

    name: str
    unit: str
    minimum: float
    maximum: float

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the names of a discrete action's choices; empty for another channel."""
        return tuple(self.unit.split("|")) if "|" in self.unit else ()

    def __str__(self) -> str:
        if self.choices:
            return f'"{self.name}", a choice of {", ".join(self.choices)}'
        return f'"{self.name}" in {self.unit} from {self.minimum:.9g} to {self.maximum:.9g}'


def usual_safe_value(channel: Channel) -> float:
    """Return the safe value of a channel that states none (safe_action() in policy/contract.h)."""
    return 0.0 if channel.choices else 0.5 * (channel.maximum + channel.minimum)


def unsafe(channel: Channel, value: float) -> str:
    """Return a clause on why a value cannot be the safe action; empty where it can."""
    low, high, nearest = struct.unpack(
        "<3f", struct.pack("<3f", channel.minimum, channel.maximum, value)
    )
    if not low <= nearest <= high:
        return f"{value:g} lies outside of its range, {channel.minimum:g} to {channel.maximum:g}"
    if channel.choices and value != round(value):
        return f"{value:g} is not the number of a choice, 0 to {channel.maximum:g}"
    return ""


def safe_value(channel: Channel, given: Any) -> float:
    """Return a user's safe action of a channel: a number, or a choice by its name.

    Raise UsageError where the channel cannot take it.
    """
    names = channel.choices
    try:
        value = names.index(str(given)) if str(given) in names else float(given)
        wrong = unsafe(channel, value) if abs(value) < LARGEST_FLOAT32 else "it is not finite"
    except (TypeError, ValueError):
        what = f"none of {', '.join(names)}" if names else "not a number"
        wrong = f"{str(given)[:40]} is {what}"
    if isinstance(given, bool):
        wrong = f"{given} is not a number"
    if wrong:
        raise UsageError(f"the safe action of {channel.name}: {wrong}")
    return float(value)


def ranges_of(
    channels: Sequence[Channel], dtype: DTypeLike = "float32"
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the minima and the maxima, each of shape (channels,)."""
    import numpy as np  # imported late: training does not load it

    low = np.array([channel.minimum for channel in channels], dtype)
    return low, np.array([channel.maximum for channel in channels], dtype)


@dataclass(frozen=True)
class Shape:
    """A part of an environment's picture (build/picture.py); numbers are expressions."""

    kind: str
    look: str
    numbers: str


@dataclass(frozen=True)
class Parameter:
    """A hyperparameter or an environment's setting, set at run time; its type is "F32" or "U32"."""

    name: str
    type: str
    default: float
    minimum: float
    maximum: float
    unit: str
    description: str

    @property
    def is_whole(self) -> bool:
        return self.type.upper() == "U32"


@dataclass(frozen=True)
class StateTensor:
    """An array of the training state; dtype as in safetensors, offset in the payload."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Metric:
    """A metric of learning that the algorithm reports in progress messages."""

    name: str
    description: str


@dataclass(frozen=True)
class ExperimentDescription:
    """The output of describe-<experiment>; `document` is all of it, also networks and sizes.

    `bytes_of` has "state" (the checkpoint's payload), "learner", "replay" and "scratch".
    """

    name: str
    algorithm: str
    fingerprint: int
    environment: Mapping[str, Any]
    hyperparameters: tuple[Parameter, ...]
    tensors: tuple[StateTensor, ...]
    metrics: tuple[Metric, ...]
    environments: int  # that are stepped at once
    bytes_of: Mapping[str, int]
    document: Mapping[str, Any]

    @property
    def learning(self) -> Mapping[str, Any]:
        """Return the entries from which the fingerprint is computed."""
        learning = self.document.get("learning")
        return learning if isinstance(learning, Mapping) else {}

    @property
    def contract(self) -> str | None:
        """Return the contract of the boards on which the policies act; None for own channels."""
        name = self.environment.get("contract")
        return None if name is None else str(name)

    def hyperparameter(self, name: str) -> Parameter:
        for hyperparameter in self.hyperparameters:
            if hyperparameter.name == name:
                return hyperparameter
        names = [hyperparameter.name for hyperparameter in self.hyperparameters]
        raise unknown_name("hyperparameter", name, names)


def channels(entries: Sequence[Mapping[str, Any]]) -> tuple[Channel, ...]:
    """Return the channels of a description; their ranges are floats of 32 bits."""
    return tuple(
        Channel(
            entry["name"],
            entry["unit"],
            *struct.unpack("<2f", struct.pack("<2f", entry["minimum"], entry["maximum"])),
        )
        for entry in entries
    )


def shapes(entries: Sequence[Mapping[str, Any]]) -> tuple[Shape, ...]:
    return tuple(Shape(entry["kind"], entry["look"], entry["numbers"]) for entry in entries)


def parameters(entries: Sequence[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(Parameter(**entry) for entry in entries)


def experiment(document: Mapping[str, Any]) -> ExperimentDescription:
    return ExperimentDescription(
        name=document["name"],
        algorithm=document["algorithm"],
        fingerprint=int(document["fingerprint"]),
        environment=document["environment"],
        hyperparameters=parameters(document["hyperparameters"]),
        tensors=tuple(
            StateTensor(entry["name"], entry["dtype"], tuple(entry["shape"]), int(entry["offset"]))
            for entry in document["state"]
        ),
        metrics=tuple(Metric(**entry) for entry in document["metrics"]),
        environments=int(document["environments"]),
        bytes_of=document["bytes"],
        document=document,
    )


# -- texts -----------------------------------------------------------------------------------------
# What the name of a channel, an environment, an experiment or a contract, and a unit, may be,
# wherever it is read, and how C++ has it. They go into headers, pages, CSV files and terminals.

# Bytes of UTF-8 in an image's and a message's field, less its end.
LONGEST_NAME, LONGEST_CHANNEL_NAME, LONGEST_UNIT = 31, 23, 15
MAX_CHOICES = 256  # of one action
MAX_STEP_INTERVAL_US = 600_000_000  # kMaxStepInterval_us of policy/contract.h
SUBJECT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
UNQUOTABLE = re.compile(r'["\\?]')  # characters that C++ reads otherwise in quotes


def is_policy_text(value: object, longest: int) -> bool:
    """Return whether a value is printable text in one line, up to `longest` bytes, unquoted."""
    if not isinstance(value, str) or not value.isprintable() or UNQUOTABLE.search(value):
        return False
    return 1 <= len(value.encode()) <= longest


def is_subject_name(value: object) -> bool:
    """Return whether an experiment or a contract can have this name."""
    return is_policy_text(value, LONGEST_NAME) and bool(SUBJECT_NAME.fullmatch(str(value)))


def described(longest: int) -> str:
    """Return a description of the expected text, for a sentence."""
    return f'plain text of 1 to {longest} bytes, without ", \\ and ?'


def string_literal(text: str) -> str:
    """Return a C string literal; all but plain ASCII is escaped."""
    plain = {byte: chr(byte) for byte in range(0x20, 0x7F) if chr(byte) not in '"\\?'}
    return '"' + "".join(plain.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def comment_text(text: str) -> str:
    """Return text that can neither end a comment's line nor continue it, as `??/` does in C99."""
    return "".join(c if c.isprintable() and c not in "\\?" else "_" for c in text)
