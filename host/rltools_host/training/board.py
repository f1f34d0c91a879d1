"""The board of a plan: its program, its link, its training state and its best policy; and what
run.json says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from rltools_host.boards.board_link import open_board_link
from rltools_host.boards.file_parts import Keeping
from rltools_host.boards.file_transfer import (
    BEST_PATH,
    CHECKPOINT_PATH,
    LARGEST_FILE_BYTES,
    POLICY_PATH,
)
from rltools_host.boards.messages import Evaluation, Progress, Result
from rltools_host.boards.session import BoardSession
from rltools_host.boards.transport import Link
from rltools_host.build import experiments, firmware
from rltools_host.documents import typed
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    FileNotThereError,
    RefusedError,
)
from rltools_host.files import read_limited
from rltools_host.runs.checkpoint import (
    IMAGE_HEADER,
    Checkpoint,
    build_image,
    parse_image,
    to_safetensors,
)
from rltools_host.runs.contents import Best, Memory, Row, Run, Session, StatedIdentity
from rltools_host.runs.folder import RunFolder
from rltools_host.runs.names import timestamp
from rltools_host.runs.provenance import (
    git_revision,
    machine,
    package_versions,
    read_sources,
)
from rltools_host.runs.saves import (
    BEST_FILE,
    CHECKPOINT_FILE,
    MAX_POLICY_BYTES,
    POLICY_FILE,
    state_of_policy,
    step_of_policy,
)
from rltools_host.training.metrics_log import evaluation_of
from rltools_host.training.plan import DEFAULT_BOARD, Plan
from rltools_host.training.progress import TrainingView
from rltools_host.tree import PROJECT, command_line

INCLUDE_BESIDE = re.compile(r'^#include "(\.\./[^"]+)"', re.MULTILINE)


def build_program(plan: Plan) -> None:
    """Build the program of a plan, and read the sources that it is built from.

    The sources are read first: what is written while the compiler runs is not in the program. Nor
    is what was written while the experiment's description was compiled: Ninja goes by when a
    command began, and builds the program again.

    A board that is flashed, or that is behind --port, has its program already. Its sources are
    taken to be those of now, as the experiment's description here has its fingerprint. That of a
    GPU is built for what the GPU has (build/gpu.py).
    """
    name = plan.subject
    plan.sources = read_sources(generated_headers(name))
    if not (plan.board.is_flashed or plan.board.is_gpu):
        plan.program = firmware.build_firmware(plan.board, name)


def generated_headers(subject: str) -> list[str]:
    """Return the headers of a Gymnasium task, its experiment and its contract, relative to the
    project."""
    if not experiments.is_generated(subject):
        return []
    header = experiments.generated_header(subject)
    beside = INCLUDE_BESIDE.findall(header.read_text(encoding="utf-8"))
    headers = [header, *((header.parent / name).resolve() for name in beside)]
    return [str(header.relative_to(PROJECT.root)) for header in headers]


def open_board(plan: Plan) -> Link:
    """Open a link to the given port, to a new process or emulator, or to the connected board."""
    flash = command_line("flash", plan.board.name, plan.description.name)
    remedy = f"plug it in and `{flash}`, or train on this machine with --board {DEFAULT_BOARD}"
    socket = plan.server.address if plan.server is not None else None
    return open_board_link(
        plan.board,
        plan.request.port,
        plan.program,
        remedy,
        threads=plan.request.threads,
        environments=socket,
    )


Transfer = Callable[[str], Callable[[int, int], None]]  # what is on its way -> its progress


def put_on_board(session: BoardSession, checkpoint: Checkpoint, transfer: Transfer) -> None:
    """Send the checkpoint to the board; raise RefusedError unless it then states the same
    hash."""
    image = build_image(checkpoint.fingerprint, checkpoint.step, checkpoint.payload)
    session.training.upload_checkpoint(image, transfer("sending the checkpoint"))
    stated = session.training.result()
    if (stated.state_sha256, stated.step) != (checkpoint.state_sha256, checkpoint.step):
        raise RefusedError(
            f"the board on {session.description} holds step {stated.step} with hash "
            f"{stated.state_sha256[:16]}… instead of the checkpoint's step {checkpoint.step} "
            f"with {checkpoint.state_sha256[:16]}…: try again"
        )


def checkpoint_of(plan: Plan, step: int, payload: bytes, versions: Mapping[str, str]) -> Checkpoint:
    """Return the checkpoint of a plan's run with this training state."""
    description = plan.description
    return Checkpoint(
        experiment=description.name,
        fingerprint=description.fingerprint,
        step=step,
        payload=payload,
        hyperparameters=plan.hyperparameters,
        versions=versions,
        learning=description.learning,
    )


def fetch(
    session: BoardSession,
    plan: Plan,
    result: Result,
    versions: Mapping[str, str],
    transfer: Transfer,
    keeping: Keeping | None = None,
) -> dict[str, bytes]:
    """Fetch the checkpoint and the policy of the result's state, as the files of a save; `keeping`
    keeps their parts until the save is whole."""
    max_bytes = IMAGE_HEADER.size + plan.description.bytes_of["state"]
    image = session.files.download(
        CHECKPOINT_PATH,
        transfer("fetching the checkpoint"),
        max_bytes=max(max_bytes, LARGEST_FILE_BYTES),
        keeping=keeping,
    )
    parsed = parse_image(image, session.description)
    description = plan.description
    checkpoint = checkpoint_of(plan, parsed.step, parsed.payload, versions)
    state_sha256 = checkpoint.state_sha256
    if (state_sha256, parsed.step) != (result.state_sha256, result.step):
        raise RefusedError(
            f"the checkpoint from {session.description} has step {parsed.step} and hash "
            f"{state_sha256[:16]}…, the board stated step {result.step} and "
            f"{result.state_sha256[:16]}…: train again"
        )
    if parsed.fingerprint != description.fingerprint:
        raise BoardMismatchError(
            f"the checkpoint from {session.description} has fingerprint "
            f"{parsed.fingerprint:08x}, the experiment {description.fingerprint:08x}: "
            f"{plan.load_command}"
        )
    policy = fetch_policy(session, result, transfer("fetching the policy"), keeping)
    return {CHECKPOINT_FILE: to_safetensors(checkpoint, description.tensors), POLICY_FILE: policy}


def fetch_policy(
    session: BoardSession,
    result: Result,
    progress: Progress | None = None,
    keeping: Keeping | None = None,
) -> bytes:
    """Fetch the policy of the result's state."""
    policy = session.files.download(POLICY_PATH, progress, keeping=keeping)
    if state_of_policy(policy) != result.state_sha256:
        raise RefusedError(
            f"the policy from {session.description} is not of the state with hash "
            f"{result.state_sha256[:16]}…, which the board stated: train again"
        )
    return policy


def origin_now() -> Mapping[str, Any]:
    """Return what trains: sources, machine and packages, as the fields of run.json."""
    return {**git_revision(), "host": machine(), "versions": package_versions()}


def run_at_start(
    plan: Plan,
    identity: StatedIdentity,
    port: str,
    sources: str,
    earlier: Run,
    origin: Mapping[str, Any],
) -> Run:
    """Return what is known before training begins, added to the `earlier` content of run.json."""
    session = Session(
        started=timestamp(),
        board=plan.board.name,
        port=port,
        first_step=plan.first_step,
        revision=identity.revision,
        sources=sources,
        threads=plan.request.threads,
        changed=dict(plan.changed),
    )
    description = plan.description
    memory = firmware.memory_usage(plan.board, plan.program) if plan.program else []
    return structs.replace(
        earlier,
        experiment=description.name,
        algorithm=description.algorithm,
        environment=str(description.environment["name"]),
        contract=description.contract,
        fingerprint=f"{description.fingerprint:08x}",
        learning=dict(description.learning),
        board=plan.board.name,
        seed=plan.seed,
        steps=plan.steps,
        hyperparameters=plan.hyperparameters,
        **origin,
        identity=identity,
        memory=typed(memory, list[Memory]),
        sessions=[*earlier.sessions, session],
        safe_action=list(description.environment.get("safe_action", [])),
        gymnasium=earlier.gymnasium if plan.server is None else plan.server.task,
        fitted=plan.request.fitted or earlier.fitted,
        state="starting",
    )


def view_of(plan: Plan, folder: RunFolder, metric_names: Sequence[str]) -> TrainingView:
    """Return the view of a screen, with what is known of the run already."""
    names = plan.description.name, plan.board.name
    first = plan.first_step
    view = TrainingView(
        *names, plan.seed, plan.steps, folder.path, first, metric_names=metric_names
    )
    if plan.resumed is not None:
        for row in plan.resumed.read_metrics():
            view.take_row(row)
    return view


def run_in_state(
    run: Run,
    state: str,
    step: int,
    train_s: float,
    evaluation: Evaluation | None,
    session: Session,
) -> Run:
    """Return run.json for this state of training; `session` replaces its present session.

    train_s is the time in training, evaluation_s the part of it in evaluations, and steps_per_s
    leaves that part out.
    """
    ended = "" if state == "training" else timestamp()
    session = structs.replace(session, ended=ended or session.ended)
    sessions = [*run.sessions[:-1], session]
    evaluation_s = sum(entry.evaluation_s for entry in sessions)
    learning_s = train_s - evaluation_s
    run = structs.replace(
        run,
        sessions=sessions,
        state=state,
        ended=ended or run.ended,
        step=step,
        train_s=train_s,
        evaluation_s=evaluation_s,
        steps_per_s=step / learning_s if learning_s > 0 else None,
        messages_lost=sum(entry.messages_lost for entry in sessions),
        guest_instructions=guest_instructions(sessions),
    )
    if evaluation is None:
        return run
    length = evaluation.length_mean
    return structs.replace(
        run,
        return_mean=evaluation.return_mean,
        return_std=evaluation.return_std,
        length_mean=length if math.isfinite(length) else None,
    )


def train_s_before(run: Run, step: int, rows: Sequence[Row]) -> float:
    """Return the seconds of training up to the checkpoint that a run resumes from."""
    if run.checkpoint_step == step:
        return run.checkpoint_train_s or 0.0
    return max((float(row["time_s"]) for row in rows), default=0.0)


def guest_instructions(sessions: Sequence[Session]) -> int | None:
    """Return the instructions of all sessions; None if a board measured time instead."""
    counts = [session.guest_instructions for session in sessions]
    if not counts or None in counts:
        return None
    return sum(count or 0 for count in counts)


class BestPolicy:
    """The best policy so far; at first there is none.

    A board that keeps one has that of the evaluations since it was started, or since a checkpoint
    was put on it. One that keeps none rests after each evaluation that is the best so far, and its
    policy is then that of its state. A run has the better of these and of what its save had. An
    evaluation whose policy nobody kept, and one whose report was lost, does not count.
    """

    def __init__(self) -> None:
        self._image = b""
        self._evaluation: Evaluation | None = None
        self._of_session: dict[int, Evaluation] = {}  # by their steps

    def restore(self, save: Path, rows: Sequence[Row]) -> None:
        """Take the best policy of a save; `rows` are the metrics up to it.

        DamagedFileError: the file is no policy, or of no evaluation.
        """
        path = save / BEST_FILE
        try:
            image = read_limited(path, MAX_POLICY_BYTES, save.parent)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DamagedFileError(f"cannot read {path}: {reason}") from None
        step = step_of_policy(image)
        found = [row for row in rows if row.get("kind") == "evaluation" and row["step"] == step]
        if not found:
            what = (
                "it is not a policy image"
                if step is None
                else f"no evaluation was at step {step:,}"
            )
            raise DamagedFileError(
                f"{path} is damaged: {what}; restore it, or remove it and go on without"
            )
        self._image, self._evaluation = image, evaluation_of(found[-1])

    def take(self, evaluation: Evaluation) -> None:
        """Take an evaluation of this session."""
        self._of_session[evaluation.step] = evaluation

    @property
    def largest(self) -> float:
        """Return the mean return that a better evaluation exceeds."""
        return -math.inf if self._evaluation is None else self._evaluation.return_mean

    def fetch(self, session: BoardSession, result: Result, policy: bytes = b"") -> None:
        """Fetch the best policy from the board at rest, if it is better. `policy` is that of the
        board's state, if it was fetched before."""
        if not self._of_session:
            return
        if result.is_best:
            image = policy or fetch_policy(session, result)
        else:
            try:
                image = session.files.download(BEST_PATH)
            except FileNotThereError:  # there was no memory for it
                return
        self.offer(image)

    def offer(self, image: bytes) -> None:
        """Take a policy of this session if it is better; none where `image` is empty."""
        evaluation = self._of_session.get(step_of_policy(image) or 0)
        if evaluation is not None and evaluation.return_mean > self.largest:
            self._image, self._evaluation = image, evaluation

    @property
    def files(self) -> dict[str, bytes]:
        """Return the files for the save."""
        return {BEST_FILE: self._image} if self._image else {}

    @property
    def best(self) -> Best | None:
        """Return the entry of run.json that goes with the save."""
        evaluation, state_sha256 = self._evaluation, state_of_policy(self._image)
        if evaluation is None or state_sha256 is None:
            return None
        return Best(
            evaluation.step,
            state_sha256,
            evaluation.return_mean,
            evaluation.return_std,
        )
