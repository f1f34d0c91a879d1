"""Trains a group of runs: one experiment with several seeds, or a study's variants with each.

Each run is trained by `rlt train`'s own code in a process of its own; firmware is built once, and
each of a task of Gymnasium's has a process of its own that plays its episodes.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from rltools_host.environments.task import MakeEnvironment
from rltools_host.errors import DiskError, Interrupted, RltError, UsageError
from rltools_host.files import disk_error, plain_json
from rltools_host.interruption import Interruption
from rltools_host.runs.group import SCRATCH, GroupFolder, read_group_file, statistics_of
from rltools_host.runs.names import GROUP_FILE, timestamp
from rltools_host.runs.saves import names_in, remove_partials
from rltools_host.training.group_plan import (
    GroupRequest,
    create,
    function_of,
    go_on,
    jobs_on,
    planned,
    run_request,
)
from rltools_host.training.parallel_runs import Job, ParallelRuns, Runs, RunsInTurn
from rltools_host.training.plan import Built, Plan, TrainingRequest
from rltools_host.training.progress import (
    FAILED,
    FINISHED,
    PAUSED,
    WAITING,
    GroupScreen,
    GroupView,
    Member,
    counted,
)
from rltools_host.tree import command_line, near_path

SCRATCH_SUFFIXES = (".job", ".log", ".map")
MakeScreen = Callable[[GroupView], GroupScreen]


class RunsSummary(TypedDict):
    """What group.json says of its runs, and of each variant what they come to."""

    runs: list[Mapping[str, Any]]
    summary: list[Mapping[str, Any]]


class GroupDocument(RunsSummary):
    """What `--json` prints of a group; a study has a page and curves."""

    group: str
    kind: str
    title: str
    experiment: str
    board: str
    seeds: list[int]
    jobs: int
    state: str
    environment: str
    task: NotRequired[str]
    report: NotRequired[str]
    curves: NotRequired[str]


def train_group(request: GroupRequest, make_screen: MakeScreen) -> GroupDocument:
    """Trains as the request says."""
    begun, make_env = None, function_of(request.training)
    if request.training.resume is None:
        request, plan = planned(request)
    else:
        begun, plan = go_on(request)
    plan.wandb = request.training.wandb
    with Interruption() as interruption:
        interruption.armed = True  # from here on there is what can be gone on with
        group = begun or create(request, plan)
        with contextlib.closing(group):
            return GroupTraining(group, plan, interruption, make_env).train(make_screen)


@contextlib.contextmanager
def scratch_folder(path: Path, *programs: Path | None) -> Iterator[Path]:
    """A folder, also where a command that was killed has left it; in the end it goes, with the
    files that were written there and no other.
    """
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise disk_error(path, error) from None
    try:
        yield path
    finally:
        remove_scratch(path, *programs)


def remove_scratch(path: Path, *programs: Path | None) -> None:
    for name in names_in(path):
        is_program = any(program is not None and name == program.name for program in programs)
        if is_program or Path(name).suffix in SCRATCH_SUFFIXES:
            with contextlib.suppress(OSError):
                (path / name).unlink()
    with contextlib.suppress(OSError):
        path.rmdir()


def copy_of_program(program: Path | None, folder: Path) -> Path | None:
    """So that all runs are of one program, whatever is built meanwhile."""
    if program is None:
        return None
    link_map = program.with_suffix(".map")  # which says what it occupies
    for file in (program, link_map):
        try:
            if file.is_file():
                shutil.copy(file, folder)
        except OSError as error:
            raise disk_error(folder / file.name, error) from None
    return folder / program.name


class GroupTraining:
    """One session of training a group."""

    def __init__(
        self,
        group: GroupFolder,
        plan: Plan,
        interruption: Interruption,
        make_env: MakeEnvironment | None = None,
    ) -> None:
        """make_env: what makes the environments, in this process; None: what the runs name."""
        self._group = group
        self._interruption = interruption
        self._plan, self._make_env = plan, make_env
        self._jobs = jobs_on(plan.board, plan.port, plan.threads, group.content.jobs)
        self._jobs = self._jobs if make_env is None else 1
        self._settings = {v.name: v.settings for v in group.variants}
        self._plans = {v.name: plan.others.get(v.experiment or "", plan) for v in group.variants}
        self._programs = [each.program for each in (plan, *plan.others.values())]
        labels = {v.name: v.label for v in group.variants}
        self._members = [
            Member(
                name,
                labels[name.variant],
                group.path / name.folder,
                self._plans[name.variant].steps,
            )
            for name in group.run_names()
        ]

    def train(self, make_screen: MakeScreen) -> GroupDocument:
        """Trains what is not finished; every way out leaves a group that can be gone on with."""
        try:
            return self._train(make_screen)
        except DiskError as error:
            raise error.then(f"go on with `{self._resume_command}`") from None

    def _train(self, make_screen: MakeScreen) -> GroupDocument:
        remove_partials(self._group.path)  # of a command that was killed
        remove_scratch(self._group.path / SCRATCH, *self._programs)
        self._look(self._members)
        if all(member.state == FINISHED for member in self._members):
            return self._has_finished()
        try:
            with scratch_folder(self._group.path / SCRATCH, *self._programs) as scratch:
                self._train_all(scratch, make_screen)
        except KeyboardInterrupt:
            self._look(m for m in self._members if m.is_running or m.state == WAITING)
            self._update("interrupted")
            raise self._interrupted("quit without saving the runs in training") from None
        self._look(member for member in self._members if member.state == WAITING)
        return self._result()

    def _look(self, members: Iterable[Member]) -> None:
        steps = self._group.content.steps
        for member in members:
            member.look(steps)

    def _train_all(self, scratch: Path, make_screen: MakeScreen) -> None:
        asked = self._group.content
        shared: dict[str, TrainingRequest] = {}
        for plan in (self._plan, *self._plan.others.values()):
            program = copy_of_program(plan.program, scratch)
            built = Built(plan.description, program, plan.sources)
            of_plan = replace(
                run_request(asked), built=built, wandb=self._plan.wandb, make_env=self._make_env
            )
            if asked.gymnasium is None:
                of_plan = replace(of_plan, experiment=plan.description.name)
            shared[plan.description.name] = of_plan
        work = iter(
            [
                (member, Job(request, asked.tensorboard))
                for member in self._members
                if (request := self._request_of(member, shared[self._name_of(member)])) is not None
            ]
        )
        path = near_path(self._group.path)
        self._update("training")
        title, board = self._group.title, self._plan.board.name
        screen = make_screen(GroupView(title, board, path, self._members, self._jobs))
        try:
            if self._make_env is not None:
                runs: Runs = RunsInTurn(screen, self._interruption, self._ended)
            else:
                runs = ParallelRuns(self._jobs, scratch, screen, self._interruption, self._ended)
            runs.train(lambda: next(work, None))
        finally:
            screen.close()

    def _name_of(self, member: Member) -> str:
        name: str = self._plans[member.name.variant].description.name
        return name

    def _request_of(self, member: Member, shared: TrainingRequest) -> TrainingRequest | None:
        """What its process is asked for; None for what has finished."""
        if member.state == PAUSED:
            member.state = WAITING
            return replace(shared, settings=(), resume=str(member.path))
        if member.state != WAITING:
            return None
        return replace(
            shared,
            seed=member.seed,
            settings=(*shared.settings, *self._settings[member.name.variant]),
            out=member.path,
            anew=member.path.is_dir(),  # what it has of a run left no checkpoint
        )

    def _ended(self, member: Member) -> None:
        failed = member.state == FAILED
        self._look([member])
        if failed:
            member.state = FAILED
        with contextlib.suppress(DiskError):  # the runs count: in the end it is written again
            self._update("training")

    # -- the end -----------------------------------------------------------------------------------

    @property
    def _resume_command(self) -> str:
        return command_line("train", "--resume", near_path(self._group.path))

    def _update(self, state: str) -> None:
        ended = {} if state == "training" else {"ended": timestamp()}
        self._group.update({"state": state, **ended, **self._summary()})

    def _summary(self) -> RunsSummary:
        return runs_summary(self._group, self._members)

    def _document(self) -> GroupDocument:
        return group_document(self._group, self._plan, self._members, self._jobs)

    def _has_finished(self) -> GroupDocument:
        """There is nothing to train. What group.json says is put right where the command that
        trained was killed before it did; otherwise the user wants something else.
        """
        stored = read_group_file(self._group.path / GROUP_FILE)
        self._group.change(stored)
        if stored["state"] == "finished" and stored.get("runs") == self._summary()["runs"]:
            raise UsageError(
                f"all {len(self._members)} runs of {near_path(self._group.path)} have finished: "
                "give a larger total with --steps"
            )
        self._update("finished")
        return self._document()

    def _result(self) -> GroupDocument:
        states = [member.state for member in self._members]
        unfinished = [state for state in states if state in (PAUSED, WAITING)]
        self._update("paused" if unfinished else "failed" if FAILED in states else "finished")
        if unfinished:
            raise self._interrupted(counted(states))
        failed = [member for member in self._members if member.state == FAILED]
        if failed:
            error: RltError = GroupFailed(failed, len(states), self._resume_command)
            error.details = {**self._document()}
            raise error
        return self._document()

    def _interrupted(self, what: str) -> Interrupted:
        command = self._resume_command
        error = Interrupted(f"{what}; go on with `{command}`")
        error.details = {**self._document(), "resume": command}
        return error


def runs_summary(group: GroupFolder, members: Sequence[Member]) -> RunsSummary:
    summary = []
    for variant in group.variants:
        returns = [
            member.return_mean
            for member in members
            if member.state == FINISHED
            and member.name.variant == variant.name
            and member.return_mean == member.return_mean
        ]
        label = {"variant": variant.name, "label": variant.label}
        summary.append({**label, **statistics_of(returns)})
    runs = [member.document() for member in members]
    document: RunsSummary = plain_json({"runs": runs, "summary": summary})
    return document


def group_document(
    group: GroupFolder, plan: Plan, members: Sequence[Member], jobs: int
) -> GroupDocument:
    content, found = group.content, runs_summary(group, members)
    runs = zip(members, found["runs"], strict=True)
    document: GroupDocument = {
        "group": str(group.path),
        "kind": content.kind,
        "title": content.title,
        "experiment": content.experiment,
        "board": content.board,
        "seeds": content.seeds,
        "jobs": jobs,
        "state": content.state,
        "environment": str(plan.description.environment["name"]),
        "runs": [{"run": str(member.path), **said} for member, said in runs],
        "summary": found["summary"],
    }
    if content.gymnasium is not None:
        document["task"] = content.gymnasium.source
    return document


class GroupFailed(RltError):
    """Some runs of a group failed; the exit code is that of the first one."""

    def __init__(self, failed: Sequence[Member], of: int, resume: str) -> None:
        which = "; ".join(member.title for member in failed)
        pronoun = "it" if len(failed) == 1 else "them"
        exit_code = failed[0].exit_code or 1
        remedy = f"try {pronoun} again with `{resume}`"
        super().__init__(f"{len(failed)} of {of} runs failed ({which}): {remedy}")
        self.exit_code = exit_code  # type: ignore[misc]
