"""What a description of a policy states of the contract by which it acts: names, units, ranges,
rate; and what it lacks for one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rltools_host.build.description import Channel
from rltools_host.documents import shown
from rltools_host.foreign.pickles import Array, UnreadableError
from rltools_host.policies.contract import Contract
from rltools_host.runs.policy_file import (
    LONGEST_CHANNEL_NAME,
    LONGEST_UNIT,
    described,
    is_policy_text,
)

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
