"""The messages of our dialect, lib/protocol/rltools.xml, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rltools_host.link.framing import Message
from rltools_host.link.status_text import StatusText as StatusText


class State:
    """RLT_STATE of the protocol."""

    IDLE, TRAINING, PAUSED, FINISHED, FAULT = range(5)
    NAMES = ("idle", "training", "paused", "finished", "fault")


@dataclass(frozen=True)
class Identity:
    """RLT_IDENTITY: what a board says of itself."""

    experiment: str
    board: str
    device: str
    revision: str
    fingerprint: int
    protocol_version: int
    state: int
    counts_instructions: bool
    learner_bytes: int
    replay_bytes: int
    scratch_bytes: int
    unique_id: str


@dataclass(frozen=True)
class TrainingProgress:
    """RLT_PROGRESS. Losses and returns are NaN where there is none yet."""

    counter: int
    step: int
    steps: int
    updates: int
    episodes: int
    last_return: float
    best_return: float
    critic_1_loss: float
    critic_2_loss: float
    actor_loss: float


@dataclass(frozen=True)
class Evaluation:
    """RLT_EVALUATION."""

    counter: int
    step: int
    episodes: int
    return_mean: float
    return_std: float
    return_min: float
    return_max: float


@dataclass(frozen=True)
class Result:
    """RLT_RESULT: training is at rest."""

    counter: int
    step: int
    checkpoint_bytes: int
    policy_bytes: int
    finished: bool
    state_sha256: str


Report = TrainingProgress | Evaluation
Event = Report | Result | StatusText


def identity_of(message: Message) -> Identity | None:
    if message.get_type() != "RLT_IDENTITY":
        return None
    return Identity(
        experiment=text_of(message.experiment),
        board=text_of(message.board),
        device=text_of(message.device),
        revision=text_of(message.revision),
        fingerprint=message.fingerprint,
        protocol_version=message.protocol_version,
        state=message.state,
        counts_instructions=message.counter == 1,
        learner_bytes=message.learner_bytes,
        replay_bytes=message.replay_bytes,
        scratch_bytes=message.scratch_bytes,
        unique_id=bytes(message.unique_id).hex(),
    )


def report_of(message: Message) -> Report | None:
    if message.get_type() == "RLT_PROGRESS":
        return TrainingProgress(*(getattr(message, name) for name in message.fieldnames))
    if message.get_type() == "RLT_EVALUATION":
        return Evaluation(*(getattr(message, name) for name in message.fieldnames))
    return None


def result_of(message: Message) -> Result | None:
    if message.get_type() != "RLT_RESULT":
        return None
    return Result(
        counter=message.counter,
        step=message.step,
        checkpoint_bytes=message.checkpoint_bytes,
        policy_bytes=message.policy_bytes,
        finished=message.state == State.FINISHED,
        state_sha256=bytes(message.state_sha256).hex(),
    )


def text_of(value: Any) -> str:
    """A field of characters, which ends at its first zero."""
    raw = value if isinstance(value, bytes) else str(value).encode(errors="replace")
    return raw.split(b"\0")[0].decode(errors="replace")
