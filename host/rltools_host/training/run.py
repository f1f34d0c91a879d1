"""Carries out a training run: starts the board, watches it learn, brings the result home."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from types import FrameType
from typing import Any

from rltools_host.boards import discovery
from rltools_host.build import firmware, memory, protocol
from rltools_host.clients.files import CHECKPOINT_PATH, POLICY_PATH
from rltools_host.clients.messages import (
    Evaluation,
    Event,
    Identity,
    Result,
    StatusText,
    TrainingProgress,
)
from rltools_host.clients.session import BoardSession
from rltools_host.errors import (
    BoardMismatchError,
    DiskError,
    Interrupted,
    LinkLostError,
    PortError,
    TrainingFaultError,
    VerificationError,
)
from rltools_host.files import write_atomically
from rltools_host.hints import near_path
from rltools_host.link.transport import DEFAULT_BAUD, Link, ProcessLink, open_link
from rltools_host.runs.checkpoint import Checkpoint, build_image, parse_image, save_checkpoint
from rltools_host.runs.folder import RunFolder, new_run_path
from rltools_host.runs.provenance import (
    checkpoint_versions,
    git_revision,
    machine,
    package_versions,
    timestamp,
)
from rltools_host.runs.tensorboard_log import TensorBoardLog
from rltools_host.training.plan import DEFAULT_BOARD, Plan, TrainingRequest, make_plan
from rltools_host.training.view import Screen, TrainingView

EMULATOR_LIMIT_S = 6 * 3600.0
RUN_FORMAT = 1


def train(
    request: TrainingRequest,
    make_screen: Callable[[TrainingView], Screen],
    tensorboard: bool = True,
) -> dict[str, Any]:
    """Trains as the request says; returns the keys that `rlt train --json` prints."""
    plan = make_plan(request)
    if not plan.board.is_flashed:
        plan.program = firmware.build_firmware(plan.board, plan.description.name)
    link = open_board(plan)
    with contextlib.closing(link), Interruption() as interruption:
        session, identity = BoardSession.connect(link, protocol.load_dialect(), plan.board.address)
        description = plan.description
        session.node.require(
            identity, description.name, description.fingerprint, plan.board.name, plan.load_command
        )
        return TrainingRun(plan, session, identity, interruption).train(make_screen, tensorboard)


# -- the board ---------------------------------------------------------------------------------


def open_board(plan: Plan) -> Link:
    """A link to the given port, a new process or emulator, or the board that is connected."""
    board, program = plan.board, plan.program
    if plan.port is not None:
        return open_link(plan.port, board.link.baud or DEFAULT_BAUD)
    if program is not None and board.link.kind == "process":
        return ProcessLink([str(program)], f"the program of board {board.name}")
    if program is not None and board.emulator is not None:
        from rltools_host.boards.emulator import Emulator
        from rltools_host.link.emulated import EmulatedLink

        return EmulatedLink(Emulator(board, program, EMULATOR_LIMIT_S), board.name)
    ports = discovery.find_connected(board)
    if not ports:
        raise PortError(
            f"no {board.name} is connected: plug it in and `rlt flash {board.name} "
            f"{plan.description.name}`, or train on an emulated board with --board {DEFAULT_BOARD}"
        )
    if len(ports) > 1:
        raise PortError(
            f"several boards {board.name} are connected ({', '.join(ports)}): "
            "choose one with --port"
        )
    return open_link(ports[0], board.link.baud or DEFAULT_BAUD)


class Interruption:
    """Ctrl-C, or SIGTERM: the first asks for a pause, the second ends at once."""

    def __init__(self) -> None:
        self.armed = False  # before training there is nothing to pause
        self.requested = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not the main thread: signals stay as they are
                self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _on_signal(self, *_: int | FrameType | None) -> None:
        if self.requested or not self.armed:
            for number in self._previous:  # cleaning up takes a moment and must not be cut short
                signal.signal(number, signal.SIG_IGN)
            raise KeyboardInterrupt
        self.requested = True


# -- training ----------------------------------------------------------------------------------


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
        self._began = clock()
        self._train_s = 0.0
        self._train_s_before = 0.0
        self._host_cpu_s = 0.0  # what this process took of its core while the board trained
        self._counter = 0
        self._evaluation: Evaluation | None = None
        self._rows: list[dict[str, Any]] = []
        self._log: TensorBoardLog | None = None
        self._screen: Screen
        self._folder: RunFolder

    def train(
        self, make_screen_of: Callable[[TrainingView], Screen], tensorboard: bool
    ) -> dict[str, Any]:
        """Trains to the end; every way out leaves a valid run folder."""
        plan = self._plan
        self._folder = self._open_folder()
        try:
            if tensorboard:
                first = plan.first_step + 1 if plan.resumed else None
                self._log = TensorBoardLog(self._folder.path, first)
            view = self._make_view()
            self._screen = make_screen_of(view)
            try:
                result = self._train_to_rest(view)
                self._bring_home(result)
            finally:
                self._screen.close()
        except BaseException as error:
            raise self._end_badly(error) from None
        finally:
            if self._log is not None:
                self._log.close()
            self._folder.close()
        if not result.finished:
            raise self._paused(result)
        return self._document(result)

    def _train_to_rest(self, view: TrainingView) -> Result:
        """Starts or goes on, and takes in what the board reports until it is at rest."""
        session, plan = self._session, self._plan
        if plan.checkpoint is not None:
            self._restore(plan.checkpoint)
        session.parameters.set(plan.table, plan.hyperparameters)
        self._set_state("training")
        if plan.checkpoint is not None:
            session.training.resume()
        else:
            session.training.start()
        self._began = self._clock()
        self._folder.metadata["sessions"][-1]["training_began"] = timestamp("milliseconds")
        view.begin()
        cpu_began = time.process_time()
        self._interruption.armed = True
        for event in session.training.events(self._idle, gather=self._gather):
            self._train_s = self._clock() - self._began
            self._take(event)
            if isinstance(event, Result):
                view.end()
                self._host_cpu_s = time.process_time() - cpu_began
                self._flush()
                return event
        raise AssertionError("events end with a result")

    def _restore(self, checkpoint: Checkpoint) -> None:
        """Puts the checkpoint on the board, which must then state its hash."""
        image = build_image(checkpoint.fingerprint, checkpoint.step, checkpoint.payload)
        self._session.training.upload_checkpoint(image, self._transfer("sending the checkpoint"))
        self._screen.activity("")
        stated = self._session.training.result()
        if (stated.state_sha256, stated.step) != (checkpoint.state_sha256, checkpoint.step):
            raise VerificationError(
                f"the board on {self._session.description} holds step {stated.step} with hash "
                f"{stated.state_sha256[:16]}… instead of the checkpoint's step {checkpoint.step} "
                f"with {checkpoint.state_sha256[:16]}…: try again"
            )

    def _bring_home(self, result: Result) -> None:
        """Fetches checkpoint and policy, verifies and saves them."""
        session, folder, description = self._session, self._folder, self._plan.description
        image = session.files.download(CHECKPOINT_PATH, self._transfer("fetching the checkpoint"))
        policy = session.files.download(POLICY_PATH, self._transfer("fetching the policy"))
        self._screen.activity("")
        parsed = parse_image(image, session.description)
        checkpoint = Checkpoint(
            experiment=description.name,
            fingerprint=parsed.fingerprint,
            step=parsed.step,
            payload=parsed.payload,
            hyperparameters=self._plan.hyperparameters,
            versions=checkpoint_versions(folder.metadata),
        )
        if (checkpoint.state_sha256, parsed.step) != (result.state_sha256, result.step):
            raise VerificationError(
                f"the checkpoint from {session.description} has step {parsed.step} and hash "
                f"{checkpoint.state_sha256[:16]}…, the board stated step {result.step} and "
                f"{result.state_sha256[:16]}…: train again"
            )
        if parsed.fingerprint != description.fingerprint:
            raise BoardMismatchError(
                f"the checkpoint from {session.description} has fingerprint "
                f"{parsed.fingerprint:08x}, the experiment {description.fingerprint:08x}: "
                f"{self._plan.load_command}"
            )
        save_checkpoint(folder.checkpoint_path, checkpoint, description.tensors)
        write_atomically(folder.policy_path, policy)
        folder.metadata["state_sha256"] = result.state_sha256
        folder.metadata["checkpoint_step"] = result.step
        self._set_state("finished" if result.finished else "paused")

    def _transfer(self, what: str) -> Callable[[int, int], None]:
        return lambda done, whole: self._screen.activity(what, done / whole if whole else 1.0)

    # -- reports -----------------------------------------------------------------------------------

    def _idle(self) -> None:
        """Between the board's reports, at least five times a second."""
        self._flush()
        self._screen.refresh()
        if self._interruption.requested and not self._screen.view.activity:
            self._screen.activity("pausing; Ctrl-C once more quits without saving")
            self._session.training.pause()

    def _gather(self, longest_s: float) -> None:
        """Lets reports come, but not beyond the end of training as far as that can be foreseen."""
        left_s = self._screen.view.left_s
        if self._interruption.requested or not left_s > 0.0:  # also where it is not a number
            return
        time.sleep(min(longest_s, left_s))

    def _take(self, event: Event) -> None:
        if isinstance(event, Result):
            self._counter = event.counter
            self._screen.view.reach(event.step)
            return
        self._screen.take(event)
        row: dict[str, Any] = {"time_s": round(self._train_s_before + self._train_s, 6)}
        if isinstance(event, StatusText):
            step = self._screen.view.step
            row |= {"kind": "event", "step": step, "severity": event.severity, "text": event.text}
        elif isinstance(event, Evaluation):
            self._counter = event.counter
            self._evaluation = event
            row |= {"kind": "evaluation", **vars(event)}
        else:
            self._counter = event.counter
            row |= {"kind": "progress", **vars(event)}
        self._rows.append(row)
        if self._log is not None:
            self._log.add(*scalars_of(event, row["step"]))

    def _flush(self) -> None:
        """Writes what has come to metrics.jsonl and the TensorBoard log."""
        if self._rows:
            rows, self._rows = self._rows, []
            self._folder.append_metrics(rows)
        if self._log is not None:
            self._log.flush()

    # -- the run folder ----------------------------------------------------------------------------

    def _open_folder(self) -> RunFolder:
        plan = self._plan
        if plan.resumed is None:
            name = f"{datetime.now():%Y%m%d-%H%M%S}-{plan.description.name}-{plan.board.name}"
            path = plan.out or new_run_path(f"{name}-s{plan.seed}")
            return RunFolder.create(path, self._provenance({"started": timestamp()}))
        folder = plan.resumed
        folder.lock()
        try:
            self._train_s_before = float(folder.metadata.get("checkpoint_train_s") or 0.0)
            self._evaluation = last_evaluation(folder.truncate_metrics(plan.first_step))
            folder.metadata = self._provenance(folder.metadata)
            folder.save()
        except BaseException:
            folder.close()
            raise
        return folder

    def _provenance(self, earlier: dict[str, Any]) -> dict[str, Any]:
        """What run.json says before training begins; `earlier` is what it says already."""
        plan = self._plan
        this_session = {
            "started": timestamp(),
            "board": plan.board.name,
            "port": self._session.description,
            "first_step": plan.first_step,
            "revision": self._identity.revision,
        }
        return earlier | {
            "format": RUN_FORMAT,
            "experiment": plan.description.name,
            "algorithm": plan.description.algorithm,
            "environment": plan.description.environment["name"],
            "fingerprint": f"{plan.description.fingerprint:08x}",
            "board": plan.board.name,
            "seed": plan.seed,
            "steps": plan.steps,
            "hyperparameters": plan.hyperparameters,
            **git_revision(),
            "identity": asdict(self._identity),
            "host": machine(),
            "versions": package_versions(),
            "memory": memory.memory_usage(plan.board, plan.program) if plan.program else [],
            "sessions": [*(earlier.get("sessions") or []), this_session],
            "state": "starting",
        }

    def _make_view(self) -> TrainingView:
        plan = self._plan
        view = TrainingView(
            plan.description.name,
            plan.board.name,
            plan.seed,
            plan.steps,
            self._folder.path,
            plan.first_step,
            self._clock,
        )
        if plan.resumed is not None:
            for row in plan.resumed.read_metrics():
                view.take_row(row)
        return view

    def _set_state(self, state: str) -> None:
        """Writes run.json with what is known by now."""
        metadata, session = self._folder.metadata, self._session
        step = self._screen.view.step
        train_s = self._train_s_before + self._train_s
        latest = metadata["sessions"][-1]
        latest |= {
            "last_step": step,
            "train_s": self._train_s,
            "host_cpu_s": self._host_cpu_s,
            "messages_lost": session.connection.messages_lost,
            "bytes_skipped": session.connection.decoder.bytes_skipped,
        }
        if self._identity.counts_instructions:
            latest["guest_instructions"] = self._counter
        if state != "training":
            latest["ended"] = metadata["ended"] = timestamp()
        metadata |= {
            "state": state,
            "step": step,
            "train_s": train_s,
            "steps_per_s": step / train_s if train_s > 0 else None,
            "messages_lost": sum(s.get("messages_lost", 0) for s in metadata["sessions"]),
        }
        if state in ("finished", "paused"):
            metadata["checkpoint_train_s"] = metadata["train_s"]
        if self._evaluation is not None:
            metadata["return_mean"] = self._evaluation.return_mean
            metadata["return_std"] = self._evaluation.return_std
        metadata["guest_instructions"] = guest_instructions(metadata["sessions"])
        self._folder.save()

    # -- the end -----------------------------------------------------------------------------------

    def _end_badly(self, error: BaseException) -> BaseException:
        """Keeps what was received, notes how the run ended, and makes the error's sentence."""
        with contextlib.suppress(DiskError):
            for event in self._session.training.remaining_events():
                if not isinstance(event, Result):
                    self._take(event)
            self._flush()
        states: list[tuple[type[BaseException], str]] = [
            (LinkLostError, "link lost"),
            (TrainingFaultError, "fault"),
            (KeyboardInterrupt, "interrupted"),
        ]
        state = next((name for kind, name in states if isinstance(error, kind)), "failed")
        if not hasattr(self, "_screen"):
            return error
        with contextlib.suppress(DiskError):
            self._set_state(state)
        step = self._screen.view.step
        kept = f"what was received up to step {step:,} is in {near_path(self._folder.path)}"
        if isinstance(error, KeyboardInterrupt):
            return Interrupted(f"quit without a new checkpoint; {kept}{self._remedy()}")
        if isinstance(error, LinkLostError | TrainingFaultError):
            return type(error)(f"{error}; {kept}{self._remedy()}")
        return error

    def _remedy(self) -> str:
        if not self._folder.checkpoint_path.is_file():
            return ""
        step = self._folder.metadata.get("checkpoint_step", 0)
        return f"; go on from step {step:,} with `{self._plan.resume_command(self._folder.path)}`"

    def _paused(self, result: Result) -> Interrupted:
        command = self._plan.resume_command(self._folder.path)
        error = Interrupted(
            f"paused at step {result.step:,} of {self._plan.steps:,}, checkpoint saved; "
            f"go on with `{command}`"
        )
        error.details = self._document(result) | {"state": "paused", "resume": command}
        return error

    def _document(self, result: Result) -> dict[str, Any]:
        metadata = self._folder.metadata
        return {
            "run": str(self._folder.path),
            "experiment": self._plan.description.name,
            "board": self._plan.board.name,
            "seed": self._plan.seed,
            "steps": self._plan.steps,
            "step": result.step,
            "train_s": metadata["train_s"],
            "steps_per_s": metadata["steps_per_s"],
            "return_mean": metadata.get("return_mean"),
            "return_std": metadata.get("return_std"),
            "state_sha256": result.state_sha256,
            "host_cpu_s": self._host_cpu_s,
            "guest_instructions": metadata["guest_instructions"],
            "messages_lost": metadata["messages_lost"],
        }


def scalars_of(
    event: TrainingProgress | Evaluation | StatusText, step: int
) -> tuple[int, dict[str, float]]:
    """What TensorBoard plots of a report."""
    if isinstance(event, Evaluation):
        return step, {
            "evaluation/return_mean": event.return_mean,
            "evaluation/return_std": event.return_std,
            "evaluation/return_min": event.return_min,
            "evaluation/return_max": event.return_max,
        }
    if isinstance(event, TrainingProgress):
        return step, {
            "training/return": event.last_return,
            "training/best_return": event.best_return,
            "training/episodes": event.episodes,
            "loss/critic_1": event.critic_1_loss,
            "loss/critic_2": event.critic_2_loss,
            "loss/actor": event.actor_loss,
        }
    return step, {}


def last_evaluation(rows: Sequence[Mapping[str, Any]]) -> Evaluation | None:
    for row in reversed(rows):
        if row.get("kind") == "evaluation":
            return Evaluation(**{name: row[name] for name in Evaluation.__dataclass_fields__})
    return None


def guest_instructions(sessions: Sequence[Mapping[str, Any]]) -> int | None:
    """Instructions of all sessions; None where a board measured time instead."""
    counts = [session.get("guest_instructions") for session in sessions]
    if not counts or None in counts:
        return None
    return sum(int(count or 0) for count in counts)
