"""Values of hyperparameters: defaults, --seed, --steps and --set, checked against the table."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence

from rltools_host.build.experiments import ExperimentDescription, Hyperparameter
from rltools_host.errors import UsageError

Values = dict[str, float | int]


def default_values(description: ExperimentDescription) -> Values:
    return {
        entry.name: int(entry.default) if is_integer(entry) else shortest(entry.default)
        for entry in description.hyperparameters
    }


def given_values(
    description: ExperimentDescription, seed: int | None, steps: int | None, settings: Sequence[str]
) -> Values:
    """The values of --seed, --steps and --set; each name once."""
    texts: dict[str, str] = {}
    if seed is not None:
        texts["seed"] = str(seed)
    if steps is not None:
        texts["steps"] = str(steps)
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals:
            raise UsageError(f'--set "{setting}" has no value: write --set name=value')
        if name in texts:
            raise UsageError(f"{name} is given twice: give it once")
        texts[name] = text.strip()
    return {
        name: parse_value(description.hyperparameter(name), text) for name, text in texts.items()
    }


def parse_value(entry: Hyperparameter, text: str) -> float | int:
    """A value within the bounds, as the board will hold it."""
    bounds = f"{plain_number(entry.minimum)} to {plain_number(entry.maximum)}"
    kind = "whole number" if is_integer(entry) else "number"
    unit = f" {entry.unit}" if entry.unit else ""
    refusal = UsageError(
        f"{entry.name}={text} is out of bounds: choose a {kind} from {bounds}{unit} "
        f"({entry.description.rstrip('.')})"
    )
    try:
        value = float(text)
        if is_integer(entry):
            value = int(text) if text.lstrip("+-").replace("_", "").isdigit() else value
            if value != int(value):
                raise refusal
            value = int(value)
        else:
            value = as_float32(value)
    except (ValueError, OverflowError):
        raise refusal from None
    if not entry.minimum <= value <= entry.maximum:
        raise refusal
    return value if is_integer(entry) else shortest(value)


def is_integer(entry: Hyperparameter) -> bool:
    return entry.type.upper() == "U32"


def as_float32(value: float) -> float:
    """The nearest float of 32 bits; OverflowError where there is none."""
    result: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return result


def shortest(value: float) -> float:
    """The number with the fewest digits that is the same float of 32 bits, such as 0.001."""
    for digits in range(1, 9):
        candidate = float(f"{value:.{digits}g}")
        with contextlib.suppress(OverflowError):  # rounded up beyond the largest float
            if as_float32(candidate) == as_float32(value):
                return candidate
    return value


def plain_number(value: float) -> str:
    return f"{int(value)}" if value == int(value) else f"{value:g}"
