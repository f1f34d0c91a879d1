"""Values of hyperparameters: defaults, --seed, --steps, --set and --set-file, checked."""

from __future__ import annotations

import contextlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.build.description import ExperimentDescription, Parameter
from rltools_host.documents import Line, Unfit, Value, shown, typed
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.files import parse_json
from rltools_host.training.words import own_names

OPTION, AIRFRAME = "--set-file", "--airframe"
WHAT = {OPTION: "hyperparameters", AIRFRAME: "airframe"}
LARGEST = 1_000_000  # bytes


@dataclass(frozen=True)
class SetFile:
    """Values by name, as text like those of --set."""

    path: Path
    texts: Mapping[str, str]


def load_set_file(path: Path, option: str = OPTION) -> SetFile:
    """What an option's file says; one sentence names it where that is not what it must be."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {option} {path}: {error.strerror or error}") from None
    try:
        if len(data) > LARGEST:
            raise Unfit(f"it has more than {LARGEST} bytes")
        document = parse_json(data)
        if not isinstance(document, dict):
            raise Unfit('it is not one object, such as {"learning_rate": 0.001}')
        json.loads(data, object_pairs_hook=each_once)
        settings: dict[str, int | float] = typed(document, dict[Line, Value])
    except ValueError as error:
        reason = str(error)
    else:
        return SetFile(path, {name: str(value) for name, value in settings.items()})
    raise DamagedFileError(f"{option} {path} has no {WHAT[option]}: {reason}")


def each_once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if twice := [name for index, name in enumerate(names) if name in names[:index]]:
        raise Unfit(f"{shown(twice[0])} is there twice")


SMALLEST_POSITIVE = 2.0**-149  # float of 32 bits

Values = dict[str, float | int]


def default_values(description: ExperimentDescription) -> Values:
    return {
        entry.name: int(entry.default) if entry.is_whole else shortest(entry.default)
        for entry in description.hyperparameters
    }


def given_values(
    description: ExperimentDescription,
    seed: int | None,
    steps: int | None,
    settings: Sequence[str],
    set_file: SetFile | None = None,
) -> Values:
    """The values of --seed, --steps and --set, each name once; they win over those of the file."""
    texts: dict[str, str] = {}
    if seed is not None:
        texts["seed"] = str(seed)
    if steps is not None:
        texts["steps"] = str(steps)
    texts = own_names(description, setting_texts(settings, texts))
    of_file = {} if set_file is None else file_values(description, set_file)
    return of_file | {
        name: parse_value(description.hyperparameter(name), text) for name, text in texts.items()
    }


def setting_texts(
    settings: Sequence[str], given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Of --set, as typed: name=value; each name once, also beside those that are given already."""
    texts = dict(given or {})
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise UsageError(f'--set "{setting}" has no value: write --set name=value')
        if name in texts:
            raise UsageError(f"{name} is given twice: give it once")
        texts[name] = text
    return texts


def given_numbers(texts: Sequence[str]) -> dict[str, float]:
    """Of --set, as typed; names and bounds are looked at where they are used."""
    found: dict[str, float] = {}
    for name, text in setting_texts(texts).items():
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = math.nan
        if not math.isfinite(found[name]):
            raise UsageError(f"--set {name}={text}: {text or 'nothing'} is not a number")
    return found


def file_values(description: ExperimentDescription, set_file: SetFile) -> Values:
    """All of a file's values, also those that something else wins over."""
    try:
        return {
            name: parse_value(description.hyperparameter(name), text)
            for name, text in own_names(description, set_file.texts).items()
        }
    except RltError as error:
        raise type(error)(f"{OPTION} {set_file.path}: {error}") from None


def parse_value(entry: Parameter, text: str) -> float | int:
    """A value within the bounds, as the board will hold it."""
    bounds = f"{plain_number(entry, entry.minimum)} to {plain_number(entry, entry.maximum)}"
    kind = "whole number" if entry.is_whole else "number"
    unit = f" {entry.unit}" if entry.unit else ""
    refusal = UsageError(
        f"{entry.name}={text} is out of bounds: choose a {kind} from {bounds}{unit} "
        f"({entry.description.rstrip('.')})"
    )
    try:
        given = float(text)
        if entry.is_whole:
            given = int(text) if text.lstrip("+-").replace("_", "").isdigit() else given
            if given != int(given):
                raise refusal
            value: float | int = int(given)
        else:
            value = as_float32(given)
    except (ValueError, OverflowError):
        raise refusal from None
    if value == 0 and given != 0:
        raise UsageError(
            f"{entry.name}={text} is 0 in a float of 32 bits: give 0, or at least "
            f"{shortest(SMALLEST_POSITIVE):g}"
        )
    if not entry.minimum <= value <= entry.maximum:
        raise refusal
    return value if entry.is_whole else shortest(value)


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


def plain_number(entry: Parameter, bound: float) -> str:
    """A bound as it can be typed: it is accepted, and nothing beyond it is."""
    if bound == int(bound):
        return f"{int(bound)}"
    text = repr(bound) if entry.is_whole else f"{shortest(bound):.9g}"
    return text if as_float32(float(text)) == as_float32(bound) else repr(bound)
