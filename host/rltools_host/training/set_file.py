"""A file of hyperparameters for `--set-file`: one JSON object, `{"name": value, ...}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.errors import DamagedFileError, UsageError
from rltools_host.files import parse_json
from rltools_host.runs import schema
from rltools_host.runs.schema import Unfit

OPTION = "--set-file"
LARGEST = 1_000_000  # bytes


@dataclass(frozen=True)
class SetFile:
    """Values by name, as text like those of --set."""

    path: Path
    texts: Mapping[str, str]


def load_set_file(path: Path) -> SetFile:
    """What a file says; one sentence names the file where that is not what it must be."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read {OPTION} {path}: {error.strerror or error}") from None
    try:
        if len(data) > LARGEST:
            raise Unfit(f"it has more than {LARGEST} bytes")
        document = parse_json(data)
        if not isinstance(document, dict):
            raise Unfit('it is not one object, such as {"learning_rate": 0.001}')
        json.loads(data, object_pairs_hook=each_once)
        schema.values_of(schema.number())("the file", document)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except ValueError as error:
        reason = str(error).replace("the file.", "")
    else:
        return SetFile(path, {name: str(value) for name, value in document.items()})
    raise DamagedFileError(f"{OPTION} {path} has no hyperparameters: {reason}")


def each_once(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if twice := [name for index, name in enumerate(names) if name in names[:index]]:
        raise Unfit(f"{schema.shown(twice[0])} is there twice")
