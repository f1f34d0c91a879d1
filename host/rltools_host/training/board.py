"""The board of a plan: its program, the link to it, and its training state, sent and fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rltools_host.build import experiments, firmware
from rltools_host.clients.file_packet import Progress
from rltools_host.clients.file_transfer import (
    CHECKPOINT_PATH,
    LARGEST_FILE_BYTES,
    POLICY_PATH,
)
from rltools_host.clients.messages import Result
from rltools_host.clients.session import BoardSession
from rltools_host.errors import BoardMismatchError, VerificationError
from rltools_host.hints import command_line
from rltools_host.link.board_link import open_board_link
from rltools_host.link.transport import Link
from rltools_host.project import PROJECT
from rltools_host.runs.checkpoint import (
    IMAGE_HEADER,
    Checkpoint,
    build_image,
    parse_image,
    to_safetensors,
)
from rltools_host.runs.policy_file import state_of_policy
from rltools_host.runs.saves import CHECKPOINT_FILE, POLICY_FILE
from rltools_host.runs.sources import read_sources
from rltools_host.training.plan import DEFAULT_BOARD, Plan

INCLUDE_BESIDE = re.compile(r'^#include "(\.\./[^"]+)"', re.MULTILINE)


def build_program(plan: Plan) -> None:
    """The sources are read first: what is written while the compiler runs is not in the program.

    Nor is what was written while the experiment's description was compiled in a program that was
    built beside it: Ninja goes by when a command began, and builds it again.

    A board that is flashed, or that is behind --port, has its program already. Its sources are
    taken to be those of now: what describes the experiment here has its fingerprint.
    """
    name = plan.subject
    plan.sources = read_sources(generated=generated_headers(name))
    if not plan.board.is_flashed:
        plan.program = firmware.build_firmware(plan.board, name)


def generated_headers(subject: str) -> list[str]:
    """Of a task of Gymnasium's: its experiment and its contract, relative to the project."""
    if not experiments.is_generated(subject):
        return []
    header = experiments.generated_header(subject)
    beside = INCLUDE_BESIDE.findall(header.read_text(encoding="utf-8"))
    headers = [header, *((header.parent / name).resolve() for name in beside)]
    return [str(header.relative_to(PROJECT.root)) for header in headers]


def open_board(plan: Plan) -> Link:
    """A link to the given port, a new process or emulator, or the board that is connected."""
    flash = command_line("flash", plan.board.name, plan.description.name)
    remedy = f"plug it in and `{flash}`, or train on an emulated board with --board {DEFAULT_BOARD}"
    socket = plan.server.address if plan.server is not None else None
    return open_board_link(
        plan.board, plan.port, plan.program, remedy, threads=plan.threads, environments=socket
    )


Transfer = Callable[[str], Callable[[int, int], None]]  # what is on its way -> its progress


@dataclass(frozen=True)
class FetchedState:
    """What a board at rest has, in the form in which a run keeps it."""

    step: int
    state_sha256: str
    files: Mapping[str, bytes]

    @property
    def policy(self) -> bytes:
        return self.files[POLICY_FILE]


def put_on_board(session: BoardSession, checkpoint: Checkpoint, transfer: Transfer) -> None:
    """Puts the checkpoint on the board, which must then state its hash."""
    image = build_image(checkpoint.fingerprint, checkpoint.step, checkpoint.payload)
    session.training.upload_checkpoint(image, transfer("sending the checkpoint"))
    stated = session.training.result()
    if (stated.state_sha256, stated.step) != (checkpoint.state_sha256, checkpoint.step):
        raise VerificationError(
            f"the board on {session.description} holds step {stated.step} with hash "
            f"{stated.state_sha256[:16]}… instead of the checkpoint's step {checkpoint.step} "
            f"with {checkpoint.state_sha256[:16]}…: try again"
        )


def fetch(
    session: BoardSession,
    plan: Plan,
    result: Result,
    versions: Mapping[str, str],
    transfer: Transfer,
) -> FetchedState:
    """Checkpoint and policy of the result, both of its state."""
    # A replay buffer that somebody chose to be large is, on this machine.
    most_bytes = IMAGE_HEADER.size + plan.description.bytes_of["state"]
    image = session.files.download(
        CHECKPOINT_PATH,
        transfer("fetching the checkpoint"),
        most_bytes=max(most_bytes, LARGEST_FILE_BYTES),
    )
    parsed = parse_image(image, session.description)
    description = plan.description
    checkpoint = Checkpoint(
        experiment=description.name,
        fingerprint=parsed.fingerprint,
        step=parsed.step,
        payload=parsed.payload,
        hyperparameters=plan.hyperparameters,
        versions=versions,
        learning=description.learning,
    )
    state_sha256 = checkpoint.state_sha256
    if (state_sha256, parsed.step) != (result.state_sha256, result.step):
        raise VerificationError(
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
    policy = fetch_policy(session, result, transfer("fetching the policy"))
    files = {CHECKPOINT_FILE: to_safetensors(checkpoint, description.tensors), POLICY_FILE: policy}
    return FetchedState(result.step, state_sha256, files)


def fetch_policy(session: BoardSession, result: Result, progress: Progress | None = None) -> bytes:
    """The policy of the result's state."""
    policy = session.files.download(POLICY_PATH, progress)
    if state_of_policy(policy) != result.state_sha256:
        raise VerificationError(
            f"the policy from {session.description} is not of the state with hash "
            f"{result.state_sha256[:16]}…, which the board stated: train again"
        )
    return policy
