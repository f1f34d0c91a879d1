"""Studies as data: experiments/studies/<name>.json, an experiment with variants of its settings.

A file has `title`, `experiment`, `seeds` (as `--seeds` takes them) and `variants`, each with `name`
(its folder), `label` and `settings` by hyperparameter; and may have `board`, `steps`, `threads`,
`settings` of all variants, `x_axis`, `y_axis` and `about`, a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rltools_host.errors import DamagedFileError, UsageError, unknown_name
from rltools_host.files import parse_json
from rltools_host.project import PROJECT
from rltools_host.runs import schema
from rltools_host.runs.schema import Unfit
from rltools_host.training.group_plan import Variant
from rltools_host.training.seeds import parse_seeds
from rltools_host.tree import TREE

NAME = schema.text(r"[a-z0-9][a-z0-9-]{0,59}", "a name of small letters, digits and hyphens")
VARIANT: schema.Keys = {
    "name": NAME,
    "label": schema.text(r".+", "a text in one line"),
    "settings": schema.values_of(schema.number()),
}
REQUIRED: schema.Keys = {
    **dict.fromkeys(("title", "experiment", "seeds"), schema.text(r".+", "a text in one line")),
    "variants": schema.list_of(schema.record(VARIANT, required=True)),
}
OPTIONAL: schema.Keys = {
    **dict.fromkeys(("about", "board", "x_axis", "y_axis"), schema.text()),
    **dict.fromkeys(("steps", "threads"), schema.whole(1)),
    "settings": schema.values_of(schema.number()),
}
OF_ALL = ("seed", "steps")  # what a variant may not set


@dataclass(frozen=True)
class Study:
    """What a study's file says."""

    name: str
    title: str
    about: str
    experiment: str
    board: str | None
    seeds: tuple[int, ...]
    steps: int | None
    threads: int | None
    settings: tuple[str, ...]  # of all variants: name=value
    variants: tuple[Variant, ...]
    x_axis: str
    y_axis: str


def study_files() -> dict[str, Path]:
    """By their names: the project's, then those that are installed."""
    files = PROJECT.files("experiments/studies", "*.json", TREE.experiments / "studies")
    return {path.stem.replace("_", "-"): path for path in files}


def study_names() -> list[str]:
    return list(study_files())


def load_study(name: str) -> Study:
    """The study of a name; one sentence names the place where its file is wrong."""
    files = study_files()
    if name not in files:
        raise unknown_name("study", name, list(files))
    path = files[name]
    try:
        document = parse_json(path.read_bytes())
        check(document)
        return parse_study(name, document, path)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, UsageError) as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    raise DamagedFileError(f"{path} is no study: {reason}")


def check(document: Any) -> None:
    """Unfit, with the place, unless this is what a study's file has, and nothing else."""
    if not isinstance(document, dict):
        raise Unfit("it is not one object")
    schema.known_keys(document, {**REQUIRED, **OPTIONAL}, "")
    schema.record(REQUIRED, required=True)("", document)
    schema.record(OPTIONAL)("", document)
    variants = document["variants"]
    if not variants:
        raise Unfit("variants is empty")
    shared = document.get("settings", {})
    for name in OF_ALL:
        if name in shared:
            raise Unfit(f"settings.{name} has a place of its own in the study")
    for index, variant in enumerate(variants):
        schema.known_keys(variant, VARIANT, f"variants[{index}].")
        for name in (*OF_ALL, *shared):
            if name in variant["settings"]:
                raise Unfit(f"variants[{index}].settings.{name} is for the whole study")
    for key in ("name", "label"):
        given = [variant[key] for variant in variants]
        twice = [index for index, value in enumerate(given) if value in given[:index]]
        if twice:
            raise Unfit(f'variants[{twice[0]}].{key} is "{given[twice[0]]}" once more')


def settings_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in document.get("settings", {}).items())


def parse_study(name: str, document: Mapping[str, Any], path: Path) -> Study:
    variants = tuple(
        Variant(
            variant["name"],
            variant["label"],
            settings_of(variant),
            f"{path}, variants[{index}] ({variant['name']})",
        )
        for index, variant in enumerate(document["variants"])
    )
    return Study(
        name,
        document["title"],
        document.get("about", ""),
        document["experiment"],
        document.get("board"),
        parse_seeds(document["seeds"]),
        document.get("steps"),
        document.get("threads"),
        settings_of(document),
        variants,
        document.get("x_axis", "environment steps"),
        document.get("y_axis", "return"),
    )
