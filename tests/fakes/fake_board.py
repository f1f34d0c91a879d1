"""A board in a thread of the test: speaks the protocol of docs/protocol.md, with faults on demand.

Its training is a chain of hashes: each step's state follows from the one before, so that a resumed
run ends with the same bytes as an uninterrupted one only if every byte of the checkpoint came back.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import random
import select
import socket
import struct
import threading
import time
import tty
from collections.abc import Callable
from typing import Any

from fake_experiment import FINGERPRINT, HYPERPARAMETERS, STATE_BYTES
from fake_faults import Faults
from fake_files import FakeFileServer
from rltools_host.boards.connection import EVERYONE, HOST, Address
from rltools_host.boards.framing import FrameDecoder, FrameEncoder, payload_of
from rltools_host.boards.messages import State
from rltools_host.boards.session import PROTOCOL_VERSION, value_bits
from rltools_host.boards.transport import SocketLink
from rltools_host.errors import RltError
from rltools_host.runs.checkpoint import IMAGE_HEADER, build_image, parse_image
from rltools_host.runs.saves import (
    HEADER,
    MAGIC,
    VERSION,
    image_crc32,
)
from strangers import Strangers

ADDRESS = Address(1, 191)
POLICY = bytes(range(256)) * 3


def next_state(payload: bytes, step: int, learning_rate_bits: int) -> bytes:
    """The state after step `step`, from the one before."""
    seed = hashlib.sha256(payload + struct.pack("<II", step, learning_rate_bits)).digest()
    return hashlib.shake_128(seed).digest(STATE_BYTES - 4) + struct.pack("<I", step)


def policy_of(payload: bytes, step: int = 0) -> bytes:
    """A policy image's header and some bytes: it states the training state that it comes from."""
    fields = [0] * 7 + [step] + [0] * 3 + [hashlib.sha256(payload).digest(), b"fake", b"Fake"]
    image = HEADER.pack(MAGIC, VERSION, HEADER.size, 0, *fields) + POLICY
    return image[:12] + image_crc32(image).to_bytes(4, "little") + image[16:]


def initial_state(seed: int) -> bytes:
    return next_state(b"", 0, seed)


def metrics_at(step: int) -> list[float]:
    """Of every place in a progress message: the last one of the experiment's is not known."""
    values = [0.5, step / 1024, math.nan]
    return values + [0.0] * (16 - len(values))


class FakeBoard:
    """Runs from construction to `stop`, behind `link`, or with `pty` on a pseudo-terminal."""

    def __init__(
        self,
        dialect: Any,
        *,
        faults: Faults | None = None,
        experiment: str = "fake-td3",
        board: str = "host",
        protocol_version: int = PROTOCOL_VERSION,
        environments: int = 1,
        pty: bool = False,
        seconds_per_step: float = 0.0,
        waits_for_pause_at: int | None = None,
        on_pause: Callable[[], None] | None = None,
        address: Address = ADDRESS,
        return_of: Callable[[int], float] = lambda step: -1000.0 + step,
        rests: bool = False,
    ) -> None:
        self.faults = faults or Faults()
        self.state = State.IDLE
        self.values = {p.name: value_bits(p.type, p.default) for p in HYPERPARAMETERS}
        self.port = ""
        self.parameters_set: list[str] = []
        self.commands: list[int] = []
        self._table = {p.name: p for p in HYPERPARAMETERS}
        self._dialect = dialect
        self._experiment, self._board = experiment, board
        self._protocol_version = protocol_version
        self._environments = environments  # that take a step each at once
        self._seconds_per_step = seconds_per_step
        self._waits_for_pause_at = waits_for_pause_at  # at this step, however late the host is
        self._on_pause = on_pause  # called before a pause is answered
        self._return_of = return_of  # the mean of an evaluation at a step
        self._rests = rests  # where the host asks for it, which older firmware does not know
        self._rest_above = math.nan
        self._is_best = False
        self._reported = 0  # at this step
        self._tokens = {dialect.MAV_CMD_RLT_START: 0.0, dialect.MAV_CMD_RLT_RESUME: 0.0}
        self._random = random.Random(self.faults.seed)
        self._decoder = FrameDecoder(dialect)
        self.address = address
        self._encoder = FrameEncoder(dialect, *address)
        self._strangers = Strangers(dialect, address)
        self._payload = b""
        self._step = 0
        self.files = FakeFileServer(
            self._file, lambda _: self.state != State.TRAINING, self._take, seed=self.faults.seed
        )
        self._stopped = threading.Event()
        self._descriptors: list[int] = []
        if pty:
            self._descriptor, slave = os.openpty()
            tty.setraw(slave)
            self.port = os.ttyname(slave)
            self._descriptors = [self._descriptor, slave]
        else:
            board_end, host_end = socket.socketpair()
            self._descriptor = board_end.detach()
            self._descriptors = [self._descriptor]
            self.link = SocketLink("the fake board", host_end)
        self._closed = threading.Lock()
        self._thread = threading.Thread(target=self._guarded, daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the thread and closes what is open."""
        self._stopped.set()
        self._thread.join(10)
        self.unplug()
        if hasattr(self, "link"):
            self.link.close()

    def go_on(self) -> None:
        """Trains past the step at which it would wait for a pause."""
        self._waits_for_pause_at = None

    def finish(self) -> None:
        """Trains to the end, in its own thread."""
        while self.state == State.TRAINING:
            self._train_step()

    def fail(self, text: str) -> None:
        """What is computed is not finite."""
        self.state = State.FAULT
        self._say(2, text)

    def unplug(self) -> None:
        """Closes the board's end of the link."""
        with self._closed:
            for descriptor in self._descriptors:
                os.close(descriptor)
            self._descriptors = []

    @property
    def state_sha256(self) -> str:
        return hashlib.sha256(self._payload).hexdigest()

    def _guarded(self) -> None:
        with contextlib.suppress(OSError):  # unplugged, or the host has gone
            self._run()

    # -- the application -------------------------------------------------------------------------

    def _run(self) -> None:
        heartbeat_at = 0.0
        while not self._stopped.is_set():
            waits = self._step == self._waits_for_pause_at
            training = self.state == State.TRAINING and not waits
            ready, _, _ = select.select([self._descriptor], [], [], 0.0 if training else 0.002)
            if ready:
                received = os.read(self._descriptor, 65536)
                if not received:
                    return
                for message in self._decoder.feed(received):
                    if self._random.random() >= self.faults.drop_from_host:
                        self._handle(message)
            if training and self.state == State.TRAINING:
                self._train_step()
            if time.monotonic() > heartbeat_at:
                heartbeat_at = time.monotonic() + 0.2
                self._send(self._dialect.MAVLink_heartbeat_message(0, 8, 0, 0, 3, 3))

    def _train_step(self) -> None:
        if self._step >= self._number("steps"):
            self._come_to_rest(State.FINISHED)
            return
        if self._seconds_per_step:
            time.sleep(self._seconds_per_step)
        self._step += self._environments
        self._payload = next_state(self._payload, self._step, self.values["learning_rate"])
        if self._step == self.faults.not_finite_at_step:
            self.fail(f"a loss is not finite at step {self._step}")
            return
        if self._is_due("report_every"):
            ended = self._step // 200 - self._reported // 200
            self._reported = self._step
            self._send(
                self._dialect.MAVLink_rlt_progress_message(
                    counter=1000 * self._step,
                    step=self._step,
                    steps=self._number("steps"),
                    updates=max(0, self._step - 100),
                    episodes=self._step // 200,
                    last_return=-float(self._step) if self._step >= 200 else math.nan,
                    best_return=-200.0 if self._step >= 200 else math.nan,
                    metrics=metrics_at(self._step),
                    episodes_ended=ended,
                    episode_return=-float(self._step) if ended else 0.0,
                    episode_length=200.0 if ended else 0.0,
                )
            )
        finished = self._step >= self._number("steps")
        if finished or self._is_due("eval_freq"):
            mean = self._return_of(self._step)
            self._is_best = mean > self._rest_above
            self._send(
                self._dialect.MAVLink_rlt_evaluation_message(
                    1000 * self._step,
                    self._step,
                    self._number("n_eval_episodes"),
                    mean,
                    12.5,
                    -1100.0,
                    -900.0,
                    length_mean=150.0,
                )
            )
        if self._step == self.faults.unplug_at_step:
            self.unplug()
            raise OSError("unplugged")
        if finished:
            self._come_to_rest(State.FINISHED)
        elif self._is_best:
            self._come_to_rest(State.PAUSED)

    def _come_to_rest(self, state: int) -> None:
        self.state = state
        self._send_result()

    def _send_result(self) -> None:
        digest = hashlib.sha256(self._payload).digest()
        if self.faults.wrong_state_sha256:
            digest = bytes(32)
        self._send(
            self._dialect.MAVLink_rlt_result_message(
                1000 * self._step,
                250 * self._step,  # a quarter of the time
                self._step,
                IMAGE_HEADER.size + len(self._payload),
                len(POLICY),
                self.state,
                list(digest),
                is_best=int(self._is_best),
            )
        )

    def _is_due(self, interval: str) -> bool:
        """Whether the last steps have crossed a multiple of the interval."""
        every, before = self._number(interval), self._step - self._environments
        return self._step // every != before // every

    def _number(self, name: str) -> int:
        return self.values[name]

    def _say(self, severity: int, text: str) -> None:
        """A STATUSTEXT, in pieces when it is long."""
        raw = text.encode()
        pieces = [raw[i : i + 50] for i in range(0, len(raw), 50)]
        if len(pieces) > 1 and len(pieces[-1]) == 50:
            pieces.append(b"")
        for index, piece in enumerate(pieces):
            number = 7 if len(pieces) > 1 else 0
            self._send(self._dialect.MAVLink_statustext_message(severity, piece, number, index))

    def _handle(self, message: Any) -> None:
        dialect = self._dialect
        number = message.get_msgId()
        if (message.target_system, message.target_component) not in (self.address, EVERYONE):
            return
        if number == dialect.MAVLINK_MSG_ID_COMMAND_LONG:
            self._command(message)
        elif number == dialect.MAVLINK_MSG_ID_PARAM_SET:
            self._set_parameter(message)
        elif number == dialect.MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL:
            for answer in self.files.answer(payload_of(message)[3:].ljust(251, b"\0")):
                self._send(dialect.MAVLink_file_transfer_protocol_message(0, *HOST, answer))

    def _command(self, message: Any) -> None:
        dialect = self._dialect
        self.commands.append(message.command)
        accepted = True
        after: Callable[[], None] | None = None
        if message.command == dialect.MAV_CMD_REQUEST_MESSAGE:
            if int(message.param1) == dialect.MAVLINK_MSG_ID_RLT_IDENTITY:
                after = self._send_identity
            elif int(message.param1) == dialect.MAVLINK_MSG_ID_NAMED_VALUE_INT:
                after = self._send_stack_use
            elif self.state in (State.PAUSED, State.FINISHED):
                after = self._send_result
            else:
                accepted = False
        elif message.command == dialect.MAV_CMD_RLT_START:
            repeated = message.confirmation > 0 and self._has_obeyed(message)
            accepted = repeated or self.state != State.TRAINING
            if accepted and not repeated:
                self._payload, self._step = initial_state(self.values["seed"]), 0
                self._train(message)
        elif message.command == dialect.MAV_CMD_RLT_RESUME:
            repeated = self._rests and self._has_obeyed(message)
            accepted = repeated or self.state in (State.PAUSED, State.FINISHED)
            if accepted and not repeated:
                self._train(message)
                self._waits_for_pause_at = None
        elif message.command == dialect.MAV_CMD_RLT_PAUSE:
            if self._on_pause is not None:
                self._on_pause()
            accepted = self.state in (State.TRAINING, State.PAUSED, State.FINISHED)
            rest = State.PAUSED if self.state == State.TRAINING else self.state
            after = (lambda: self._come_to_rest(rest)) if accepted else None
        result = dialect.MAV_RESULT_ACCEPTED if accepted else dialect.MAV_RESULT_DENIED
        sender = message.get_srcSystem(), message.get_srcComponent()
        self._send(dialect.MAVLink_command_ack_message(message.command, result, 0, 0, *sender))
        if after is not None:
            after()

    def _has_obeyed(self, message: Any) -> bool:
        return message.param1 == self._tokens[message.command]

    def _train(self, message: Any) -> None:
        self._tokens[message.command] = message.param1
        rests = self._rests and message.param2 == 1
        self._rest_above = message.param3 if rests else math.nan
        self._is_best = False
        self.state = State.TRAINING

    def _send_identity(self) -> None:
        self._send(
            self._dialect.MAVLink_rlt_identity_message(
                FINGERPRINT,
                1000,
                5000,
                2000,
                self._protocol_version,
                self.state,
                0,
                self._experiment.encode(),
                self._board.encode(),
                b"Fake",
                b"r1",
                list(range(16)),
            )
        )

    def _send_stack_use(self) -> None:
        for name, value in ((b"stack", 4096), (b"stack_peak", 1024)):
            self._send(self._dialect.MAVLink_named_value_int_message(0, name, value))

    def _set_parameter(self, message: Any) -> None:
        payload = payload_of(message).ljust(23, b"\0")
        name = payload[6:22].split(b"\0")[0].decode()
        bits = int.from_bytes(payload[:4], "little")
        if name not in self.values:
            return
        parameter = self._table[name]
        if self.faults.strangers:  # another program asks at the same time
            self._send_parameter(name)
            self._send_parameter("seed" if name != "seed" else "steps")
        value = bits if parameter.type == "U32" else struct.unpack("<f", payload[:4])[0]
        if parameter.minimum <= value <= parameter.maximum and self.faults.refuse_parameter != name:
            self.values[name] = bits
            self.parameters_set.append(name)
        elif not self.faults.silent_refusals:
            self._say(3, "hyperparameter refused: out of bounds")
        self._send_parameter(name)

    def _send_parameter(self, name: str) -> None:
        kind = 5 if self._table[name].type == "U32" else 9
        answer = struct.pack(
            "<IHH16sB", self.values[name], len(self.values), 0, name.encode(), kind
        )
        if self.faults.strangers:
            for frame in self._strangers.parameter_frames(answer):
                self._transmit(frame)
        number = self._dialect.MAVLINK_MSG_ID_PARAM_VALUE
        self._transmit(self._encoder.encode_payload(number, answer))

    # -- the files -------------------------------------------------------------------------------

    def _file(self, path: str) -> bytes | None:
        if self.state not in (State.PAUSED, State.FINISHED):
            return None
        if path == "/policy.rltp":
            return self.faults.other_policy or policy_of(self._payload, self._step)
        if path == "/checkpoint.rltc":
            fingerprint = FINGERPRINT ^ self.faults.wrong_fingerprint
            return build_image(fingerprint, self._step, self._payload)
        return None

    def _take(self, image: bytes) -> None:
        if self.faults.flip_upload:
            image = image[:-1] + bytes((image[-1] ^ 1,))
        try:
            parsed = parse_image(image, "the host")
        except RltError:
            self.state = State.IDLE
            self._say(3, "checkpoint refused: the payload does not match its SHA-256, nothing kept")
            return
        self._payload, self._step, self.state = parsed.payload, parsed.step, State.PAUSED

    # -- the wire --------------------------------------------------------------------------------

    def _send(self, message: Any) -> None:
        if self.faults.strangers:
            for frame in self._strangers.frames_before(message, self._encoder):
                self._transmit(frame)
        frame = self._encoder.encode(message)
        if message.get_type() in self.faults.lose_messages:
            self.faults.lose_messages.discard(message.get_type())
            return
        self._transmit(frame)

    def _transmit(self, frame: bytes) -> None:
        rest = memoryview(self.faults.spoil(frame, self._random))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
