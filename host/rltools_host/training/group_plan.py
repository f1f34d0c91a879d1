"""What a group of runs is to train, and how many of its runs go on at once: a plan, one program, a
folder, for a new group or for one that goes on. All is checked before anything is trained.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from rltools_host.build.boards import Board
from rltools_host.documents import LARGEST_U32
from rltools_host.environments.imports import playable
from rltools_host.environments.server_start import environments_of
from rltools_host.environments.task import MakeEnvironment, TaskRequest
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.runs.contents import Group
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import SEEDS, GroupFolder
from rltools_host.runs.names import (
    find_group,
    folder_date,
    is_run,
    new_run_path,
    require_empty,
    timestamp,
)
from rltools_host.runs.saves import holds_save
from rltools_host.runs.task import Task
from rltools_host.training.board import build_program
from rltools_host.training.hyperparameters import (
    OPTION,
    as_float32,
    default_values,
    given_values,
    setting_texts,
    sizes_in,
)
from rltools_host.training.plan import Built, Plan, TrainingRequest, make_plan, with_sizes_of_task
from rltools_host.tree import command_line, near_path

MOST_SEEDS = 1000
OF_EACH_RUN = ("seed", "steps", "eval_freq", "report_every")  # by its seed, length and board
THREADS_UNLESS_SAID = 2  # of a board that takes threads: kernels/threads/pool.h
PART = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?", re.ASCII)


@dataclass(frozen=True)
class Variant:
    """Settings with which each seed is trained; without a name where there is but one."""

    name: str = ""
    label: str = ""
    settings: tuple[str, ...] = ()  # name=value, as of --set
    place: str = ""  # where it is written, for what is wrong with it
    experiment: str | None = None  # its own, where that is not the group's


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
    """A new group's plan, after all has been checked and built, and its request as it holds. The
    plans of variants with experiments of their own are its `others`."""
    training = with_sizes_of_task(request.training)
    if training.out is not None:
        require_empty(training.out)
    plan = plan_runs(training, request.seeds[0], request.variants, request.jobs)
    training = as_stored(training, plan)
    if plan.server is not None:
        training = replace(training, task=plan.server.task)
    return replace(request, training=training), plan


def plan_runs(
    training: TrainingRequest, seed: int, variants: Sequence[Variant], jobs: int | None
) -> Plan:
    """The plan that the runs share, built, after one run of each variant has been checked. Variants
    with experiments of their own have `others`, which are built, too."""
    plans: dict[str, Plan] = {}
    with environments_of(training.task, training.make_env) as server:
        for variant in variants:
            key = variant.experiment or ""
            built = Built(plans[key].description) if key in plans else None
            settings = (*training.settings, *variant.settings)
            request = replace(training, seed=seed, settings=settings, built=built)
            if variant.experiment is not None:
                request = replace(request, experiment=variant.experiment)
            if plans:
                request = replace(request, board=next(iter(plans.values())).board.name)
            try:
                plans[key] = make_plan(request, server=server)
                require_environment(list(plans.values()))
            except RltError as error:
                place = f"{variant.place}: " if variant.place else ""
                raise type(error)(f"{place}{error}") from None
    plan = next(iter(plans.values()))
    jobs_on(plan.board, plan.port, plan.threads, jobs)
    if function_of(training) is not None and jobs not in (None, 1):
        raise UsageError(
            f"jobs={jobs}: environments of a Python function are stepped in this process, one run "
            "after the other"
        )
    for each in plans.values():
        build_program(each)
    plan.others = {key: each for key, each in plans.items() if key}
    return plan


def require_environment(plans: Sequence[Plan]) -> None:
    """That all have the same; returns of others mean other things."""
    first, last = plans[0].description, plans[-1].description
    if (names := [each.environment["name"] for each in (first, last)])[0] != names[1]:
        raise UsageError(
            f"{last.name} is of {names[1]}, and {first.name} of {names[0]}: their returns do not "
            "compare"
        )


def as_stored(training: TrainingRequest, plan: Plan) -> TrainingRequest:
    """With a file's values among the settings, as group.json has no file; and with the steps apart,
    as the group may go on to another total."""
    texts = setting_texts(training.settings)
    if training.set_file is not None:
        left_out = {"seed"} if training.steps is None else {"seed", "steps"}
        texts |= {
            name: text
            for name, text in training.set_file.texts.items()
            if name not in texts and name not in left_out
        }
    steps = plan.steps if "steps" in texts else training.steps
    settings = tuple(f"{name}={text}" for name, text in texts.items() if name != "steps")
    return replace(training, settings=settings, steps=steps, set_file=None)


def create(request: GroupRequest, plan: Plan) -> GroupFolder:
    """A new group's folder."""
    training = request.training
    name = request.about.get("study")
    kind = request.about.get("kind", SEEDS)
    stem = f"study-{name}" if name else f"{plan.description.name}-{plan.board.name}-{kind}"
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
                **({"experiment": variant.experiment} if variant.experiment else {}),
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
    if asked.tune is not None:
        command = command_line("tune", "--resume", near_path(group.path))
        raise UsageError(f"{near_path(group.path)} is a tuning: go on with `{command}`")
    if training.experiment not in (None, asked.experiment):
        raise UsageError(f"{group.path} is of {asked.experiment}, not of {training.experiment}")
    if asked.gymnasium is None and training.task is not None:
        raise UsageError(f"{group.path} was trained on no task of Gymnasium's")
    make_env = function_of(training)
    group.lock()
    try:
        asked_now = {
            name: getattr(training, name) for name in ("board", "steps", "port", "threads")
        }
        asked_now |= {name: getattr(request, name) for name in ("jobs", "tensorboard")}
        changes = {name: value for name, value in asked_now.items() if value is not None}
        if training.board not in (None, asked.board):  # another one has its own
            changes = {"port": None, "threads": None, **changes}
        if asked.gymnasium is not None:
            require_function(group, make_env)
            named = None if training.task is None else training.task.source
            if make_env is None:
                changes["gymnasium"] = playable(asked.gymnasium, named)
        asked = structs.replace(asked, **changes)
        first = {each.experiment: tuple(each.settings) for each in reversed(asked.variants)}
        begun = [Variant(settings=texts, experiment=of) for of, texts in first.items()]
        shared = replace(run_request(asked), make_env=make_env)
        plan = plan_runs(shared, asked.seeds[0], begun[::-1], asked.jobs)
        require_same_defaults(group, plan)
        if asked.gymnasium is not None:
            changes["gymnasium"] = asked.gymnasium.document()
        group.change(changes)  # written with the state of training, once that begins
        return group, plan
    except BaseException:
        group.close()
        raise


def require_same_defaults(group: GroupFolder, plan: Plan, *, more: bool = False) -> None:
    """UsageError where a run begins, or `more` do, that would have other hyperparameters than the
    runs that have begun: defaults that are others since."""
    paths = {name: group.path / name.folder for name in group.run_names()}
    begun = {name: path for name, path in paths.items() if is_run(path) and holds_save(path)}
    if len(begun) == len(paths) and not more:
        return
    variants = {variant.name: variant for variant in group.variants}
    for name, path in begun.items():
        with contextlib.suppress(DamagedFileError):  # which is said of that run
            variant = variants[name.variant]
            description = plan.others.get(variant.experiment or "", plan).description
            _, _, settings = sizes_in([*group.content.settings, *variant.settings])
            now = default_values(description) | given_values(description, None, None, settings)
            had = RunFolder.open(path).content.hyperparameters
            changed = [
                each
                for each, value in now.items()
                if each not in OF_EACH_RUN
                and each in had
                and as_float32(had[each]) != as_float32(value)
            ]
            if changed:
                before = ", ".join(f"{each}={had[each]:g}" for each in changed)
                after = ", ".join(f"{each}={now[each]:g}" for each in changed)
                command = command_line("train", "--resume", near_path(path))
                raise UsageError(
                    f"{near_path(group.path)} began with {before}, and the defaults are {after} "
                    f"now: go on with each run that has begun, as in `{command}`, and train the "
                    "others in a new group"
                )


def function_of(training: TrainingRequest) -> MakeEnvironment | None:
    """What makes the environments in this process, where no name does."""
    return training.task.make_env if isinstance(training.task, TaskRequest) else training.make_env


def require_function(group: GroupFolder, make_env: MakeEnvironment | None) -> None:
    """UsageError where only a Python program has the environment, and it is not given."""
    task = group.content.gymnasium
    if task is not None and not task.is_named and make_env is None:
        raise UsageError(
            f"{near_path(group.path)} was trained on {task.source} of a Python program: go on "
            f"there with rlt.train_gymnasium(make_env, resume={str(near_path(group.path))!r})"
        )


def run_request(asked: Group) -> TrainingRequest:
    """What each run of a group is asked for."""
    return TrainingRequest(
        asked.experiment,
        asked.board,
        steps=asked.steps,
        settings=tuple(asked.settings),
        port=asked.port,
        threads=asked.threads,
        task=asked.gymnasium,
    )


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0-9`, or `0,3,5-7`: each seed once, in this order."""
    seeds: list[int] = []
    for part in text.split(","):
        match = PART.fullmatch(part.strip())
        if match is None:
            raise UsageError(f'--seeds "{text}": write seeds and ranges, as in 0-9 or 0,3,5-7')
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last > LARGEST_U32:
            raise UsageError(f"--seeds: {last} is too large, the largest seed is {LARGEST_U32}")
        if last < first:
            raise UsageError(f"--seeds: the range {part.strip()} runs backwards: {last}-{first}")
        if last - first + 1 + len(seeds) > MOST_SEEDS:
            raise UsageError(f'--seeds "{text}": these are more than {MOST_SEEDS:,} seeds')
        seeds += range(first, last + 1)
    twice = [seed for seed in seeds if seeds.count(seed) > 1]
    if twice:
        raise UsageError(f"--seeds: {twice[0]} is given twice: give each seed once")
    return tuple(seeds)


def means_group(resume: str | None, seeds: str | None, jobs: int | None) -> bool:
    """Whether `rlt train` is to train a group of runs and not one."""
    if seeds is not None or (resume is not None and find_group(resume) is not None):
        return True
    if jobs is not None:
        raise UsageError("--jobs goes with --seeds, or with --resume and a group of runs")
    return False


def processors() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0))


def jobs_on(board: Board, port: str | None, threads: int | None, given: int | None) -> int:
    """How many runs go on at once: as many as there are processors, for the threads of each."""
    if given is not None and given < 1:
        raise UsageError(f"--jobs {given}: at least 1 is needed")
    if board.is_flashed or port is not None:
        if given is not None and given > 1:
            raise UsageError(
                f"--jobs {given} does not go with board {board.name} on a port: it trains one "
                "seed after the other"
            )
        return 1
    if given is not None:
        return given
    each = (threads or THREADS_UNLESS_SAID) if board.takes_threads else 1
    return max(1, processors() // each)
