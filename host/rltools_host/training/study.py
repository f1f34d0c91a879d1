"""Studies as data: experiments/studies/<name>.json, an experiment with variants of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs

from rltools_host.documents import FromOne, Line, Title, Unfit, Value, typed
from rltools_host.errors import DamagedFileError, UsageError, unknown_name
from rltools_host.files import parse_json
from rltools_host.project import PROJECT
from rltools_host.training.group_plan import Variant, parse_seeds
from rltools_host.tree import TREE

OF_ALL = ("seed", "steps")  # what a variant may not set
Settings = dict[Line, Value]  # by hyperparameter


class StoredVariant(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[  # of its folder
        str,
        Meta(
            pattern=r"^[a-z0-9][a-z0-9-]{0,59}\Z",
            description="a name of small letters, digits and hyphens",
        ),
    ]
    label: Title
    settings: Settings
    experiment: Title | None = None  # its own, as of another algorithm


class StoredStudy(Struct, frozen=True, forbid_unknown_fields=True):
    """A study's file."""

    title: Title
    seeds: Title  # as `--seeds` takes them
    variants: Annotated[list[StoredVariant], Meta(min_length=1)]
    experiment: Title | None = None  # of the variants that have none of their own
    about: Line = ""  # a sentence
    board: Line | None = None
    x_axis: Line = "environment steps"
    y_axis: Line = "return"
    steps: FromOne | None = None
    threads: FromOne | None = None
    settings: Settings = {}  # of all variants

    def __post_init__(self) -> None:
        for name in OF_ALL:
            if name in self.settings:
                raise Unfit(f"settings.{name} has a place of its own in the study")
        for index, variant in enumerate(self.variants):
            if self.experiment is None and variant.experiment is None:
                raise Unfit(f"variants[{index}] has no experiment, and neither has the study")
            for name in (*OF_ALL, *self.settings):
                if name in variant.settings:
                    raise Unfit(f"variants[{index}].settings.{name} is for the whole study")
        for key in ("name", "label"):
            given = [getattr(variant, key) for variant in self.variants]
            twice = [index for index, value in enumerate(given) if value in given[:index]]
            if twice:
                raise Unfit(f'variants[{twice[0]}].{key} is "{given[twice[0]]}" once more')


class Study(StoredStudy, frozen=True, kw_only=True):
    """What a study's file says, by its name."""

    name: str
    path: Path

    @property
    def experiments(self) -> list[str]:
        """Of the variants, each once; the first is the group's."""
        each = [variant.experiment or self.experiment or "" for variant in self.variants]
        return list(dict.fromkeys(each))

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return parse_seeds(self.seeds)

    @property
    def has_one(self) -> bool:
        return len(self.experiments) == 1

    @property
    def shared_settings(self) -> tuple[str, ...]:
        return texts_of(self.settings)

    @property
    def trained_variants(self) -> tuple[Variant, ...]:
        return tuple(
            Variant(
                variant.name,
                variant.label,
                texts_of(variant.settings),
                f"{self.path}, variants[{index}] ({variant.name})",
                None if self.has_one else variant.experiment or self.experiment,
            )
            for index, variant in enumerate(self.variants)
        )


def texts_of(settings: Mapping[str, int | float]) -> tuple[str, ...]:
    """As `--set` takes them: name=value."""
    return tuple(f"{key}={value}" for key, value in settings.items())


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
        stored: StoredStudy = typed(parse_json(path.read_bytes()), StoredStudy)
        parse_seeds(stored.seeds)
        return Study(name=name, path=path, **structs.asdict(stored))
    except (ValueError, UsageError) as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    raise DamagedFileError(f"{path} is not a study: {reason}")
