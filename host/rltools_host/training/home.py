"""Brings a training state home: fetches checkpoint and policy from the board and verifies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rltools_host.clients.files import CHECKPOINT_PATH, POLICY_PATH
from rltools_host.clients.messages import Result
from rltools_host.clients.session import BoardSession
from rltools_host.errors import BoardMismatchError, VerificationError
from rltools_host.runs.checkpoint import Checkpoint, build_image, parse_image, to_safetensors
from rltools_host.runs.policy_file import state_of_policy
from rltools_host.runs.saves import CHECKPOINT_FILE, POLICY_FILE
from rltools_host.training.plan import Plan

Transfer = Callable[[str], Callable[[int, int], None]]  # what is on its way -> its progress


@dataclass(frozen=True)
class Home:
    """What a board at rest has, in the form in which a run keeps it."""

    step: int
    state_sha256: str
    files: Mapping[str, bytes]


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
) -> Home:
    """Checkpoint and policy of the result, both of its state."""
    image = session.files.download(CHECKPOINT_PATH, transfer("fetching the checkpoint"))
    policy = session.files.download(POLICY_PATH, transfer("fetching the policy"))
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
    if state_of_policy(policy) != state_sha256:
        raise VerificationError(
            f"the policy from {session.description} is not of the state with hash "
            f"{state_sha256[:16]}…, which the board stated: train again"
        )
    files = {
        CHECKPOINT_FILE: to_safetensors(checkpoint, description.tensors),
        POLICY_FILE: policy,
    }
    return Home(result.step, state_sha256, files)
