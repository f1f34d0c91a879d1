"""Tuning: a search of hyperparameters and sizes by trials, which are the runs of a group.

A trial is a variant of the group, `t<number>`, with a run for each seed; its value is the mean
return of their last evaluations. The folders of the runs count: the storage (training/trials.py)
gets the outcome of a trial once all of its runs have finished. A run whose process was killed
resumes from its save or starts over, and has the same bits.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NotRequired, TypedDict

from msgspec import structs

from rltools_host.build import tools
from rltools_host.errors import (
    BoardError,
    DamagedFileError,
    DiskError,
    FileError,
    RltError,
    UsageError,
)
from rltools_host.interruption import Interruption
from rltools_host.runs.contents import MAX_VARIANTS, Tune, Variant
from rltools_host.runs.group import SCRATCH, STORAGE_FILE, GroupFolder, RunName
from rltools_host.training.group import (
    GroupDocument,
    GroupTraining,
    MakeScreen,
    jobs_on,
    scratch_folder,
)
from rltools_host.training.hyperparameters import resized
from rltools_host.training.plan import Plan, TrainingRequest
from rltools_host.training.progress import FAILED, FINISHED, PRUNED, Member
from rltools_host.training.ray_cluster import RayCluster
from rltools_host.training.study import TuneRequest, plan_new_tuning, resume_tuning
from rltools_host.training.trials import COMPLETE, GROUP, Dimension, Trial, Trials
from rltools_host.training.trials import FAILED as HAS_FAILED
from rltools_host.training.trials import PRUNED as WAS_PRUNED
from rltools_host.tree import command_line, near_path

ON_GPU = 256  # runs at once: a sampler learns from those that have ended
MAX_KILLS = 20  # of one trial's processes, which might always take too much memory


class TrialDocument(TypedDict):
    """A finished trial of Optuna; `run` is of the best."""

    trial: int
    state: str
    value: float | None
    settings: list[str]
    run: NotRequired[str]


class TuneDocument(GroupDocument):
    """The object of `--json` for a tuning; `command` trains with the settings of the best trial."""

    of: int
    study: str
    trials: list[TrialDocument]
    elsewhere: int  # trials that run under other commands
    prepared_s: float  # before the first run, with what was compiled for all
    compiling_s: float  # of the runs: their own programs
    best: TrialDocument | None
    command: str | None
    resume: str | None  # the command that goes on with it; None at its end


def tune(request: TuneRequest, make_screen: MakeScreen) -> TuneDocument:
    """Begin or resume a tuning, and return what `--json` prints."""
    if request.trials is not None and not 1 <= request.trials <= MAX_VARIANTS:
        raise UsageError(f"--trials {request.trials}: give a number from 1 to {MAX_VARIANTS:,}")
    if request.timeout_s is not None and not request.timeout_s > 0:
        raise UsageError(f"--timeout {request.timeout_s:g}: give seconds above 0")
    began = time.monotonic()
    tools.ensure_group(GROUP)  # before anything is compiled for it
    with contextlib.ExitStack() as stack:
        cluster = None
        if request.training.ray is not None:
            cluster = stack.enter_context(contextlib.closing(RayCluster(request.training.ray)))
        begin = resume_tuning if request.training.resume else plan_new_tuning
        group, plan, space = begin(request)
        stack.enter_context(contextlib.closing(group))
        interruption = stack.enter_context(Interruption())
        interruption.armed = True
        tuning = Tuning(group, plan, space, request, interruption, cluster, began)
        return tuning.tune(make_screen)


@dataclass
class OpenTrial:
    """A trial that the storage has as running."""

    trial: Trial
    members: list[Member]
    is_pruned: bool = False
    kills: int = 0
    waiting: deque[Member] = field(default_factory=deque)


class Tuning(GroupTraining):
    """One session of tuning."""

    def __init__(
        self,
        group: GroupFolder,
        plan: Plan,
        space: Sequence[Dimension],
        request: TuneRequest,
        interruption: Interruption,
        cluster: RayCluster | None,
        began: float,
    ) -> None:
        """Prepare a session that `began` at this time.monotonic(); what compiled since then counts
        to its time."""
        super().__init__(group, plan, interruption, request.training, cluster)
        content = group.content
        assert content.tune is not None
        self._tune: Tune = content.tune
        self._count = self._tune.trials * len(content.seeds)
        self._jobs = jobs_on(cluster, plan, content.jobs)
        if plan.board.is_gpu and content.jobs is None:
            self._jobs = ON_GPU
        storage = request.storage or group.path / STORAGE_FILE
        self._trials = Trials(storage, self._tune.study, self._tune.mark, space, self._tune.prunes)
        self._has_sizes = any(each.is_size for each in space)
        self._timeout_s, self._began = request.timeout_s, began
        self._open: dict[str, OpenTrial] = {}  # by their names
        self._error: RltError | None = None  # that no further trial would escape
        self._prepared_s = 0.0

    def tune(self, make_screen: MakeScreen) -> TuneDocument:
        """Train what is missing of the trials; every way out leaves a tuning that can be
        resumed."""
        self._look_at_all()
        self._prepared_s = time.monotonic() - self._began
        try:
            with scratch_folder(self._group.path / SCRATCH, self._plan.program) as scratch:
                self._train_all(scratch, make_screen)
        except KeyboardInterrupt:
            self._update("interrupted")
            raise self._interrupted("quit without saving the runs in training") from None
        except RltError as error:
            with contextlib.suppress(DiskError):
                self._update("interrupted")
            if isinstance(error, DiskError):
                raise error.then(f"go on with `{self._resume_command}`") from None
            raise
        return self._result()

    # -- trials ------------------------------------------------------------------------------------

    def _look_at_all(self) -> None:
        """Compare the folders with the storage, as a killed command may have left them
        different."""
        pruned = {
            f"t{n}" for n, (state, _) in self._trials.finished().items() if state == WAS_PRUNED
        }
        for member in self._members:
            member.look(None)
            if member.name.variant in pruned and member.state != FINISHED:
                member.state = PRUNED
        for trial in self._trials.unfinished():
            self._begin(trial)

    def _begin(self, trial: Trial) -> None:
        """Begin a trial: its runs that have not finished are to be trained."""
        content = self._group.content
        known = self._variants.setdefault(
            trial.name, Variant(trial.name, trial.label, trial.settings)
        )
        if known.settings != trial.settings:
            raise DamagedFileError(
                f"{trial.label} has other settings in its storage than in {self._group.path}: "
                "restore the one or the other, or begin a new tuning"
            )
        if known not in content.variants:
            self._group.write(structs.replace(content, variants=[*content.variants, known]))
            self._members += [self._member(RunName(trial.name, seed)) for seed in content.seeds]
        members = [member for member in self._members if member.name.variant == trial.name]
        opened = self._open[trial.name] = OpenTrial(trial, members)
        for member in members:
            member.look(None)
            if member.state != FINISHED:
                opened.waiting.append(member)
        self._settle(opened)

    def _next(self) -> tuple[Member, TrainingRequest] | None:
        if self._is_over():
            return None
        waiting = [opened for opened in self._open.values() if opened.waiting]
        if not waiting:
            trial = self._trials.ask(self._tune.trials)
            if trial is None:
                return None
            self._begin(trial)
            return self._next()
        opened = waiting[0]
        member = opened.waiting.popleft()
        return member, self._request_of(member)

    def _request_of(self, member: Member) -> TrainingRequest:
        """Return the request of a run. If sizes are searched, it builds a program of its own."""
        request = super()._request_of(member)
        if not self._has_sizes:
            return request
        if request.resume is not None:
            return replace(request, built=None, experiment=None, task=None)
        task, settings = self._group.content.gymnasium, request.settings
        if task is not None:
            task, settings = resized(task, settings)
        return replace(request, built=None, task=task, settings=settings)

    def _reported(self, member: Member) -> None:
        """Prune a trial if the storage finds it hopeless by the steps that all its runs have."""
        opened = self._open[member.name.variant]
        if opened.is_pruned or self._is_over():
            return
        each = [member.evaluations for member in opened.members]
        steps = set.intersection(*map(set, each))
        values = {step: statistics.fmean(one[step] for one in each) for step in steps}
        if self._trials.report(opened.trial, values):
            opened.is_pruned = True
            opened.waiting.clear()
            self._runs.stop(opened.members)

    def _ended(self, member: Member) -> None:
        opened = self._open[member.name.variant]
        is_lost = member.was_killed or member.exit_code == BoardError.exit_code
        of_all = {kind.exit_code: kind for kind in (FileError, UsageError)}
        if member.state == FAILED and member.exit_code in of_all:
            self._error = of_all[member.exit_code](member.error)
            self._runs.pause("a run cannot be trained: pausing")
            member.look(None)
        elif member.state == FAILED and is_lost and opened.kills < MAX_KILLS:
            opened.kills += 1
            member.error, member.exit_code = "", 0
            member.look(None)
            if not opened.is_pruned:
                opened.waiting.append(member)
        elif member.state != FAILED:
            member.look(None)
        self._settle(opened)

    def _settle(self, opened: OpenTrial) -> None:
        """Write the outcome of a trial to the storage, once it is known."""
        members = opened.members
        if opened.waiting or any(member.is_running for member in members):
            return
        if all(member.state == FINISHED for member in members):
            value = statistics.fmean(member.return_mean for member in members)
            self._trials.tell(opened.trial, COMPLETE, value)
        elif any(member.state == FAILED for member in members):
            self._trials.tell(opened.trial, HAS_FAILED)
        elif opened.is_pruned:
            self._trials.tell(opened.trial, WAS_PRUNED)
            for member in members:
                member.state = member.state if member.state == FINISHED else PRUNED
        else:
            return  # it was paused
        del self._open[opened.trial.name]
        with contextlib.suppress(DiskError):  # the runs and the storage count
            self._update("training")

    def _is_over(self) -> bool:
        """Return True if the time limit has passed; the runs in training are paused then."""
        if self._timeout_s is None or time.monotonic() - self._began < self._timeout_s:
            return False
        self._runs.pause("the time is over: pausing")
        return True

    # -- the end -----------------------------------------------------------------------------------

    @property
    def _resume_command(self) -> str:
        storage = ["--storage", self._tune.storage] if self._tune.storage else []
        return command_line("tune", "--resume", near_path(self._group.path), *storage)

    def _result(self) -> TuneDocument:
        finished = self._trials.finished()
        is_complete = not self._open and len(finished) >= self._tune.trials
        self._update("finished" if is_complete else "paused")
        if self._error is not None:
            raise type(self._error)(f"{self._error}; go on with `{self._resume_command}`")
        if not is_complete and self._interruption.requested:
            raise self._interrupted(f"paused: {len(finished)} of {self._tune.trials} trials done")
        return self._document()

    def _document(self) -> TuneDocument:
        finished = self._trials.finished()
        settings = {each.name: list(each.settings) for each in self._group.variants}
        trials: list[TrialDocument] = [
            {
                "trial": number,
                "state": state,
                "value": None if math.isnan(value) else value,
                "settings": settings.get(f"t{number}", []),
            }
            for number, (state, value) in sorted(finished.items())
        ]
        complete = [each for each in trials if each["state"] == COMPLETE and each["settings"]]
        best = max(complete, key=lambda each: each["value"] or 0.0, default=None)
        is_finished = self._group.content.state == "finished"
        if best is not None:
            best = {**best, "run": str(self._group.path / f"t{best['trial']}")}
        return {
            **super()._document(),
            "of": self._tune.trials,
            "study": self._tune.study,
            "trials": trials,
            "elsewhere": self._trials.elsewhere(),
            "prepared_s": self._prepared_s,
            "compiling_s": sum(member.compiling_s for member in self._members),
            "best": best,
            "command": self._best(best),
            "resume": None if is_finished else self._resume_command,
        }

    def _best(self, best: TrialDocument | None) -> str | None:
        """Return the command that trains with the best trial's settings."""
        if best is None:
            return None
        content = self._group.content
        settings, what = tuple(best["settings"]), [content.experiment]
        if content.gymnasium is not None:
            task, settings = resized(content.gymnasium, settings)
            what = task.words
        options = ["--board", content.board]
        options += ["--steps", str(content.steps)] if content.steps else []
        for setting in (*content.settings, *settings):
            options += ["--set", setting]
        return command_line("train", *what, *options)
