"""One session of training: start the board, take its reports, fetch and save the result."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from msgspec import structs, to_builtins

from rltools_host.boards.file_parts import Keeping, remove_parts
from rltools_host.boards.messages import Evaluation, Event, Identity, Result, State, StatusText
from rltools_host.boards.session import BoardSession
from rltools_host.build import cmake
from rltools_host.documents import typed
from rltools_host.errors import (
    DiskError,
    EnvironmentLostError,
    Interrupted,
    LinkLostError,
    RltError,
    TrainingFaultError,
)
from rltools_host.interruption import Interruption
from rltools_host.runs import saves
from rltools_host.runs.contents import Row, Run, RunDocument, StatedIdentity
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import folder_date, new_run_path, timestamp
from rltools_host.runs.provenance import Sources, checkpoint_versions
from rltools_host.system import SIGNALS
from rltools_host.training import faults
from rltools_host.training.board import (
    BestPolicy,
    build_program,
    fetch,
    open_board,
    origin_now,
    put_on_board,
    run_at_start,
    run_in_state,
    train_s_before,
    view_of,
)
from rltools_host.training.held_run import held_step, unheard
from rltools_host.training.metrics_log import (
    EpisodeNotes,
    ReportLog,
    evaluation_of,
    last_evaluation,
)
from rltools_host.training.plan import (
    Plan,
    TrainingRequest,
    lacks_evaluation,
    note_of_rate,
    open_plan,
    require_many,
)
from rltools_host.training.progress import Screen, TrainingView
from rltools_host.tree import near_path

# A run is saved at least this often: a power failure may cost so much time in training.
SAVE_EVERY_S = 600.0


def with_run_of_file(
    request: TrainingRequest,
) -> contextlib.AbstractContextManager[TrainingRequest]:
    """Return a context with the request; where it resumes a checkpoint file, it has a new run in
    place of the file."""
    if request.resume is None or not Path(request.resume).is_file():
        return contextlib.nullcontext(request)
    from rltools_host.training.file_runs import resumable  # with NumPy, which takes a while

    return resumable(request)


def train(
    request: TrainingRequest,
    make_screen: Callable[[TrainingView], Screen],
    signals: Sequence[int] = SIGNALS,
) -> RunDocument:
    """Train one run and return what `rlt train --json` prints.

    `signals` pause the run; Ctrl-C quits if it is not one of them.
    """
    with with_run_of_file(request) as request, open_plan(request) as plan:
        require_many(plan)
        if request.built is None:
            build_program(plan)
        link = open_board(plan)
        with contextlib.closing(link), Interruption(signals) as interruption:
            address = plan.board.address
            session, identity = BoardSession.connect(link, cmake.load_dialect(), address)
            if plan.server is not None:  # the board is silent while an environment takes its time
                session.connection.is_excused = plan.server.is_awaited
            description, board = plan.description, plan.board.firmware
            session.node.require(
                identity, description.name, description.fingerprint, board, plan.load_command
            )
            identity = replace(identity, has_counter=plan.board.has_counter)
            plan.held_step = held_step(session, identity, plan)
            run = TrainingRun(plan, session, identity, interruption)
            return run.train(make_screen)


def state_after(error: BaseException) -> str:
    """Return the state in run.json of a run that ended with this error."""
    if isinstance(error, LinkLostError):
        return "link lost"
    if isinstance(error, TrainingFaultError):
        return "fault"
    return "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"


class TimeInTraining:
    """The time of training in this session, and the processor time of this process."""

    def __init__(self) -> None:
        self._began = self._cpu_began = 0.0  # to train; the rests are left out by moving them
        self.seconds = 0.0  # by the last look
        self.cpu_s = 0.0  # of this process, by the last rest

    def start(self) -> None:
        """Start or continue the clock."""
        self._began = time.monotonic() - self.seconds
        self._cpu_began = time.process_time() - self.cpu_s

    def look(self) -> None:
        self.seconds = time.monotonic() - self._began

    def stop(self) -> None:
        """Stop the clock."""
        self.look()
        self.cpu_s = time.process_time() - self._cpu_began


class TrainingRun:
    """One session of training: from start or resumption to the end, a pause or an error."""

    def __init__(
        self, plan: Plan, session: BoardSession, identity: Identity, interruption: Interruption
    ) -> None:
        self._plan = plan
        self._session = session
        self._identity = identity
        self._interruption = interruption
        self._time = TimeInTraining()
        self._train_s_before = 0.0
        self._evaluation_s = 0.0  # of the time in training, up to the last save
        self._saves = saves.SavesOnTheWay()
        self._asked_to_pause = False
        self._counter = self._counted_before = 0
        self._evaluation: Evaluation | None = None
        self._best = BestPolicy()
        self._training_began: str | None = None
        self._rows_before: Sequence[Row] = ()  # of metrics.jsonl, up to the resumption
        self._metric_names = [metric.name for metric in plan.description.metrics]
        self._notes = EpisodeNotes(plan.server)
        self._reports: ReportLog
        self._screen: Screen
        self._folder: RunFolder

    def train(self, make_screen_of: Callable[[TrainingView], Screen]) -> RunDocument:
        """Train to the end; every way out leaves a valid run folder."""
        plan = self._plan
        self._folder = self._open_folder()
        try:
            first = plan.first_step + 1 if plan.resumed else None
            self._reports = ReportLog(
                self._folder,
                self._metric_names,
                plan.request.tensorboard is not False,
                first,
                plan.searchable,
                plan.request.wandb,
                self._rows_before,
            )
            view = view_of(plan, self._folder, self._metric_names)
            self._screen = make_screen_of(view)
            try:
                result = self._train_to_rest(view)
                self._save(result, "finished" if result.finished else "paused")
                self._reports.flush()  # the earlier save is gone, so there may be space
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
        if self._reports.disk_error is not None or not result.finished:
            raise self._stopped(result)
        return self._document(result)

    def _train_to_rest(self, view: TrainingView) -> Result:
        """Start or resume, and take reports until the board is at rest."""
        session, plan = self._session, self._plan
        result = self._take_up(view) if plan.held_step is not None else None
        result = result or self._begin(view)
        while not self._is_to_rest(result) and (self._asked_to_pause or result.is_best):
            if self._asked_to_pause or self._is_save_due():
                began = time.monotonic()
                self._save(result, "training")
                self._saves.saved(self._time.seconds, time.monotonic() - began)
                self._asked_to_pause = False
            else:
                self._best.fetch(session, result)
            session.training.resume(self._best.largest)
            result = self._watch(view)
        return result

    def _begin(self, view: TrainingView) -> Result:
        """Start the board, from the beginning or from the run's save."""
        session, plan = self._session, self._plan
        if (checkpoint := faults.checkpoint_to_put(plan)) is not None:
            put_on_board(session, checkpoint, self._transfer)
            self._screen.activity("")
        session.parameters.set(plan.table, plan.hyperparameters)
        self._folder.write(self._run_in("training"))
        if plan.checkpoint is None:
            session.training.start(self._best.largest)
        else:
            session.training.resume(self._best.largest, lacks_evaluation(plan, self._rows_before))
        self._note_beginning()
        if plan.checkpoint is not None:
            notes = (faults.note_of_resumption(plan), note_of_rate(plan))
            self._take_all(self._notes.of_resumption(*notes))
        return self._watch(view)

    def _note_beginning(self) -> None:
        """Write to run.json that the board has this state."""
        self._training_began = timestamp("milliseconds")
        with contextlib.suppress(DiskError):  # training continues without it
            self._folder.write(self._run_in("training"))
        self._interruption.armed = True

    def _take_up(self, view: TrainingView) -> Result | None:
        """Save what the board has of the run, and resume there; return None if that is less than
        the run's save."""
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
        for row in rows:  # the board may have kept the best policy of these
            if row["kind"] == "evaluation":
                self._best.take(evaluation_of(row))
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
        """Take the reports of the board while it trains, and return its result."""
        self._time.start()
        view.begin()
        for event in self._session.training.events(self._idle, gather=self._gather):
            self._time.look()
            self._take(event)
            if isinstance(event, Result):
                self._time.stop()
                view.end()
                self._take_all(self._notes.new())
                self._reports.flush()
                return event
        raise AssertionError("events end with a result")

    def _is_to_rest(self, result: Result) -> bool:
        """Return True if the session ends here: the board is not at rest just for a save."""
        stops = self._interruption.requested or self._reports.disk_error is not None
        return bool(result.finished or stops or self._notes.failure())

    def _save(self, result: Result, state: str) -> None:
        """Fetch the checkpoint and the policies, verify them, and save them in one step."""
        share = result.evaluation_counter / result.counter if result.counter else 0.0
        self._evaluation_s = self._time.seconds * min(1.0, share)
        versions = checkpoint_versions(self._folder.content)
        keeping = Keeping(self._folder.path, result.state_sha256)
        files = fetch(self._session, self._plan, result, versions, self._transfer, keeping)
        self._best.fetch(self._session, result, files[saves.POLICY_FILE])
        self._screen.activity("")
        run = self._run_in(state)
        run = structs.replace(run, best=self._best.best, checkpoint_train_s=run.train_s)
        files |= self._best.files
        self._folder.commit(result.step, result.state_sha256, files, run)
        remove_parts(self._folder.path)

    def _transfer(self, what: str) -> Callable[[int, int], None]:
        return lambda done, whole: self._screen.activity(what, done / whole if whole else 1.0)

    # -- reports -----------------------------------------------------------------------------------

    def _idle(self) -> None:
        """Handle what is due between the board's reports, at least five times a second."""
        self._time.look()
        self._take_all(self._notes.new())
        self._reports.flush()
        self._screen.refresh()
        if self._interruption.requested and not self._screen.view.activity:
            self._screen.activity("pausing; Ctrl-C once more quits without saving")
        has_to = self._interruption.requested or self._reports.disk_error is not None
        # Not for an emulated board, whose runs take the same number of instructions each time.
        is_due = self._is_save_due() and not self._identity.counts_instructions
        if not self._asked_to_pause and (has_to or is_due):
            self._asked_to_pause = True
            # A board that refuses does not train any more; its reports say why.
            with contextlib.suppress(TrainingFaultError):
                self._session.training.pause()

    def _is_save_due(self) -> bool:
        return self._saves.is_due(self._time.seconds, SAVE_EVERY_S)

    def _gather(self, longest_s: float) -> None:
        """Wait for reports, but not beyond the expected end of training."""
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
            path = plan.request.out or new_run_path(f"{name}-s{plan.seed}")
            run = self._run_at_start(Run(started=timestamp()), sources)
            return RunFolder.create(path, run, [sources], plan.request.restarts)
        folder = plan.resumed
        folder.lock()
        try:
            folder.require_unchanged()
            saves.remove_partials(folder.path)
            if plan.save is not None:
                self._best.restore(plan.save, folder.read_metrics())
            rows = self._rows_before = folder.truncate_metrics(plan.first_step)
            self._evaluation = last_evaluation(rows)
            self._train_s_before = train_s_before(folder.content, plan.first_step, rows)
            folder.keep(*sources)
            run = plan.with_resumed_save(self._run_at_start(folder.content, sources))
            folder.write(structs.replace(run, best=self._best.best))
        except BaseException:
            folder.close()
            raise
        return folder

    def _run_at_start(self, earlier: Run, sources: Sources) -> Run:
        port = self._session.description
        identity: StatedIdentity = typed(asdict(self._identity), StatedIdentity)
        return run_at_start(self._plan, identity, port, sources.name, earlier, origin_now())

    def _run_in(self, state: str, fault: str = "") -> Run:
        """Return run.json for this state of training, with what is known by now."""
        connection = self._session.connection
        session = structs.replace(
            self._folder.content.sessions[-1],
            last_step=self._screen.view.step,
            train_s=self._time.seconds,
            evaluation_s=self._evaluation_s,
            host_cpu_s=self._time.cpu_s,
            messages_lost=connection.messages_lost,
            bytes_skipped=connection.decoder.bytes_skipped,
            training_began=self._training_began or "",
            fault=fault,
        )
        if self._identity.counts_instructions and self._identity.has_counter:
            count = max(0, self._counter - self._counted_before)
            session = structs.replace(session, guest_instructions=count)
        return run_in_state(
            self._folder.content,
            state,
            self._screen.view.step,
            self._train_s_before + self._time.seconds,
            self._evaluation,
            self._notes.add_to(session),
        )

    # -- the end -----------------------------------------------------------------------------------

    def _stopped(self, result: Result) -> RltError:
        """Return the error of a run that is saved, but has not finished, or lacks reports."""
        command = self._plan.resume_command(self._folder.path)
        at = f"paused at step {result.step:,} of {self._plan.steps:,}, checkpoint saved"
        if (full := self._reports.disk_error) is not None:
            if result.finished:
                without = "the run has finished and is saved without its reports"
                return DiskError(f"{full.cause}; {without}")
            return full.then(f"go on with `{command}`", at)
        lost = self._notes.failure()
        kind = EnvironmentLostError if lost else Interrupted
        error: RltError = kind(f"{lost}{'; ' if lost else ''}{at}; go on with `{command}`")
        error.details = {**self._document(result), "state": "paused", "resume": command}
        return error

    def _end_badly(self, error: BaseException) -> BaseException:
        """Keep the data received, write to run.json how the run ended, and return the error with
        its remedy."""
        with contextlib.suppress(DiskError):
            for event in self._session.training.remaining_events():
                if not isinstance(event, Result):
                    self._take(event)
            self._reports.flush()
        if not hasattr(self, "_screen"):
            return error
        fault = (error.cause or str(error)) if isinstance(error, TrainingFaultError) else ""
        with contextlib.suppress(DiskError):
            self._folder.write(self._run_in(state_after(error), fault))
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
        """Return a clause with the command that resumes from the newest save, with these changes,
        or from the board's state; empty if there is neither."""
        plan, folder = self._plan, self._folder
        for save in saves.saves_to_resume(folder.path, folder.content):
            if (save / saves.CHECKPOINT_FILE).is_file():
                command = plan.resume_command(folder.path, changes)
                return f"{before}go on from step {saves.step_of(save):,} with `{command}`"
        if plan.is_lasting and self._training_began is not None:
            command = plan.resume_command(folder.path)
            return f"{before}as long as the board stays on, go on with `{command}`"
        return ""

    def _document(self, result: Result) -> RunDocument:
        plan, run = self._plan, self._folder.content
        document: RunDocument = {
            "run": str(self._folder.path),
            "experiment": plan.description.name,
            "environment": plan.description.environment["name"],
            "board": plan.board.name,
            "seed": plan.seed,
            "steps": plan.steps,
            "step": result.step,
            "updates": self._screen.view.updates,
            "train_s": run.train_s,
            "evaluation_s": run.evaluation_s,
            "steps_per_s": run.steps_per_s,
            "return_mean": run.return_mean,
            "return_std": run.return_std,
            "best": to_builtins(run.best),
            "state_sha256": result.state_sha256,
            "guest_instructions": run.guest_instructions,
            "messages_lost": run.messages_lost,
            "host_cpu_s": self._time.cpu_s,
        }
        self._notes.describe(document)
        return document
