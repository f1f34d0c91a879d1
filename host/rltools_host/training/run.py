"""Carries out a training run: starts the board, watches it learn, brings the result fetched."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rltools_host.boards.file_parts import Keeping, remove_parts
from rltools_host.boards.messages import Evaluation, Event, Identity, Result, State, StatusText
from rltools_host.boards.session import BoardSession
from rltools_host.build import cmake
from rltools_host.errors import (
    DiskError,
    EnvironmentLostError,
    Interrupted,
    LinkLostError,
    TrainingFaultError,
)
from rltools_host.interruption import SIGNALS, Interruption
from rltools_host.runs import saves
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import folder_date, new_run_path, timestamp
from rltools_host.runs.provenance import Sources, checkpoint_versions
from rltools_host.training import faults
from rltools_host.training.board import (
    BestPolicy,
    build_program,
    changes_of_state,
    fetch,
    metadata_at_start,
    open_board,
    put_on_board,
    summary,
    view_of,
)
from rltools_host.training.endings import paused, remedy, state_after, stopped_by_disk
from rltools_host.training.held_run import held_step, unheard
from rltools_host.training.metrics_log import EpisodeNotes, ReportLog, last_evaluation
from rltools_host.training.plan import Plan, TrainingRequest, open_plan
from rltools_host.training.progress import Screen, TrainingView
from rltools_host.training.training_time import (
    TimeInTraining,
    share_of_evaluations,
    train_s_before,
)
from rltools_host.tree import near_path

# What a run may lose by a failure of the power: so long in training it is not saved.
SAVE_EVERY_S = 600.0


def train(
    request: TrainingRequest,
    make_screen: Callable[[TrainingView], Screen],
    tensorboard: bool = True,
    signals: Sequence[int] = SIGNALS,
) -> dict[str, Any]:
    """Trains as the request says; returns the keys that `rlt train --json` prints. `signals` pause
    it; Ctrl-C quits where it is not one of them."""
    with open_plan(request) as plan:
        if request.built is None:
            build_program(plan)
        link = open_board(plan)
        with contextlib.closing(link), Interruption(signals) as interruption:
            address = plan.board.address
            session, identity = BoardSession.connect(link, cmake.load_dialect(), address)
            if plan.server is not None:  # the board is silent while an environment takes its time
                session.connection.is_excused = plan.server.is_awaited
            description, board = plan.description, plan.board.name
            session.node.require(
                identity, description.name, description.fingerprint, board, plan.load_command
            )
            plan.held_step = held_step(session, identity, plan)
            run = TrainingRun(plan, session, identity, interruption)
            return run.train(make_screen, tensorboard)


class TrainingRun:
    """One session of training: from start or resumption to the end, a pause or an accident."""

    def __init__(
        self,
        plan: Plan,
        session: BoardSession,
        identity: Identity,
        interruption: Interruption,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._session = session
        self._identity = identity
        self._interruption = interruption
        self._clock = clock
        self._time = TimeInTraining(clock)
        self._train_s_before = 0.0
        self._evaluation_s = 0.0  # of the time in training, up to the last save
        self._saves = saves.SavesOnTheWay()
        self._asked_to_pause = False
        self._counter = self._counted_before = 0
        self._evaluation: Evaluation | None = None
        self._best = BestPolicy()
        self._training_began: str | None = None
        self._metric_names = [metric.name for metric in plan.description.metrics]
        self._notes = EpisodeNotes(plan.server)
        self._reports: ReportLog
        self._screen: Screen
        self._folder: RunFolder

    def train(
        self, make_screen_of: Callable[[TrainingView], Screen], tensorboard: bool
    ) -> dict[str, Any]:
        """Trains to the end; every way out leaves a valid run folder."""
        plan = self._plan
        self._folder = self._open_folder()
        try:
            first = plan.first_step + 1 if plan.resumed else None
            self._reports = ReportLog(
                self._folder, self._metric_names, tensorboard, first, plan.searchable, plan.wandb
            )
            view = view_of(plan, self._folder, self._clock, self._metric_names)
            self._screen = make_screen_of(view)
            try:
                result = self._train_to_rest(view)
                self._save(result, "finished" if result.finished else "paused")
                self._reports.flush()  # in place of the save before there may be room
                if result.finished and self._reports.is_written:
                    self._reports.disk_error = None
            finally:
                self._screen.close()
        except BaseException as error:
            raise self._end_badly(error) from None
        finally:
            if hasattr(self, "_reports"):
                self._reports.close()
            self._folder.close()
        if self._reports.disk_error is not None:
            raise stopped_by_disk(self._plan, self._folder, self._reports.disk_error, result)
        if not result.finished:
            raise paused(plan, self._folder, result, self._notes.failure(), self._document(result))
        return self._document(result)

    def _train_to_rest(self, view: TrainingView) -> Result:
        """Starts or goes on, and takes in what the board reports until it is at rest."""
        session, plan = self._session, self._plan
        result = self._take_up(view) if plan.held_step is not None else None
        result = result or self._begin(view)
        while not self._is_to_rest(result) and (self._asked_to_pause or result.is_best):
            if self._asked_to_pause or self._is_save_due():
                began = self._clock()
                self._save(result, "training")
                self._saves.saved(self._time.seconds, self._clock() - began)
                self._asked_to_pause = False
            else:
                self._best.fetch(session, result)
            session.training.resume(self._best.largest)
            result = self._watch(view)
        return result

    def _begin(self, view: TrainingView) -> Result:
        """From the beginning, or from the run's save."""
        session, plan = self._session, self._plan
        if (checkpoint := faults.checkpoint_to_put(plan)) is not None:
            put_on_board(session, checkpoint, self._transfer)
            self._screen.activity("")
        session.parameters.set(plan.table, plan.hyperparameters)
        self._folder.update(self._changes("training"))
        begin = session.training.start if plan.checkpoint is None else session.training.resume
        begin(self._best.largest)
        self._note_beginning()
        if plan.checkpoint is not None:
            self._take_all(self._notes.of_resumption(faults.note_of_resumption(plan)))
        return self._watch(view)

    def _note_beginning(self) -> None:
        """From now on run.json says that the board has this state."""
        self._training_began = timestamp("milliseconds")
        with contextlib.suppress(DiskError):  # training goes on without
            self._folder.update(self._changes("training"))
        self._interruption.armed = True

    def _take_up(self, view: TrainingView) -> Result | None:
        """What the board has of the run is saved first; then it goes on. None where that is less
        than the run's save."""
        plan, training = self._plan, self._session.training
        self._note_beginning()
        result = training.result() if self._identity.state != State.TRAINING else None
        if result is None:
            self._asked_to_pause = True
            training.pause()
            result = self._watch(view)
        self._take(result)
        if self._identity.counts_instructions:
            self._counted_before = sum(
                session.guest_instructions or 0 for session in self._folder.content.sessions
            )
        else:  # by the board's clock, as nobody watched
            board_s = result.counter / 1e6 - self._time.seconds
            self._train_s_before = max(self._train_s_before, board_s)
        rows = self._folder.truncate_metrics(min(result.step, plan.first_step))
        self._best.take_rows(rows)
        if plan.checkpoint is not None and result.step < plan.checkpoint.step:
            plan.held_step = None
            return None
        for event in unheard(self._session, result, rows):
            self._take(event)
        if result.finished and plan.steps <= self._folder.content.steps:
            return result
        self._save(result, "training")
        self._asked_to_pause = False
        self._session.parameters.set(plan.table, plan.hyperparameters)
        training.resume(self._best.largest)
        return self._watch(view)

    def _watch(self, view: TrainingView) -> Result:
        """The board trains from now on: takes in what it reports, to its result."""
        self._time.go_on()
        view.begin()
        for event in self._session.training.events(self._idle, gather=self._gather):
            self._time.look()
            self._take(event)
            if isinstance(event, Result):
                self._time.rest()
                view.end()
                self._take_all(self._notes.new())
                self._reports.flush()
                return event
        raise AssertionError("events end with a result")

    def _is_to_rest(self, result: Result) -> bool:
        """Whether the board is at rest for another reason than to be saved on the way."""
        stops = self._interruption.requested or self._reports.disk_error is not None
        return bool(result.finished or stops or self._notes.failure())

    def _save(self, result: Result, state: str) -> None:
        """Fetches checkpoint and policies, verifies them, and saves them in one step."""
        self._evaluation_s = self._time.seconds * share_of_evaluations(result)
        versions = checkpoint_versions(self._folder.content)
        keeping = Keeping(self._folder.path, result.state_sha256)
        fetched = fetch(self._session, self._plan, result, versions, self._transfer, keeping)
        self._best.fetch(self._session, result, fetched.policy)
        self._screen.activity("")
        changes = self._changes(state) | self._best.changes
        changes["checkpoint_train_s"] = changes["train_s"]
        files = {**fetched.files, **self._best.files}
        self._folder.commit(fetched.step, fetched.state_sha256, files, changes)
        remove_parts(self._folder.path)

    def _transfer(self, what: str) -> Callable[[int, int], None]:
        return lambda done, whole: self._screen.activity(what, done / whole if whole else 1.0)

    # -- reports -----------------------------------------------------------------------------------

    def _idle(self) -> None:
        """Between the board's reports, at least five times a second."""
        self._take_all(self._notes.new())
        self._reports.flush()
        self._screen.refresh()
        if self._interruption.requested and not self._screen.view.activity:
            self._screen.activity("pausing; Ctrl-C once more quits without saving")
        has_to = self._interruption.requested or self._reports.disk_error is not None
        # Not an emulated board: a run takes the same number of instructions each time.
        is_due = self._is_save_due() and not self._identity.counts_instructions
        if not self._asked_to_pause and (has_to or is_due):
            self._asked_to_pause = True
            # A board that refuses does not train any more: why, its reports say.
            with contextlib.suppress(TrainingFaultError):
                self._session.training.pause()

    def _is_save_due(self) -> bool:
        return self._saves.is_due(self._time.seconds, SAVE_EVERY_S)

    def _gather(self, longest_s: float) -> None:
        """Lets reports come, but not beyond the end of training as far as that can be foreseen."""
        left_s = self._screen.view.left_s
        if self._interruption.requested or not left_s > 0.0:  # also where it is not a number
            return
        time.sleep(min(longest_s, left_s))

    def _take_all(self, texts: Sequence[StatusText]) -> None:
        for text in texts:
            self._take(text)

    def _take(self, event: Event) -> None:
        if isinstance(event, Result):
            self._counter = event.counter
            self._screen.view.reach(event.step)
            return
        self._screen.take(event)
        if not isinstance(event, StatusText):
            self._counter = event.counter
        if isinstance(event, Evaluation):
            self._evaluation = event
            self._saves.evaluated()
            self._best.take(event)
        time_s = self._train_s_before + self._time.seconds
        self._reports.take(event, self._screen.view.step, time_s)

    # -- the run folder ----------------------------------------------------------------------------

    def _open_folder(self) -> RunFolder:
        plan = self._plan
        sources = plan.sources
        assert sources is not None
        if plan.resumed is None:
            name = f"{folder_date()}-{plan.description.name}-{plan.board.name}"
            path = plan.out or new_run_path(f"{name}-s{plan.seed}")
            metadata = self._beginning({"started": timestamp()}, sources)
            return RunFolder.create(path, metadata, [sources], plan.anew)
        folder = plan.resumed
        folder.lock()
        try:
            folder.require_unchanged()
            saves.remove_partials(folder.path)
            if plan.save is not None:
                self._best.restore(plan.save, folder.read_metrics())
            rows = folder.truncate_metrics(plan.first_step)
            self._evaluation = last_evaluation(rows)
            self._train_s_before = train_s_before(folder.content, plan.first_step, rows)
            folder.keep(*sources)
            beginning = self._beginning(folder.metadata, sources)
            folder.update(beginning | plan.adopted_save | self._best.changes)
        except BaseException:
            folder.close()
            raise
        return folder

    def _beginning(self, earlier: dict[str, Any], sources: Sources) -> dict[str, Any]:
        port = self._session.description
        return metadata_at_start(self._plan, self._identity, port, sources.name, earlier)

    def _changes(self, state: str) -> dict[str, Any]:
        """What run.json says of the state of training, with what is known by now."""
        connection = self._session.connection
        this_session: dict[str, Any] = {
            "last_step": self._screen.view.step,
            "train_s": self._time.seconds,
            "evaluation_s": self._evaluation_s,
            "host_cpu_s": self._time.cpu_s,
            "messages_lost": connection.messages_lost,
            "bytes_skipped": connection.decoder.bytes_skipped,
        }
        if self._training_began is not None:
            this_session["training_began"] = self._training_began
        if self._identity.counts_instructions:
            this_session["guest_instructions"] = max(0, self._counter - self._counted_before)
        this_session |= self._notes.of_session()
        return changes_of_state(
            self._folder.metadata,
            state,
            self._screen.view.step,
            self._train_s_before + self._time.seconds,
            self._evaluation,
            this_session,
        )

    # -- the end -----------------------------------------------------------------------------------

    def _end_badly(self, error: BaseException) -> BaseException:
        """Keeps what was received, notes how the run ended, and makes the error's sentence."""
        with contextlib.suppress(DiskError):
            for event in self._session.training.remaining_events():
                if not isinstance(event, Result):
                    self._take(event)
            self._reports.flush()
        if not hasattr(self, "_screen"):
            return error
        changes = self._changes(state_after(error))
        if isinstance(error, TrainingFaultError):
            changes["sessions"][-1]["fault"] = error.cause or str(error)
        with contextlib.suppress(DiskError):
            self._folder.update(changes)
        step = self._screen.view.step
        kept = f"the data received up to step {step:,} is in {near_path(self._folder.path)}"
        if isinstance(error, KeyboardInterrupt):
            return Interrupted(f"quit without a new checkpoint; {kept}{self._remedy('; ')}")
        if isinstance(error, DiskError):
            return error.then(self._remedy() or "start a new run, as this one saved nothing", kept)
        if isinstance(error, LinkLostError | TrainingFaultError):
            lost = self._notes.failure()
            kind = EnvironmentLostError if lost else type(error)
            why = f"{lost or error}{faults.suspicion(self._plan, error, self._notes.outside)}"
            clause = self._remedy("; ", faults.smaller_steps(self._plan, error, step))
            return kind(f"{why}; {kept}{clause}")
        return error

    def _remedy(self, before: str = "", changes: Mapping[str, float] | None = None) -> str:
        has_begun = self._training_began is not None
        return remedy(self._plan, self._folder, before, changes, has_begun=has_begun)

    def _document(self, result: Result) -> dict[str, Any]:
        printed = summary(self._plan, self._folder, result)
        return {**printed, "host_cpu_s": self._time.cpu_s, **self._notes.document()}
