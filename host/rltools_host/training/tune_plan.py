"""What a tuning is to search: a plan, one program, a folder, for a new tuning or one that goes on.
All is checked before anything is trained.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rltools_host.errors import UsageError
from rltools_host.hints import command_line, near_path
from rltools_host.project import PROJECT
from rltools_host.runs.contents import Tune
from rltools_host.runs.group import TUNE, GroupFolder
from rltools_host.training.group_plan import (
    GroupRequest,
    Variant,
    create,
    plan_runs,
    planned,
    require_same_defaults,
    run_request,
)
from rltools_host.training.plan import Plan, TrainingRequest
from rltools_host.training.trials import Dimension, Trials, space_of, without_password

USUAL_TRIALS = 20


@dataclass(frozen=True)
class TuneRequest:
    """What a user asks for; None where the default, or the tuning that goes on, decides."""

    training: TrainingRequest  # what all trials share; `resume` is a tuning
    seeds: tuple[int, ...] | None = None
    search: tuple[str, ...] = ()  # of --search, as typed
    trials: int | None = None  # in all
    jobs: int | None = None
    timeout_s: float | None = None
    prunes: bool | None = None
    storage: str | None = None  # a URL
    tensorboard: bool | None = None
    ray: str | None = None  # the address of a cluster


def begin(request: TuneRequest) -> tuple[GroupFolder, Plan, list[Dimension]]:
    """A new tuning, after all has been checked and built."""
    asked = GroupRequest(
        request.training,
        request.seeds or (0,),
        jobs=request.jobs,
        tensorboard=request.tensorboard is not False,
    )
    asked, plan = planned(asked)
    task = None if plan.server is None else plan.server.task
    settings = asked.training.settings
    space = space_of(plan.description, task, request.search, settings)
    mark = secrets.token_hex(8)
    study = request.training.out.name if request.training.out else f"{plan.description.name}-{mark}"
    prunes, storage = request.prunes is not False, request.storage
    if storage is not None:  # before anything is trained
        Trials(storage, study, mark, space, prunes)
    about: dict[str, Any] = {
        "kind": TUNE,
        "title": f"tuning of {plan.description.name} on {plan.board.name}",
        "tune": {
            "mark": mark,
            "study": study,
            "search": [each.text() for each in space],
            "trials": request.trials or USUAL_TRIALS,
            "prunes": prunes,
            "storage": None if storage is None else without_password(storage),
        },
    }
    return create(replace(asked, variants=(), about=about), plan), plan, space


def go_on(request: TuneRequest) -> tuple[GroupFolder, Plan, list[Dimension]]:
    """A tuning that was begun before: what it was asked for holds."""
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
        shared = run_request(content)
        plan = plan_runs(shared, content.seeds[0], [Variant()], request.jobs or content.jobs)
        trials = request.trials or tuned.trials
        require_same_defaults(group, plan, more=trials > len(content.variants))
        space = space_of(plan.description, content.gymnasium, tuned.search, content.settings)
        changes: dict[str, Any] = {}
        if request.jobs is not None:
            changes["jobs"] = request.jobs
        if request.trials is not None:
            changes["tune"] = {**group.metadata["tune"], "trials": request.trials}
        group.change(changes)
        return group, plan, space
    except BaseException:
        group.close()
        raise


def require_same(group: GroupFolder, request: TuneRequest) -> None:
    """UsageError for what is asked for and is not what the tuning began with."""
    content, training = group.content, request.training
    assert content.tune is not None
    task = content.gymnasium
    source = None if training.task is None else training.task.source
    given: dict[str, tuple[Any, Any]] = {
        "the experiment": (training.experiment, content.experiment),
        "the task": (source, None if task is None else task.source),
        "--board": (training.board, content.board),
        "--steps": (training.steps, content.steps),
        "--threads": (training.threads, content.threads),
        "--seeds": (request.seeds, tuple(content.seeds)),
        "--prune": (request.prunes, content.tune.prunes),
        "--set": (sorted(training.settings) or None, sorted(content.settings)),
        "--search": (sorted(request.search) or None, sorted(content.tune.search)),
    }
    for option, (asked, had) in given.items():
        if asked is not None and asked != had:
            raise UsageError(
                f"{near_path(group.path)} goes on as it began, and {option} is another there: "
                "leave it out, or give another --name"
            )


def named(name: str) -> Path:
    """The folder of a tuning's name."""
    if not name or name != Path(name).name or name.startswith("."):
        raise UsageError(f'--name "{name}": give a name for a folder in {near_path(PROJECT.runs)}')
    return PROJECT.runs / name
