"""Studies, experiments/studies/<name>.json: an experiment with variants of its settings; and the
plan of a tuning, new or resumed, checked before anything is trained."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs

from rltools_host.documents import FromOne, Line, Title, Unfit, Value, typed
from rltools_host.environments.imports import whole_source
from rltools_host.environments.task import TaskRequest
from rltools_host.errors import DamagedFileError, UsageError, unknown_name
from rltools_host.files import load_json
from rltools_host.runs.contents import Tune, Variant
from rltools_host.runs.group import TUNE, GroupFolder
from rltools_host.training.group_plan import (
    GroupRequest,
    create,
    parse_seeds,
    plan_new,
    plan_runs,
    require_same_defaults,
    shared_request,
)
from rltools_host.training.hyperparameters import given_values, of_experiment, resized, sizes_in
from rltools_host.training.plan import Plan, TrainingRequest
from rltools_host.training.trials import Dimension, Trials, space_of, without_password
from rltools_host.tree import PROJECT, TREE, command_line, near_path

OF_ALL = ("seed", "steps")  # what a variant may not set
Settings = dict[Line, Value]  # by hyperparameter


class StoredVariant(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,59}\Z")]  # of its folder
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
                raise Unfit(f"settings.{name} is a field of the study")
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
    """A study with its name and path."""

    name: str
    path: Path

    @property
    def experiments(self) -> list[str]:
        """Return the experiments of the variants, each once; the first is the group's."""
        each = [variant.experiment or self.experiment or "" for variant in self.variants]
        return list(dict.fromkeys(each))

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return parse_seeds(self.seeds)

    @property
    def shared_settings(self) -> tuple[str, ...]:
        return texts_of(self.settings)

    @property
    def trained_variants(self) -> tuple[Variant, ...]:
        has_one = len(self.experiments) == 1
        return tuple(
            Variant(
                variant.name,
                variant.label,
                texts_of(variant.settings),
                None if has_one else variant.experiment or self.experiment,
            )
            for variant in self.variants
        )


def texts_of(settings: Mapping[str, int | float]) -> tuple[str, ...]:
    """Return the settings as `--set` takes them: name=value."""
    return tuple(f"{key}={value}" for key, value in settings.items())


def study_files() -> dict[str, Path]:
    """Return the files by name: the project's, then the installed ones."""
    files = PROJECT.files("experiments/studies", "*.json", TREE.experiments / "studies")
    return {path.stem.replace("_", "-"): path for path in files}


def study_names() -> list[str]:
    return list(study_files())


def load_study(name: str) -> Study:
    """Load a study; DamagedFileError names the field that is wrong."""
    files = study_files()
    if name not in files:
        raise unknown_name("study", name, list(files))
    path = files[name]
    try:
        stored: StoredStudy = typed(load_json(path), StoredStudy)
        parse_seeds(stored.seeds)
        return Study(name=name, path=path, **structs.asdict(stored))
    except (OSError, ValueError, UsageError) as error:
        raise DamagedFileError(f"{path} is not a study: {error}") from None


DEFAULT_TRIALS = 20


@dataclass(frozen=True)
class TuneRequest:
    """The request of a tuning. None leaves a choice to the default, or to the resumed tuning."""

    training: TrainingRequest  # what all trials share; `resume` is a tuning
    search: tuple[str, ...] = ()  # of --search, as typed
    trials: int | None = None  # in all
    timeout_s: float | None = None
    prunes: bool | None = None
    storage: str | None = None  # a URL


def plan_new_tuning(request: TuneRequest) -> tuple[GroupFolder, Plan, list[Dimension]]:
    """Check and build a new tuning; return its folder, its plan and what it searches."""
    training = replace(request.training, seeds=request.training.seeds or (0,))
    asked, plan = plan_new(GroupRequest(training))
    task = None if plan.server is None else plan.server.task
    settings = asked.training.settings
    space = space_of(plan.description, task, request.search, settings)
    mark = secrets.token_hex(8)
    study = request.training.out.name if request.training.out else f"{plan.description.name}-{mark}"
    prunes, storage = request.prunes is not False, request.storage
    if storage is not None:  # before anything is trained
        Trials(storage, study, mark, space, prunes)
    asked = replace(
        asked,
        variants=(),
        kind=TUNE,
        title=f"tuning of {plan.description.name} on {plan.board.name}",
        tune=Tune(
            mark,
            study,
            [each.text() for each in space],
            request.trials or DEFAULT_TRIALS,
            prunes,
            None if storage is None else without_password(storage),
        ),
    )
    return create(asked, plan), plan, space


def resume_tuning(request: TuneRequest) -> tuple[GroupFolder, Plan, list[Dimension]]:
    """Open and plan a tuning that was begun before, with what it was asked for then."""
    group = GroupFolder.open(str(request.training.resume))
    content = group.content
    if content.tune is None:
        command = command_line("train", "--resume", near_path(group.path))
        raise UsageError(f"{near_path(group.path)} is not a tuning: continue it with `{command}`")
    require_same(group, request)
    group.lock()
    try:
        tuned: Tune = content.tune
        if (tuned.storage is None) != (request.storage is None):
            given = "lie in its folder" if tuned.storage is None else f"are in {tuned.storage}"
            remedy = "leave --storage out" if tuned.storage is None else "give it with --storage"
            raise UsageError(f"the trials of {near_path(group.path)} {given}: {remedy}")
        jobs = content.jobs if request.training.jobs is None else request.training.jobs
        plan = plan_runs(replace(shared_request(content), jobs=jobs), [Variant()])
        require_same_values(group, request, plan)
        trials = request.trials or tuned.trials
        require_same_defaults(group, plan, more=trials > len(content.variants))
        space = space_of(plan.description, content.gymnasium, tuned.search, content.settings)
        tuned = structs.replace(tuned, trials=trials)
        group.content = structs.replace(content, jobs=jobs, tune=tuned)  # written when it trains
        return group, plan, space
    except BaseException:
        group.close()
        raise


def require_same(group: GroupFolder, request: TuneRequest) -> None:
    """Raise UsageError if the request differs from what the tuning began with."""
    content, training = group.content, request.training
    assert content.tune is not None
    task = content.gymnasium
    source = None if training.task is None else whole_source(training.task.source)
    algorithm = training.task.algorithm if isinstance(training.task, TaskRequest) else None
    sized = None if task is None else resized(task, training.settings)[0]
    experiment = training.experiment
    if experiment is not None:
        experiment, _ = of_experiment(experiment, training.settings)
    given: dict[str, tuple[object, object]] = {
        "the experiment": (experiment, content.experiment),
        "the task": (source, None if task is None else task.source),
        "--board": (training.board, content.board),
        "--steps": (training.steps, content.steps),
        "--threads": (training.threads, content.threads),
        "--seeds": (training.seeds or None, tuple(content.seeds)),
        "--prune": (request.prunes, content.tune.prunes),
        "the task's sizes": (sized, task),
        "--algorithm": (algorithm, None if task is None else task.algorithm),
    }
    for option, (asked, had) in given.items():
        if asked is not None and asked != had:
            raise differs(group, option)


def require_same_values(group: GroupFolder, request: TuneRequest, plan: Plan) -> None:
    """Raise UsageError if what is set or searched has other values than the tuning began with,
    however they are written."""
    content, description = group.content, plan.description
    assert content.tune is not None
    *_, settings = sizes_in(request.training.settings)
    given = given_values(description, None, None, settings)
    if settings and given != given_values(description, None, None, content.settings):
        raise differs(group, "--set")
    if request.search:
        space = space_of(description, content.gymnasium, request.search, content.settings)
        if sorted(each.text() for each in space) != sorted(content.tune.search):
            raise differs(group, "--search")


def differs(group: GroupFolder, option: str) -> UsageError:
    return UsageError(
        f"{near_path(group.path)} resumes as it began, and {option} differs there: "
        "leave it out, or give another --name"
    )


def named(name: str) -> Path:
    """Return the folder of a tuning with this name."""
    if not name or name != Path(name).name or name.startswith("."):
        raise UsageError(f'--name "{name}": give a name for a folder in {near_path(PROJECT.runs)}')
    return PROJECT.runs / name
