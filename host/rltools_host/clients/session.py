"""A session with a board: identity, hyperparameters, commands, reports, files; docs/protocol.md."""

from __future__ import annotations

import contextlib
import math
import secrets
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rltools_host.clients.file_transfer import FileTransfer, Progress
from rltools_host.errors import (
    BoardMismatchError,
    DamagedFileError,
    LinkLostError,
    PortError,
    RltError,
    TrainingFaultError,
    VerificationError,
)
from rltools_host.link.framing import Dialect, FrameDecoder, FrameEncoder, Message, payload_of
from rltools_host.link.transport import Link

HOST_SYSTEM, HOST_COMPONENT = 255, 190
EVERYBODY = (0, 0)  # system and component: whom a message reaches before the board is known
PROTOCOL_VERSION = 1
CHECKPOINT_PATH = "/checkpoint.rltc"
POLICY_PATH = "/policy.rltp"
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 1.0  # then a request is sent again
ANSWER_LIMIT_S = 15.0  # then the board is taken for gone; a step on an emulated board takes a while
SILENCE_LIMIT_S = 20.0  # without any message, heartbeats included
QUIET_S = 2.0  # without a report: ask how the board stands
GATHER_S = 0.1  # reports that come within this time are taken in together
GATHER_BYTES = 2048  # as long as they are no more than this: the link's buffers must not fill
SEVERITY_ERROR = 3  # MAV_SEVERITY: this and smaller numbers

Value = TypeVar("Value")


class State:
    """RLT_STATE of the protocol."""

    IDLE, TRAINING, PAUSED, FINISHED, FAULT = range(5)
    NAMES = ("idle", "training", "paused", "finished", "fault")


@dataclass(frozen=True)
class Identity:
    """Who a board says that it is."""

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


@dataclass(frozen=True)
class StatusText:
    """STATUSTEXT, put together from its pieces."""

    severity: int
    text: str


Event = TrainingProgress | Evaluation | Result | StatusText


class Hyperparameter(Protocol):
    """What must be known of a hyperparameter to set it."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...


def value_bits(type_name: str, value: float | int) -> int:
    """The four bytes of a hyperparameter, as a number."""
    if type_name.upper() == "U32":
        return int(value)
    return int.from_bytes(struct.pack("<f", value), "little")


class BoardSession:
    """Talks to the board behind a link; closing the session closes the link."""

    def __init__(self, link: Link, dialect: Dialect, clock: Callable[[], float] = time.monotonic):
        self.link = link
        self.description = link.description
        self.decoder = FrameDecoder(dialect)
        self._dialect = dialect
        self._encoder = FrameEncoder(dialect, HOST_SYSTEM, HOST_COMPONENT)
        self._clock = clock
        self._board = EVERYBODY  # its system and component, once it has said who it is
        self._inbox: deque[Message | StatusText] = deque()
        self._answered_at = 0  # where in the inbox the last answer was
        self._files_inbox: deque[bytes] = deque()
        self._bytes_received = 0
        self._last_heard = clock()
        self._text_pieces: dict[int, dict[int, bytes]] = {}
        self._last_error_text = ""
        self._standing: Identity | None = None  # the last identity that came among the events

    # -- connecting --------------------------------------------------------------------------------

    @classmethod
    def connect(
        cls, link: Link, dialect: Dialect, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> tuple[BoardSession, Identity]:
        """A session with the board that answers on the link, and who that is."""
        session = cls(link, dialect)
        deadline = session._clock() + timeout_s
        while session._clock() < deadline:
            session._request_message(dialect.MAVLINK_MSG_ID_RLT_IDENTITY)
            identity = session._wait(_identity_of, min(0.5, deadline - session._clock()))
            if identity is not None:
                session._check_version(identity)
                return session, identity
        raise session._no_answer(timeout_s)

    def _no_answer(self, timeout_s: float) -> RltError:
        if self.decoder.messages_received:
            return BoardMismatchError(
                f"the device on {self.description} speaks MAVLink but is not one of our boards: "
                "flash it with `rlt flash`, or give another --port"
            )
        if self._bytes_received:
            return BoardMismatchError(
                f"the board on {self.description} runs other firmware ({self._bytes_received} "
                "bytes came, no MAVLink): flash it with `rlt flash`, or give another --port"
            )
        return PortError(
            f"no board answers on {self.description} within {timeout_s:g} s: check that it is "
            "powered and flashed (`rlt flash`), or give another --port"
        )

    def _check_version(self, identity: Identity) -> None:
        if identity.protocol_version != PROTOCOL_VERSION:
            raise BoardMismatchError(
                f"the board on {self.description} speaks version {identity.protocol_version} of "
                f"the protocol, this host version {PROTOCOL_VERSION}: flash it again with "
                f"`rlt flash {identity.board}`"
            )

    def require(
        self, identity: Identity, experiment: str, fingerprint: int, board: str, remedy: str
    ) -> None:
        """BoardMismatchError unless the board runs this experiment, of these sources."""
        if identity.board != board:
            raise BoardMismatchError(
                f'the board on {self.description} is a "{identity.board}", not a "{board}": '
                f"give --board {identity.board} or another --port"
            )
        if identity.experiment != experiment:
            raise BoardMismatchError(
                f'the board on {self.description} runs experiment "{identity.experiment}", '
                f'not "{experiment}": {remedy}'
            )
        if identity.fingerprint != fingerprint:
            raise BoardMismatchError(
                f'the board on {self.description} runs another version of "{experiment}" '
                f"(fingerprint {identity.fingerprint:08x}, here {fingerprint:08x}): {remedy}"
            )

    # -- requests ----------------------------------------------------------------------------------

    def identity(self) -> Identity:
        """Who the board is, and its state at present."""
        # A question that was asked twice has a second answer, which tells an earlier state.
        self._inbox = deque(
            item
            for item in self._inbox
            if isinstance(item, StatusText) or _identity_of(item) is None
        )
        return self._ask(
            lambda: self._request_message(self._dialect.MAVLINK_MSG_ID_RLT_IDENTITY),
            _identity_of,
            "its identity",
        )

    def result(self) -> Result:
        """The result of a board that is paused or finished."""
        return self._ask(
            lambda: self._request_message(self._dialect.MAVLINK_MSG_ID_RLT_RESULT),
            _result_of,
            "its result",
        )

    def set_hyperparameters(
        self, table: Mapping[str, Hyperparameter], values: Mapping[str, float | int]
    ) -> None:
        """Sets hyperparameters and checks that the board took each of them, bit by bit."""
        for name, value in values.items():
            self._set_hyperparameter(name, table[name].type.upper(), value)

    def _set_hyperparameter(self, name: str, kind: str, value: float | int) -> None:
        bits = value_bits(kind, value)
        self._last_error_text = ""
        answer = self._ask(
            lambda: self._set_parameter(name, kind, bits),
            lambda message: _parameter_of(message, name),
            f"hyperparameter {name}",
        )
        if answer != bits:
            raise VerificationError(
                f"the board on {self.description} refuses {name}={value:g}: "
                "choose another value with --set" + self._because()
            )

    def _set_parameter(self, name: str, kind: str, bits: int) -> None:
        types = {
            "U32": self._dialect.MAV_PARAM_TYPE_UINT32,
            "F32": self._dialect.MAV_PARAM_TYPE_REAL32,
        }
        payload = struct.pack("<IBB16sB", bits, *self._board, name.encode(), types[kind])
        self._write(self._encoder.encode_payload(self._dialect.MAVLINK_MSG_ID_PARAM_SET, payload))

    def start(self) -> None:
        """Begins a new training run."""
        token = float(1 + secrets.randbelow(2**24 - 1))  # so many a float holds exactly
        states = (State.TRAINING, State.FINISHED)
        self._command(self._dialect.MAV_CMD_RLT_START, "start", states, token)
        self._forget_standing()

    def proceed(self) -> None:
        """Goes on with a paused training run."""
        states = (State.TRAINING, State.FINISHED)
        self._command(self._dialect.MAV_CMD_RLT_RESUME, "go on", states)
        self._forget_standing()

    def _forget_standing(self) -> None:
        """Drops what the board said of its standing before it obeyed, as late answers do."""
        before = [self._inbox.popleft() for _ in range(self._answered_at)]
        self._inbox.extendleft(
            item
            for item in reversed(before)
            if isinstance(item, StatusText)
            or (_result_of(item) is None and _identity_of(item) is None)
        )

    def pause(self) -> None:
        """Asks for a pause; the board then sends its result."""
        self._command(self._dialect.MAV_CMD_RLT_PAUSE, "pause", (State.PAUSED, State.FINISHED))

    def _command(
        self, command: int, verb: str, states: tuple[int, ...], parameter: float = 0.0
    ) -> None:
        """Sends a command until it is acknowledged. `states` are those that it leads to."""
        self._inbox = deque(
            item
            for item in self._inbox
            if isinstance(item, StatusText) or _acknowledgement_of(item, command) is None
        )
        self._last_error_text = ""
        confirmation = 0

        def send() -> None:
            nonlocal confirmation
            self._send_command(command, confirmation, parameter)
            confirmation += 1

        answer = self._ask(
            send, lambda message: _acknowledgement_of(message, command), f"the command to {verb}"
        )
        if answer == self._dialect.MAV_RESULT_ACCEPTED:
            return
        state = self.identity().state
        if confirmation > 1 and state in states:
            return  # a repeated command: the first one was carried out, its acknowledgement lost
        raise TrainingFaultError(
            f"the board on {self.description} is {State.NAMES[state]} and refuses to {verb}: "
            "reset it, then try again" + self._because()
        )

    def _because(self) -> str:
        return f' (it says "{self._last_error_text}")' if self._last_error_text else ""

    def _send_command(self, command: int, confirmation: int = 0, parameter: float = 0.0) -> None:
        self._write(
            self._encoder.encode(
                self._dialect.MAVLink_command_long_message(
                    *self._board,
                    command,
                    confirmation,
                    parameter,
                    *(0.0,) * 6,
                )
            )
        )

    def _request_message(self, message_id: int) -> None:
        self._send_command(self._dialect.MAV_CMD_REQUEST_MESSAGE, parameter=float(message_id))

    def _ask(
        self, send: Callable[[], None], answer_of: Callable[[Message], Value | None], what: str
    ) -> Value:
        """Sends a request, again and again, until its answer comes."""
        deadline = self._clock() + ANSWER_LIMIT_S
        while self._clock() < deadline:
            send()
            answer = self._wait(answer_of, ANSWER_TIMEOUT_S)
            if answer is not None:
                return answer
        raise LinkLostError(
            f"the board on {self.description} does not answer for {what}: "
            "check the cable or reset the board" + self._because()
        )

    # -- messages ----------------------------------------------------------------------------------

    def _wait(self, answer_of: Callable[[Message], Value | None], timeout_s: float) -> Value | None:
        """The first answer among the messages; the others stay for `events`."""
        deadline = self._clock() + timeout_s
        seen = 0
        while True:
            while seen < len(self._inbox):
                item = self._inbox[seen]
                answer = None if isinstance(item, StatusText) else answer_of(item)
                if answer is not None:
                    del self._inbox[seen]
                    self._answered_at = seen
                    return answer
                seen += 1
            left_s = deadline - self._clock()
            if left_s <= 0.0:
                return None
            self._receive(left_s)

    def _receive(self, timeout_s: float) -> bool:
        """Reads once from the link and sorts what came; false if nothing did."""
        chunk = self.link.read(timeout_s)
        if not chunk:
            return False
        self._bytes_received += len(chunk)
        for message in self.decoder.feed(chunk):
            sender = (message.get_srcSystem(), message.get_srcComponent())
            if self._board == EVERYBODY and message.get_type() == "RLT_IDENTITY":
                self._board = sender
            if self._board not in (EVERYBODY, sender):
                continue
            self._last_heard = self._clock()
            number = message.get_msgId()
            if number == self._dialect.MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL:
                self._files_inbox.append(payload_of(message)[3:])
            elif number == self._dialect.MAVLINK_MSG_ID_STATUSTEXT:
                if (text := self._text_of(message)) is not None:
                    self._inbox.append(text)
            elif number != self._dialect.MAVLINK_MSG_ID_HEARTBEAT:
                self._inbox.append(message)
        return True

    def _write(self, data: bytes) -> None:
        """Writes to the link; if that is lost, takes in first what the board sent before."""
        try:
            self.link.write(data)
        except LinkLostError:
            with contextlib.suppress(LinkLostError):
                while self._receive(0.0):
                    pass
            raise

    def poll(self, timeout_s: float) -> list[Event]:
        """The events that have come, after waiting for the first at most this long."""
        if not self._inbox:
            self._receive(timeout_s)
        return self.remaining_events()

    def remaining_events(self) -> list[Event]:
        """The events that have come already, also over a link that is lost meanwhile."""
        events: list[Event] = []
        while self._inbox:
            item = self._inbox.popleft()
            event = item if isinstance(item, StatusText) else self._event_of(item)
            if event is not None:
                events.append(event)
        return events

    def events(
        self,
        idle: Callable[[], None] | None = None,
        idle_s: float = 0.1,
        gather: Callable[[float], None] | None = None,
    ) -> Iterator[Event]:
        """Events until training is at rest: the last one is a Result.

        `idle` is called at least every `idle_s` and GATHER_S. `gather`, called with the longest
        time that it may take, waits for more reports to come: a board that is a process on this
        machine may have to share a core with this one, and each awakening takes from its time. A
        lost RLT_RESULT is asked for again; LinkLostError after a long silence, TrainingFaultError
        on a fault.
        """
        last_sign = self._last_heard = (
            self._clock()
        )  # last report, or question how the board stands
        while True:
            received_before = self._bytes_received
            for event in self.poll(idle_s):
                last_sign = self._clock()
                yield event
                if isinstance(event, Result):
                    return
                if isinstance(event, StatusText) and event.severity <= SEVERITY_ERROR:
                    last_sign = -math.inf  # ask at once
            if idle is not None:
                idle()
            now = self._clock()
            if now - self._last_heard > SILENCE_LIMIT_S:
                raise LinkLostError(
                    f"the board on {self.description} has been silent for {SILENCE_LIMIT_S:.0f} s: "
                    "check the cable or reset the board"
                )
            self._check_standing()
            if now - last_sign > QUIET_S:
                last_sign = now
                self._request_message(self._dialect.MAVLINK_MSG_ID_RLT_IDENTITY)
            if gather is not None and self._bytes_received - received_before <= GATHER_BYTES:
                gather(GATHER_S)

    def _check_standing(self) -> None:
        """Acts on an identity that came among the events: a fault, a restart, a lost result."""
        identity, self._standing = self._standing, None
        if identity is None:
            return
        if identity.state == State.FAULT:
            raise TrainingFaultError(
                f"training stopped on {self.description}: "
                f"{self._last_error_text or 'a value is not finite'}; "
                "try a smaller learning_rate with --set"
            )
        if identity.state == State.IDLE:
            raise LinkLostError(
                f"the board on {self.description} restarted and lost its training state: "
                "start again"
            )
        if identity.state in (State.PAUSED, State.FINISHED):
            self._request_message(self._dialect.MAVLINK_MSG_ID_RLT_RESULT)

    def _event_of(self, message: Message) -> Event | None:
        number = message.get_msgId()
        dialect = self._dialect
        if number == dialect.MAVLINK_MSG_ID_RLT_PROGRESS:
            return TrainingProgress(*(getattr(message, name) for name in message.fieldnames))
        if number == dialect.MAVLINK_MSG_ID_RLT_EVALUATION:
            return Evaluation(*(getattr(message, name) for name in message.fieldnames))
        self._standing = _identity_of(message) or self._standing
        return _result_of(message)

    def _text_of(self, message: Message) -> StatusText | None:
        """A whole text; a long one comes in pieces of 50 bytes, the last of which is shorter."""
        piece = payload_of(message)[1:51].split(b"\0")[0]
        whole = len(piece) < 50 or not message.id
        if message.id:
            pieces = self._text_pieces.setdefault(message.id, {})
            pieces[message.chunk_seq] = piece
            if not whole:
                return None
            del self._text_pieces[message.id]
            piece = b"".join(pieces[index] for index in sorted(pieces))
        text = StatusText(message.severity, piece.decode(errors="replace"))
        if text.severity <= SEVERITY_ERROR:
            self._last_error_text = text.text
        return text

    # -- files -------------------------------------------------------------------------------------

    def send(self, payload: bytes) -> None:
        """Sends a payload of the file transfer protocol."""
        message = self._dialect.MAVLink_file_transfer_protocol_message(0, *self._board, payload)
        self._write(self._encoder.encode(message))

    def receive(self, timeout_s: float) -> bytes | None:
        """The next payload of the file transfer protocol."""
        deadline = self._clock() + timeout_s
        while not self._files_inbox:
            left_s = deadline - self._clock()
            if left_s <= 0.0:
                return None
            self._receive(left_s)
        return self._files_inbox.popleft()

    def download(self, path: str, progress: Progress | None = None) -> bytes:
        """Fetches a file of the board."""
        self._files_inbox.clear()
        return FileTransfer(self).download(path, progress)

    def upload_checkpoint(self, image: bytes, progress: Progress | None = None) -> None:
        """Puts a checkpoint into the board's memory, which verifies it and is then paused."""
        self._files_inbox.clear()
        self._last_error_text = ""
        FileTransfer(self).upload(CHECKPOINT_PATH, image, progress)
        if self.identity().state not in (State.PAUSED, State.FINISHED):
            raise DamagedFileError(
                f"the board on {self.description} refuses the checkpoint: "
                f"{self._last_error_text or 'it arrived damaged'}; try again"
            )

    def close(self) -> None:
        self.link.close()

    def __enter__(self) -> BoardSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _text(value: Any) -> str:
    raw = value if isinstance(value, bytes) else str(value).encode(errors="replace")
    return raw.split(b"\0")[0].decode(errors="replace")


def _identity_of(message: Message) -> Identity | None:
    if message.get_type() != "RLT_IDENTITY":
        return None
    return Identity(
        experiment=_text(message.experiment),
        board=_text(message.board),
        device=_text(message.device),
        revision=_text(message.revision),
        fingerprint=message.fingerprint,
        protocol_version=message.protocol_version,
        state=message.state,
        counts_instructions=message.counter == 1,
        learner_bytes=message.learner_bytes,
        replay_bytes=message.replay_bytes,
        scratch_bytes=message.scratch_bytes,
        unique_id=bytes(message.unique_id).hex(),
    )


def _result_of(message: Message) -> Result | None:
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


def _parameter_of(message: Message, name: str) -> int | None:
    """The bits of the named parameter, from the payload: a Python float would change some."""
    if message.get_type() != "PARAM_VALUE" or _text(message.param_id) != name:
        return None
    return int.from_bytes(payload_of(message)[:4].ljust(4, b"\0"), "little")


def _acknowledgement_of(message: Message, command: int) -> int | None:
    if message.get_type() != "COMMAND_ACK" or message.command != command:
        return None
    result: int = message.result
    return result
