"""The messages of our dialect, lib/protocol/rltools.xml, as values, and packets of MAVLink FTP; the
reasons of refusals in words.

The names are those of PolicyReason in policy/format.h (docs/policy_image.md has the same table), of
SlotError and DropReason in policy/slots.h, and of ExecutorStatus in policy/executor.h, in their
order.
"""

from __future__ import annotations

import enum
import math
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from rltools_host.boards.framing import Message, payload_of
from rltools_host.boards.framing import StatusText as StatusText
from rltools_host.documents import printable
from rltools_host.policies import POLICY_REASONS

PART_FLOATS = 48  # of an observation that one RLT_OBSERVATION has
ACTION_HEAD = 12  # bytes of an RLT_ACTION before its action
ACTION_WORDS = struct.Struct("<40I")  # the action, 24 elements, and 16 layers
ACTION_BYTES = ACTION_HEAD + ACTION_WORDS.size


class State:
    """The states of RLT_STATE."""

    IDLE, TRAINING, PAUSED, FINISHED, FAULT = range(5)
    NAMES = ("idle", "training", "paused", "finished", "fault")


@dataclass(frozen=True)
class Identity:
    """RLT_IDENTITY: the identity of a board."""

    experiment: str
    board: str
    device: str
    revision: str
    fingerprint: int
    protocol_version: int
    state: int
    counts_instructions: bool  # as emulated boards do
    learner_bytes: int
    replay_bytes: int
    scratch_bytes: int
    unique_id: str
    program: str  # of firmware/build.json
    has_counter: bool = True  # whether the counter counts that, which an emulator may not do


@dataclass(frozen=True)
class TrainingProgress:
    """RLT_PROGRESS. Metrics have the order of the experiment's description; they and the returns
    are NaN before the first.

    `episodes_ended` are those since the last report, with their mean return and length.
    """

    counter: int
    step: int
    steps: int
    updates: int
    episodes: int
    last_return: float
    best_return: float
    metrics: tuple[float, ...]
    episodes_ended: int = 0
    episode_return: float = math.nan
    episode_length: float = math.nan


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
    length_mean: float = math.nan  # steps of an episode


@dataclass(frozen=True)
class Result:
    """RLT_RESULT: training is at rest."""

    counter: int
    evaluation_counter: int  # of counter, what evaluations took
    step: int
    finished: bool
    state_sha256: str
    is_best: bool = False  # by an evaluation of this state


class SlotUse:
    """The uses of RLT_SLOT_USE."""

    EMPTY, ACTIVE, STAGED, TRIAL, PREVIOUS = range(5)
    NAMES = ("empty", "active", "staged", "trial", "previous")


@dataclass(frozen=True)
class PolicySlot:
    """RLT_POLICY_SLOT: a slot for a policy, and the state of the board as a whole."""

    slot: int
    slots: int
    use: int
    slot_bytes: int
    image_bytes: int
    sha256: str  # empty where there is no image
    state_sha256: str
    experiment: str
    environment: str
    seed: int
    step: int
    trial_left_ms: int
    last_drop: int  # of the board, as what follows
    refused_error: int
    refused_reason: int
    refused_at: int


@dataclass(frozen=True)
class Action:
    """RLT_ACTION, the answer to an observation: the bits of its floats, as numbers."""

    tick: int
    cost: int
    status: int
    action_bits: tuple[int, ...]
    layers: tuple[int, ...]  # CRC-32 of each layer's output


OF_ENDED = ("episode_return", "episode_length")  # 0 on the wire where no episode has ended
Report = TrainingProgress | Evaluation
Event = Report | Result | StatusText
Value = TypeVar("Value")


def value_of(kind: type[Value], message: Message, **given: object) -> Value:
    """Return a value from the message's fields of the same names; `given` are those that differ."""
    values = dict(given)
    for field in fields(cast(Any, kind)):
        if field.name not in given:
            value = getattr(message, field.name)
            value = tuple(value) if isinstance(value, list) else value
            values[field.name] = text_of(value) if field.type == "str" else value
    return kind(**values)


def identity_of(message: Message) -> Identity | None:
    if message.get_type() != "RLT_IDENTITY":
        return None
    return value_of(
        Identity,
        message,
        counts_instructions=message.counter == 1,
        has_counter=True,
        unique_id=bytes(message.unique_id).hex(),
        program=text_of(message.program) or "train",
    )


def report_of(message: Message) -> Report | None:
    if message.get_type() == "RLT_PROGRESS":
        none = {} if message.episodes_ended else dict.fromkeys(OF_ENDED, math.nan)
        return value_of(TrainingProgress, message, **none)
    if message.get_type() == "RLT_EVALUATION":
        return value_of(Evaluation, message)
    return None


def result_of(message: Message) -> Result | None:
    if message.get_type() != "RLT_RESULT":
        return None
    state_sha256 = bytes(message.state_sha256).hex()
    finished, is_best = message.state == State.FINISHED, message.is_best == 1
    return value_of(Result, message, finished=finished, state_sha256=state_sha256, is_best=is_best)


def policy_slot_of(message: Message) -> PolicySlot | None:
    if message.get_type() != "RLT_POLICY_SLOT":
        return None
    hashes = {
        name: bytes(getattr(message, name)).hex() if message.image_bytes > 0 else ""
        for name in ("sha256", "state_sha256")
    }
    return value_of(PolicySlot, message, **hashes)


def action_of(message: Message) -> Action | None:
    """Return the action from the payload, as a Python float would change the bits of some."""
    if message.get_type() != "RLT_ACTION":
        return None
    words = ACTION_WORDS.unpack_from(payload_of(message).ljust(ACTION_BYTES, b"\0"), ACTION_HEAD)
    return Action(
        tick=message.tick,
        cost=message.cost,
        status=message.status,
        action_bits=words[: min(message.action_dim, 24)],
        layers=words[24 : 24 + min(message.layer_count, 16)],
    )


def text_of(value: Any) -> str:
    """Return a field of characters up to its first zero, printable, as any sender may have written
    it."""
    raw = value if isinstance(value, bytes) else str(value).encode(errors="replace")
    return printable(raw.split(b"\0")[0].decode(errors="replace"))


# What the slots do not do.
SLOT_ERRORS: Mapping[str, str] = {
    "none": "nothing",
    "too_large": "the image exceeds a slot",
    "in_trial": "a trial is under way",
    "not_in_order": "bytes of the image are missing",
    "not_staged": "there is no image to try",
    "no_trial": "there is no trial to confirm",
    "no_previous": "there is nothing to roll back to",
    "incomplete": "there are no bytes of an image",
    "storage_failed": "its storage failed: its disk is full, or its flash is worn",
}
# Why a candidate was dropped.
DROP_REASONS: Mapping[str, str] = {
    "none": "no policy has been dropped",
    "deadline": "it was not confirmed in time",
    "reset": "the board was reset during the trial",
    "fault": "its output was not finite",
    "refused": "it did not pass the check when the board started",
    "rolled_back": "it was rolled back",
    "replaced": "another image took its slot",
}
# What a call of the executor did.
EXECUTOR_STATUSES: Mapping[str, str] = {
    "acted": "the policy acts",
    "held": "the last action is held",
    "no_policy": "there is no policy",
    "observation_missing": "there is no observation",
    "observation_stale": "the observation is too old",
    "observation_out_of_order": "the observation is out of order",
    "observation_frozen": "the observation does not change",
    "observation_not_finite": "the observation is not finite",
    "observation_out_of_range": "the observation is out of range",
    "output_not_finite": "the network's output is not finite",
    "recovering": "recovering from a fault",
    "given_up": "given up after too many faults",
}


def name_of(number: int, table: Mapping[str, str]) -> str:
    names = tuple(table)
    return names[number] if number < len(names) else f"number {number}"


def text_of_number(number: int, table: Mapping[str, str]) -> str:
    return table.get(name_of(number, table), f"number {number}")


def refusal(error: int, reason: int) -> str:
    """Name and words of what a board found wrong with the last image; empty where nothing."""
    for number, table in ((error, SLOT_ERRORS), (reason, POLICY_REASONS)):
        if number:
            return f"{name_of(number, table)}: {text_of_number(number, table)}"
    return ""


# -- packets of MAVLink FTP, https://mavlink.io/en/services/ftp.html -------------------------------

# Sequence, session, opcode, size, request_opcode, burst_complete, offset.
HEAD = struct.Struct("<HBBBBBxI")
DATA_BYTES = 239
PACKET_BYTES = HEAD.size + DATA_BYTES

Progress = Callable[[int, int], None]  # bytes done, bytes in all


class Opcode(enum.IntEnum):
    """The operations of MAVLink FTP that are used here."""

    TERMINATE_SESSION = 1
    RESET_SESSIONS = 2
    OPEN_FILE_RO = 4
    READ_FILE = 5
    CREATE_FILE = 6
    WRITE_FILE = 7
    CALC_FILE_CRC32 = 14
    BURST_READ_FILE = 15
    ACK = 128
    NAK = 129


class Nak(enum.IntEnum):
    """The reasons of a refusal."""

    FAIL = 1
    FAIL_ERRNO = 2
    INVALID_DATA_SIZE = 3
    INVALID_SESSION = 4
    NO_SESSIONS_AVAILABLE = 5
    END_OF_FILE = 6
    UNKNOWN_COMMAND = 7
    FILE_EXISTS = 8
    FILE_PROTECTED = 9
    FILE_NOT_FOUND = 10


@dataclass(frozen=True)
class Packet:
    """The payload of one FILE_TRANSFER_PROTOCOL message."""

    sequence: int
    session: int
    opcode: int
    request_opcode: int = 0
    burst_complete: bool = False
    offset: int = 0
    data: bytes = b""
    size: int | None = None  # where it is not the size of `data`: of a read, how much is wanted

    def pack(self) -> bytes:
        size = len(self.data) if self.size is None else self.size
        head = HEAD.pack(
            self.sequence,
            self.session,
            self.opcode,
            size,
            self.request_opcode,
            self.burst_complete,
            self.offset,
        )
        return (head + self.data).ljust(PACKET_BYTES, b"\0")

    @classmethod
    def parse(cls, payload: bytes) -> Packet | None:
        payload = payload.ljust(PACKET_BYTES, b"\0")  # MAVLink 2 leaves trailing zeros out
        sequence, session, opcode, size, request_opcode, complete, offset = HEAD.unpack_from(
            payload
        )
        if size > DATA_BYTES:
            return None
        data = payload[HEAD.size : HEAD.size + size]
        return cls(sequence, session, opcode, request_opcode, bool(complete), offset, data)


def mavlink_crc32(content: bytes | bytearray) -> int:
    """Compute MAVLink's CRC-32 (developer guide, "MAVLink CRC"): zlib's, but from 0 and not
    inverted."""
    return zlib.crc32(content, 0xFFFFFFFF) ^ 0xFFFFFFFF


def insert_data(
    reply: Packet, content: bytearray, missing: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Copy the data of an ACK to its offset, and return the intervals that are still missing."""
    begin, end = reply.offset, reply.offset + len(reply.data)
    if begin == end or end > len(content):
        return missing
    content[begin:end] = reply.data
    rest: list[tuple[int, int]] = []
    for first, last in missing:
        rest += [(first, min(last, begin)), (max(first, end), last)]
    return [interval for interval in rest if interval[0] < interval[1]]


def bytes_missing(missing: list[tuple[int, int]]) -> int:
    return sum(end - begin for begin, end in missing)
