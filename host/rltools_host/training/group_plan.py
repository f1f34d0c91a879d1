"""What a group of runs is to train: a plan, one program, a folder, for a new group or for one that
goes on. All is checked before anything is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rltools_host.clock import folder_date, timestamp
from rltools_host.errors import RltError, UsageError
from rltools_host.gymnasium_tasks.imports import playable
from rltools_host.runs.group import SEEDS, GroupFolder
from rltools_host.runs.names import new_run_path, require_empty
from rltools_host.runs.task import Task
from rltools_host.training.board import build_program
from rltools_host.training.hyperparameters import OPTION
from rltools_host.training.plan import Built, Plan, TrainingRequest, make_plan
from rltools_host.training.playing import named_in, playing
from rltools_host.training.seeds import jobs_on


@dataclass(frozen=True)
class Variant:
    """Settings with which each seed is trained; without a name where there is but one."""

    name: str = ""
    label: str = ""
    settings: tuple[str, ...] = ()  # name=value, as of --set
    place: str = ""  # where it is written, for what is wrong with it


@dataclass(frozen=True)
class GroupRequest:
    """What a user asks for; `training` has what all runs share, and no seed."""

    training: TrainingRequest
    seeds: tuple[int, ...] = ()
    variants: tuple[Variant, ...] = (Variant(),)
    jobs: int | None = None
    tensorboard: bool | None = None  # yes, or as a resumed group began
    # What group.json says besides: kind, title, study, axes.
    about: Mapping[str, Any] = field(default_factory=dict)


def planned(request: GroupRequest) -> tuple[GroupRequest, Plan]:
    """A new group's plan, after all has been checked and built, and its request as it holds."""
    if request.training.out is not None:
        require_empty(request.training.out)
    plan: Plan | None = None
    with playing(request.training) as training:
        for variant in request.variants:
            plan = checked(training, request.seeds[0], variant)
            built = Built(plan.description, None)
            training = replace(training, experiment=plan.description.name, built=built)
    assert plan is not None
    training = with_steps_apart(without_file(training), plan)
    if plan.server is not None:
        training = replace(training, task=plan.server.task, server=None)
        plan.server = None  # each run has its own
    jobs_on(plan.board, training.port, training.threads, request.jobs)
    build_program(plan)
    return replace(request, training=training), plan


def create(request: GroupRequest, plan: Plan) -> GroupFolder:
    """A new group's folder."""
    training = request.training
    name = request.about.get("study")
    stem = f"study-{name}" if name else f"{plan.description.name}-{plan.board.name}-seeds"
    path = training.out or new_run_path(f"{folder_date()}-{stem}")
    metadata = {
        "kind": SEEDS,
        "title": f"{plan.description.name} on {plan.board.name}",
        "x_axis": "environment steps",
        "y_axis": "return",
        **request.about,
        "experiment": plan.description.name,
        "board": plan.board.name,
        "steps": training.steps,
        "threads": training.threads,
        "port": training.port,
        "jobs": request.jobs,
        "tensorboard": request.tensorboard is not False,
        "seeds": list(request.seeds),
        "settings": list(training.settings),
        "variants": [
            {
                "name": variant.name,
                "label": variant.label,
                "settings": list(variant.settings),
            }
            for variant in request.variants
        ],
        "started": timestamp(),
        **({"gymnasium": training.task.document()} if isinstance(training.task, Task) else {}),
        "state": "training",
    }
    group = GroupFolder.create(path, metadata)
    group.lock()
    return group


def without_file(training: TrainingRequest) -> TrainingRequest:
    """With a file's values among the settings, of which group.json has a copy."""
    if training.set_file is None:
        return training
    given = {setting.partition("=")[0].strip() for setting in training.settings} | {"seed"}
    if training.steps is not None:
        given.add("steps")
    texts = training.set_file.texts.items()
    settings = tuple(f"{name}={text}" for name, text in texts if name not in given)
    return replace(training, settings=(*training.settings, *settings), set_file=None)


def with_steps_apart(training: TrainingRequest, plan: Plan) -> TrainingRequest:
    """`--set steps=N` is `--steps N`: when the group is gone on with there may be another total."""
    others = tuple(s for s in training.settings if s.partition("=")[0].strip() != "steps")
    return (
        training
        if others == training.settings
        else replace(training, settings=others, steps=plan.steps)
    )


def checked(training: TrainingRequest, seed: int, variant: Variant) -> Plan:
    """The plan of a variant's run, which says what is wrong before anything is trained."""
    settings = (*training.settings, *variant.settings)
    try:
        return make_plan(replace(training, seed=seed, settings=settings))
    except RltError as error:
        raise (type(error)(f"{variant.place}: {error}") if variant.place else error) from None


def go_on(request: GroupRequest) -> tuple[GroupFolder, Plan]:
    """A group that was begun before: what it was asked for holds."""
    training = request.training
    assert training.resume is not None
    group = GroupFolder.open(training.resume)
    refused = {
        "--out": (training.out is not None, "stays in its folder"),
        "--set": (bool(training.settings), "keeps its settings"),
        OPTION: (training.set_file is not None, "keeps its settings"),
        "--seed": (training.seed is not None, "keeps its seeds"),
        "--seeds": (bool(request.seeds), "keeps its seeds"),
    }
    for option, (given, why) in refused.items():
        if given:
            raise UsageError(f"{option} does not go with --resume: a resumed group {why}")
    asked = group.content
    if training.experiment not in (None, asked.experiment):
        raise UsageError(f"{group.path} is of {asked.experiment}, not of {training.experiment}")
    task = asked.gymnasium
    if task is None and training.task is not None:
        raise UsageError(f"{group.path} was trained on no task of Gymnasium's")
    group.lock()
    try:
        resumed: dict[str, Any] = {
            name: getattr(asked, name) if given is None else given
            for name in ("board", "steps", "port", "threads")
            for given in (getattr(training, name),)
        }
        if training.board not in (None, asked.board):  # another one has its own
            resumed |= {"port": training.port, "threads": training.threads}
        first = group.variants[0]
        if task is not None:
            task = playable(task, named_in(training))
        first_run = TrainingRequest(
            asked.experiment,
            seed=asked.seeds[0],
            settings=(*asked.settings, *first.settings),
            task=task,
            **resumed,
        )
        with playing(first_run) as complete:
            plan = make_plan(complete)
        plan.server = None  # each run has its own
        jobs = asked.jobs if request.jobs is None else request.jobs
        jobs_on(plan.board, plan.port, plan.threads, jobs)
        build_program(plan)
        logs = asked.tensorboard if request.tensorboard is None else request.tensorboard
        # Written with the state of training, once that begins.
        group.change({**resumed, "jobs": jobs, "tensorboard": logs})
        if task is not None:
            group.change({"gymnasium": task.document()})
    except BaseException:
        group.close()
        raise
    return group, plan
