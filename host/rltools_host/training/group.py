"""Training of a group of runs: an experiment with several seeds, or a study's variants with each.

Each run is trained in a process of its own by the code of `rlt train`; firmware is built once. A
run on a Gymnasium task also has a process that steps its environments.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

from msgspec import structs

from rltools_host.errors import (
    DiskError,
    Interrupted,
    LinkLostError,
    RefusedError,
    RltError,
    UsageError,
)
from rltools_host.files import disk_error, plain_json
from rltools_host.interruption import Interruption
from rltools_host.runs.contents import Figures
from rltools_host.runs.group import (
    SCRATCH,
    GroupFolder,
    RunName,
    read_group_file,
    statistics_of,
)
from rltools_host.runs.names import GROUP_FILE, timestamp
from rltools_host.runs.saves import names_in, remove_partials
from rltools_host.training.group_plan import (
    GroupRequest,
    create,
    function_of,
    jobs_of,
    plan_new,
    resume_group,
    shared_request,
)
from rltools_host.training.parallel_runs import ParallelRuns, RunProcess, RunsInTurn
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
from rltools_host.training.ray_cluster import RayCluster
from rltools_host.tree import command_line, near_path

if TYPE_CHECKING:
    from rltools_host.training.gpu_runs import GpuRuns

SCRATCH_SUFFIXES = (".job", ".log", ".map")
WRITE_EVERY_S = 1.0  # group.json, which has a thousand runs and more, while they end
MAX_LOSSES = 100  # of a group's runs, with nodes of a cluster; one that always ends its node fails
MakeScreen = Callable[[GroupView], GroupScreen]


class GroupDocument(TypedDict):
    """The object that `--json` prints of a group; a study also has a page and curves."""

    group: str
    kind: str
    title: str
    experiment: str
    board: str
    seeds: list[int]
    jobs: int
    state: str
    environment: str
    runs: list[Figures]
    summary: list[Figures]
    task: NotRequired[str]
    report: NotRequired[str]
    curves: NotRequired[str]


def train_group(request: GroupRequest, make_screen: MakeScreen) -> GroupDocument:
    """Train a new group, or resume one, and return what `--json` prints."""
    begun, asked = None, request.training
    with contextlib.ExitStack() as stack:
        cluster = None
        if asked.ray is not None:
            cluster = stack.enter_context(contextlib.closing(RayCluster(asked.ray)))
        if asked.resume is None:
            request, plan = plan_new(request)
        else:
            begun, plan = resume_group(request)
        if asked.verify is not None and asked.verify < 0:
            raise UsageError(f"--verify {asked.verify}: give 0 or more runs")
        if asked.verify is not None and not plan.board.is_gpu:
            raise UsageError(
                f"--verify goes with a GPU, and not with --board {plan.board.name}: leave it out"
            )
        interruption = stack.enter_context(Interruption())
        interruption.armed = True  # from here on a pause leaves a group that can be resumed
        group = stack.enter_context(contextlib.closing(begun or create(request, plan)))
        return GroupTraining(group, plan, interruption, asked, cluster).train(make_screen)


def jobs_on(cluster: RayCluster | None, plan: Plan, given: int | None) -> int:
    """Return how many runs train at once: what is given, else what this machine or the cluster has
    processors for."""
    if cluster is not None and given is None:
        return cluster.jobs(plan.request.threads)
    return jobs_of(plan, given)


@contextlib.contextmanager
def scratch_folder(path: Path, *programs: Path | None) -> Iterator[Path]:
    """Create a folder, or take the one that a killed command has left; remove it in the end, with
    the files that were written there and no other.
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
    """Copy the program and its link map, so that all runs have the same one, whatever is built
    meanwhile."""
    if program is None:
        return None
    link_map = program.with_suffix(".map")  # states the memory that it occupies
    for file in (program, link_map):
        try:
            if file.is_file():
                shutil.copy(file, folder)
        except OSError as error:
            raise disk_error(folder / file.name, error) from None
    return folder / program.name


class GroupTraining:
    """One session of training a group; a tuning adds trials to it (tune.py)."""

    def __init__(
        self,
        group: GroupFolder,
        plan: Plan,
        interruption: Interruption,
        asked: TrainingRequest | None = None,
        cluster: RayCluster | None = None,
    ) -> None:
        """Prepare a session; `asked` is the user's request, which may have what group.json does
        not: the function that makes environments, and a project of Weights & Biases."""
        self._group = group
        self._interruption = interruption
        self._plan, self._asked = plan, asked or plan.request
        self._make_env = function_of(self._asked)
        self._cluster, self._losses = cluster, 0
        self._waiting: deque[Member] = deque()
        self._shared: dict[str, TrainingRequest] = {}
        self._jobs, self._written_at = 1, 0.0
        if self._make_env is None:
            self._jobs = jobs_on(cluster, plan, group.content.jobs)
        self._programs = [each.program for each in (plan, *plan.others.values())]
        self._variants = {variant.name: variant for variant in group.variants}
        self._members = [self._member(name) for name in group.run_names()]
        self._count = len(self._members)  # of the runs, where they are not all known yet
        self._jobs = min(self._jobs, self._count)
        self._runs: ParallelRuns | GpuRuns

    def _plan_of(self, name: RunName) -> Plan:
        return self._plan.others.get(self._variants[name.variant].experiment or "", self._plan)

    def _member(self, name: RunName) -> Member:
        label = self._variants[name.variant].label
        return Member(name, label, self._group.path / name.folder, self._plan_of(name).steps)

    def train(self, make_screen: MakeScreen) -> GroupDocument:
        """Train what has not finished; every way out leaves a group that can be resumed."""
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
        except LinkLostError as error:
            self._update("failed")
            raise LinkLostError(f"{error}; go on with `{self._resume_command}`") from None
        except RefusedError:
            self._update("failed")
            raise
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
                shared_request(asked),
                seeds=(),
                jobs=None,
                built=built,
                wandb=self._asked.wandb,
                make_env=self._make_env,
            )
            if asked.gymnasium is None:
                of_plan = replace(of_plan, experiment=plan.description.name)
            shared[plan.description.name] = of_plan
        self._shared = shared
        self._waiting = deque(m for m in self._members if m.state in (PAUSED, WAITING))
        path = near_path(self._group.path)
        self._update("training")
        title, board = self._group.title, self._plan.board.name
        view = GroupView(title, board, path, self._members, self._jobs, total=self._count)
        screen = make_screen(view)
        told = screen, self._interruption, self._ended
        try:
            if self._make_env is not None:
                RunsInTurn(*told).train(self._next)
                return
            if self._plan.board.is_gpu:
                from rltools_host.training.gpu_runs import GpuRuns  # with NumPy

                verified = self._asked.verify
                self._runs = GpuRuns(*told, self._jobs, self._reported, verified)
            else:
                start = RunProcess if self._cluster is None else self._cluster.start
                self._runs = ParallelRuns(self._jobs, scratch, *told, self._reported, start)
            self._runs.train(self._next)
        finally:
            screen.close()

    def _next(self) -> tuple[Member, TrainingRequest] | None:
        if not self._waiting:
            return None
        member = self._waiting.popleft()
        return member, self._request_of(member)

    def _request_of(self, member: Member) -> TrainingRequest:
        shared = self._shared[self._plan_of(member.name).description.name]
        if member.state != WAITING:
            return replace(shared, settings=(), resume=str(member.path))
        return replace(
            shared,
            seed=member.seed,
            settings=(*shared.settings, *self._variants[member.name.variant].settings),
            out=member.path,
            restarts=member.path.is_dir(),  # there is no checkpoint in it
        )

    def _reported(self, member: Member) -> None:
        """Hear of a report of a run."""

    def _ended(self, member: Member) -> None:
        failed = member.state == FAILED
        is_lost = failed and self._cluster is not None and member.was_killed
        if is_lost and self._losses < MAX_LOSSES:  # with its node: it begins again on another
            self._losses += 1
            member.error, member.exit_code = "", 0
            failed = False
            self._waiting.append(member)
        self._look([member])
        if failed:
            member.state = FAILED
        if failed or time.monotonic() - self._written_at > WRITE_EVERY_S:
            with contextlib.suppress(DiskError):  # it is written again in the end
                self._update("training")

    # -- the end -----------------------------------------------------------------------------------

    @property
    def _resume_command(self) -> str:
        return command_line("train", "--resume", near_path(self._group.path))

    def _update(self, state: str) -> None:
        self._written_at = time.monotonic()
        content = self._group.content
        self._group.write(
            structs.replace(
                content,
                state=state,
                ended=content.ended if state == "training" else timestamp(),
                runs=figures_of(self._members),
                summary=summary_of(self._group, self._members),
            )
        )

    def _document(self) -> GroupDocument:
        content = self._group.content
        runs = zip(self._members, figures_of(self._members), strict=True)
        document: GroupDocument = {
            "group": str(self._group.path),
            "kind": content.kind,
            "title": content.title,
            "experiment": content.experiment,
            "board": content.board,
            "seeds": content.seeds,
            "jobs": self._jobs,
            "state": content.state,
            "environment": str(self._plan.description.environment["name"]),
            "runs": [{"run": str(member.path), **figures} for member, figures in runs],
            "summary": summary_of(self._group, self._members),
        }
        if content.gymnasium is not None:
            document["task"] = content.gymnasium.source
        return document

    def _has_finished(self) -> GroupDocument:
        """Correct group.json if the command that trained was killed before it did; else raise
        UsageError, as there is nothing to train.
        """
        stored = self._group.content = read_group_file(self._group.path / GROUP_FILE)
        if stored.state == "finished" and stored.runs == figures_of(self._members):
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


def figures_of(members: Sequence[Member]) -> list[Figures]:
    """Return the entries of group.json for its runs."""
    figures: list[Figures] = plain_json([member.figures() for member in members])
    return figures


def summary_of(group: GroupFolder, members: Sequence[Member]) -> list[Figures]:
    """Return the statistics of the final returns of each variant."""
    summary: list[Figures] = []
    for variant in group.variants:
        returns = [
            member.return_mean
            for member in members
            if member.state == FINISHED
            and member.name.variant == variant.name
            and member.return_mean == member.return_mean
        ]
        lost = sum(
            member.state == FAILED and member.name.variant == variant.name for member in members
        )
        label = {"variant": variant.name, "label": variant.label}
        summary.append({**label, **statistics_of(returns), "failed": lost})
    return summary


class GroupFailed(RltError):
    """Some runs of a group failed; its exit code is that of the first one."""

    def __init__(self, failed: Sequence[Member], of: int, resume: str) -> None:
        which = "; ".join(member.title for member in failed)
        pronoun = "it" if len(failed) == 1 else "them"
        exit_code = failed[0].exit_code or 1
        remedy = f"try {pronoun} again with `{resume}`"
        super().__init__(f"{len(failed)} of {of} runs failed ({which}): {remedy}")
        self.exit_code = exit_code  # type: ignore[misc]
