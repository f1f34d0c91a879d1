"""The plan of a group of runs, new or resumed: checked and built before anything is trained."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from rltools_host.boards.gpu import Gpu
from rltools_host.documents import LARGEST_U32
from rltools_host.environments.imports import playable
from rltools_host.environments.server_start import environments_of
from rltools_host.environments.spaces import as_float32
from rltools_host.environments.task import MakeEnvironment, TaskRequest
from rltools_host.errors import DamagedFileError, RltError, UsageError
from rltools_host.runs.contents import Group, Tune, Variant
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.group import FORMAT, SEEDS, GroupFolder
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
from rltools_host.system import processors
from rltools_host.training.board import build_program
from rltools_host.training.hyperparameters import (
    OPTION,
    default_values,
    given_values,
    setting_texts,
    sizes_in,
)
from rltools_host.training.plan import Built, Plan, TrainingRequest, make_plan, with_sizes_of_task
from rltools_host.tree import command_line, near_path

MAX_SEEDS = 16384
MAX_JOBS = 1000
OF_EACH_RUN = ("seed", "steps", "eval_freq", "report_every")  # by its seed, length and board
DEFAULT_THREADS = 2  # of a board that takes threads: kernels/threads/pool.h
SET_ON_RESUME = ("board", "steps", "port", "threads", "jobs", "tensorboard")
PART = re.compile(r"(\d{1,20})(?:-(\d{1,20}))?", re.ASCII)


@dataclass(frozen=True)
class GroupRequest:
    """A group of runs: the request that all share, its seeds, and the variants that each trains."""

    training: TrainingRequest
    variants: tuple[Variant, ...] = (Variant(),)
    source: Path | None = None  # the file that has the variants
    kind: str = SEEDS
    title: str = ""
    study: str = ""
    x_axis: str = "environment steps"
    y_axis: str = "return"
    tune: Tune | None = None


def is_for_group(request: TrainingRequest) -> bool:
    """Return True if the request trains or resumes a group of runs.

    Raise UsageError if its seeds do not go with its other options.
    """
    resumes_group = request.resume is not None and find_group(request.resume) is not None
    if not request.seeds and not resumes_group:
        for option in ("jobs", "ray", "verify"):
            if getattr(request, option) is not None:
                raise UsageError(
                    f"--{option} goes with --seeds, or with --resume and a group of runs"
                )
        return False
    if request.seed is not None:
        raise UsageError("--seed does not go with --seeds or a group: name all in --seeds")
    if request.seeds and request.resume is not None:
        raise UsageError("--seeds does not go with --resume: a resumed group keeps its seeds")
    return True


def plan_new(request: GroupRequest) -> tuple[GroupRequest, Plan]:
    """Check and build a new group; return its request with all defaults filled in, and its plan.

    Variants with experiments of their own have their plans in `others`.
    """
    training = with_sizes_of_task(request.training)
    if training.out is not None:
        require_empty(training.out)
    plan = plan_runs(training, request.variants, request.source)
    training = as_stored(training, plan)
    if plan.server is not None:
        training = replace(training, task=plan.server.task)
    return replace(request, training=training), plan


def plan_runs(
    training: TrainingRequest, variants: Sequence[Variant], source: Path | None = None
) -> Plan:
    """Check one run of each variant, build the programs, and return the plan that the runs share.

    Variants with experiments of their own have their plans in `others`. A sentence on what is wrong
    names the variant in the file `source`.
    """
    shared = replace(training, seed=training.seeds[0], seeds=(), jobs=None)
    plans: dict[str, Plan] = {}
    with environments_of(training.task, training.make_env) as server:
        for index, variant in enumerate(variants):
            key = variant.experiment or ""
            built = Built(plans[key].description) if key in plans else None
            settings = (*training.settings, *variant.settings)
            request = replace(shared, settings=settings, built=built)
            if variant.experiment is not None:
                request = replace(request, experiment=variant.experiment)
            if plans:
                request = replace(request, board=next(iter(plans.values())).board.name)
            try:
                plans[key] = make_plan(request, server=server)
                require_environment(list(plans.values()))
            except RltError as error:
                where = f"{source}, variants[{index}] ({variant.name}): " if source else ""
                raise type(error)(f"{where}{error}") from None
    plan = next(iter(plans.values()))
    jobs_of(plan, training.jobs)
    if training.ray is not None:
        require_elsewhere(training, list(plans.values()))
    if function_of(training) is not None and training.jobs not in (None, 1):
        raise UsageError(
            f"jobs={training.jobs}: environments of a Python function are stepped in this process, "
            "one run after the other"
        )
    if plan.board.is_gpu:
        Gpu().close()  # there is one, and its driver is new enough
    for each in plans.values():
        build_program(each)
    plan.others = {key: each for key, each in plans.items() if key}
    return plan


def require_elsewhere(training: TrainingRequest, plans: Sequence[Plan]) -> None:
    """Raise UsageError if the runs cannot train on the nodes of a cluster."""
    if function_of(training) is not None:
        raise UsageError("ray: environments of a Python function are stepped in this process")
    for plan in plans:
        if plan.board.is_gpu:
            raise UsageError("--ray does not go with --board cuda, a GPU of this machine")
        if plan.board.is_flashed or plan.request.port is not None:
            raise UsageError(
                f"--ray does not go with board {plan.board.name} on a port of this machine"
            )


def require_environment(plans: Sequence[Plan]) -> None:
    """Raise UsageError if an experiment has another environment: returns would not compare."""
    first, last = plans[0].description, plans[-1].description
    if (names := [each.environment["name"] for each in (first, last)])[0] != names[1]:
        raise UsageError(
            f"{last.name} is of {names[1]}, and {first.name} of {names[0]}: their returns do not "
            "compare"
        )


def as_stored(training: TrainingRequest, plan: Plan) -> TrainingRequest:
    """Return the request as group.json holds it: the values of a settings file are among the
    settings, and the steps are not, as a resumed group may have another total."""
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
    """Create the folder of a new group, and lock it."""
    training = request.training
    own = f"{plan.description.name}-{plan.board.name}-{request.kind}"
    stem = f"study-{request.study}" if request.study else own
    path = training.out or new_run_path(f"{folder_date()}-{stem}")
    content = Group(
        format=FORMAT,
        kind=request.kind,
        title=request.title or f"{plan.description.name} on {plan.board.name}",
        study=request.study,
        x_axis=request.x_axis,
        y_axis=request.y_axis,
        tune=request.tune,
        experiment=plan.description.name,
        board=plan.board.name,
        steps=training.steps,
        threads=training.threads,
        port=training.port,
        jobs=training.jobs,
        tensorboard=training.tensorboard is not False,
        seeds=list(training.seeds),
        settings=list(training.settings),
        variants=list(request.variants),
        started=timestamp(),
        gymnasium=training.task if isinstance(training.task, Task) else None,
        state="training",
    )
    group = GroupFolder.create(path, content)
    group.lock()
    return group


def resume_group(request: GroupRequest) -> tuple[GroupFolder, Plan]:
    """Open and plan a group that was begun before, with what it was asked for then."""
    training = request.training
    assert training.resume is not None
    group = GroupFolder.open(training.resume)
    refused = {
        "--out": (training.out is not None, "stays in its folder"),
        "--set": (bool(training.settings), "keeps its settings"),
        OPTION: (training.set_file is not None, "keeps its settings"),
        "--seed": (training.seed is not None, "keeps its seeds"),
        "--seeds": (bool(training.seeds), "keeps its seeds"),
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
        raise UsageError(f"{group.path} was not trained on a Gymnasium task")
    make_env = function_of(training)
    group.lock()
    try:
        asked_now = {name: getattr(training, name) for name in SET_ON_RESUME}
        changes = {name: value for name, value in asked_now.items() if value is not None}
        if training.board not in (None, asked.board):  # another one has its own
            changes = {"port": None, "threads": None, **changes}
        if asked.gymnasium is not None:
            require_function(group, make_env)
            named = None if training.task is None else training.task.source
            if make_env is None:
                changes["gymnasium"] = playable(asked.gymnasium, named)
        asked = structs.replace(asked, **changes)
        first = {each.experiment: each for each in reversed(asked.variants)}
        shared = replace(shared_request(asked), make_env=make_env)
        plan = plan_runs(shared, list(first.values())[::-1])
        require_same_defaults(group, plan)
        group.content = asked  # written with the state of training, once that begins
        return group, plan
    except BaseException:
        group.close()
        raise


def require_same_defaults(group: GroupFolder, plan: Plan, *, more: bool = False) -> None:
    """Raise UsageError if defaults have changed since the group began, and a run is yet to begin,
    or `more` may follow."""
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
    """Return the function that makes the environments in this process; None if a name does."""
    return training.task.make_env if isinstance(training.task, TaskRequest) else training.make_env


def require_function(group: GroupFolder, make_env: MakeEnvironment | None) -> None:
    """Raise UsageError if only a Python program has the environment, and it is not given."""
    task = group.content.gymnasium
    if task is not None and not task.is_named and make_env is None:
        raise UsageError(
            f"{near_path(group.path)} was trained on {task.source} of a Python program: go on "
            f"there with rlt.train(make_env, resume={str(near_path(group.path))!r})"
        )


def shared_request(asked: Group) -> TrainingRequest:
    """Return the request of a group, as its file has it."""
    return TrainingRequest(
        asked.experiment,
        asked.board,
        steps=asked.steps,
        settings=tuple(asked.settings),
        port=asked.port,
        threads=asked.threads,
        task=asked.gymnasium,
        tensorboard=asked.tensorboard,
        seeds=tuple(asked.seeds),
        jobs=asked.jobs,
    )


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds of `0-9` or `0,3,5-7`, in this order."""
    seeds: list[int] = []
    for part in text.split(","):
        match = PART.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last <= LARGEST_U32 or last - first + 1 + len(seeds) > MAX_SEEDS:
            raise UsageError(
                f'--seeds "{text}": write up to {MAX_SEEDS:,} seeds and ranges from 0 to '
                f"{LARGEST_U32}, as in 0-9 or 0,3,5-7"
            )
        seeds += range(first, last + 1)
    if len({*seeds}) < len(seeds):
        raise UsageError(f'--seeds "{text}": give each seed once')
    return tuple(seeds)


def jobs_of(plan: Plan, given: int | None) -> int:
    """Return how many runs train at once: as many as processors have room for their threads."""
    board, threads = plan.board, plan.request.threads
    most = MAX_SEEDS if board.is_gpu else MAX_JOBS
    if given is not None and not 1 <= given <= most:
        raise UsageError(f"--jobs {given}: give a number from 1 to {most:,}")
    if board.is_flashed or plan.request.port is not None:
        if given is not None and given > 1:
            raise UsageError(
                f"--jobs {given} does not go with board {board.name} on a port: it trains one "
                "seed after the other"
            )
        return 1
    if given is not None:
        return given
    if board.is_gpu:
        return most
    each = (threads or DEFAULT_THREADS) if board.takes_threads else 1
    return max(1, processors() // each)
