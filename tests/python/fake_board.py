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
from dataclasses import dataclass, field
from typing import Any

from rltools_host.build.experiments import ExperimentDescription, Hyperparameter, StateTensor
from rltools_host.clients.file_transfer import DATA_BYTES, Nak, Opcode, Packet, mavlink_crc32
from rltools_host.clients.session import State, value_bits
from rltools_host.errors import RltError
from rltools_host.link.framing import FrameDecoder, FrameEncoder, payload_of
from rltools_host.link.transport import DescriptorLink
from rltools_host.runs.checkpoint import IMAGE_HEADER, build_image, parse_image

FINGERPRINT = 0x1234ABCD
POLICY = bytes(range(256)) * 3
TENSORS = (
    StateTensor("actor/weights", "F32", (8, 16), 0),
    StateTensor("replay/observation", "F32", (400, 3), 512),
    StateTensor("replay/flags", "U8", (401, 1), 5312),
    StateTensor("progress/step", "U32", (1, 1), 5713),
)
STATE_BYTES = 5717


def _hyperparameters() -> tuple[Hyperparameter, ...]:
    largest = 4294967295.0
    return (
        Hyperparameter("seed", "U32", 0, 0, largest, "", "Seed."),
        Hyperparameter("steps", "U32", 1000, 1, largest, "steps", "Steps in all."),
        Hyperparameter("eval_every", "U32", 100, 1, largest, "steps", "Steps between evaluations."),
        Hyperparameter("eval_episodes", "U32", 10, 1, 1000, "episodes", "Episodes."),
        Hyperparameter("report_every", "U32", 100, 1, largest, "steps", "Steps between reports."),
        Hyperparameter("learning_rate", "F32", 1e-3, 0, 1, "", "Step size."),
        Hyperparameter("adam_epsilon", "F32", 1e-8, 1e-30, 1, "", "Against division by zero."),
    )


def fake_experiment(
    name: str = "fake-td3", fingerprint: int = FINGERPRINT
) -> ExperimentDescription:
    """The description of what the fake board trains."""
    return ExperimentDescription(
        name=name,
        algorithm="TD3",
        fingerprint=fingerprint,
        environment={"name": "Fake"},
        hyperparameters=_hyperparameters(),
        tensors=TENSORS,
        sizes={},
        document={},
    )


def next_state(payload: bytes, step: int, learning_rate_bits: int) -> bytes:
    """The state after step `step`, from the one before."""
    seed = hashlib.sha256(payload + struct.pack("<II", step, learning_rate_bits)).digest()
    return hashlib.shake_128(seed).digest(STATE_BYTES - 4) + struct.pack("<I", step)


def initial_state(seed: int) -> bytes:
    return next_state(b"", 0, seed)


@dataclass
class Faults:
    """What goes wrong on the link, by chance, and what the board does wrong."""

    drop: float = 0.0  # share of frames that are lost
    repeat: float = 0.0  # share of frames that come twice
    flip: float = 0.0  # share of frames with one flipped bit
    noise: float = 0.0  # share of frames with noise before them
    drop_from_host: float = 0.0
    seed: int = 1
    unplug_at_step: int | None = None
    not_finite_at_step: int | None = None
    lose_messages: set[str] = field(default_factory=set)  # types that are lost once each
    wrong_crc32: bool = False
    wrong_state_sha256: bool = False
    refuse_parameter: str | None = None
    silent_after_start: bool = False
    flip_upload: bool = False


class FakeBoard:
    """Runs from construction to `stop`, behind `link`, or with `pty` on a pseudo-terminal."""

    def __init__(
        self,
        dialect: Any,
        *,
        faults: Faults | None = None,
        experiment: str = "fake-td3",
        board: str = "host",
        fingerprint: int = FINGERPRINT,
        protocol_version: int = 1,
        pty: bool = False,
        seconds_per_step: float = 0.0,
        waits_for_pause_at: int | None = None,
        on_pause: Callable[[], None] | None = None,
        talk: Callable[[int], None] | None = None,
    ) -> None:
        self.faults = faults or Faults()
        self.description = "the fake board"
        self.state = State.IDLE
        self.values = {p.name: value_bits(p.type, p.default) for p in _hyperparameters()}
        self.port = ""
        self.parameters_set: list[str] = []
        self.commands: list[int] = []
        self._types = {p.name: p.type for p in _hyperparameters()}
        self._table = {p.name: p for p in _hyperparameters()}
        self._dialect = dialect
        self._experiment, self._board = experiment, board
        self._fingerprint, self._protocol_version = fingerprint, protocol_version
        self._seconds_per_step = seconds_per_step
        self._waits_for_pause_at = waits_for_pause_at  # at this step, however late the host is
        self._on_pause = on_pause  # called before a pause is answered
        self._random = random.Random(self.faults.seed)
        self._decoder = FrameDecoder(dialect)
        self._encoder = FrameEncoder(dialect, 1, 191)
        self._payload = b""
        self._step = 0
        self._start_token = 0.0
        self._upload: bytearray | None = None
        self._last_request = b""
        self._last_reply = b""
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
            host_descriptor = host_end.detach()
            self.link = DescriptorLink("the fake board", host_descriptor, host_descriptor)
        self._closed = threading.Lock()
        target = (lambda: talk(self._descriptor)) if talk else self._run
        self._thread = threading.Thread(target=self._guarded, args=(target,), daemon=True)
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

    def unplug(self) -> None:
        """Closes the board's end of the link."""
        with self._closed:
            for descriptor in self._descriptors:
                os.close(descriptor)
            self._descriptors = []

    @property
    def state_sha256(self) -> str:
        return hashlib.sha256(self._payload).hexdigest()

    def _guarded(self, target: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):  # unplugged, or the host has gone
            target()

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
                if self.faults.silent_after_start:
                    continue
                self._train_step()
            if time.monotonic() > heartbeat_at and not self.faults.silent_after_start:
                heartbeat_at = time.monotonic() + 0.2
                self._send(self._dialect.MAVLink_heartbeat_message(0, 8, 0, 0, 3, 3))

    def _train_step(self) -> None:
        if self._step >= self._number("steps"):
            self._come_to_rest(State.FINISHED)
            return
        if self._seconds_per_step:
            time.sleep(self._seconds_per_step)
        self._step += 1
        self._payload = next_state(self._payload, self._step, self.values["learning_rate"])
        if self._step == self.faults.not_finite_at_step:
            self.state = State.FAULT
            self._say(2, f"critic_1 loss is not finite at step {self._step}")
            return
        if self._step % self._number("report_every") == 0:
            self._send(
                self._dialect.MAVLink_rlt_progress_message(
                    counter=1000 * self._step,
                    step=self._step,
                    steps=self._number("steps"),
                    updates=max(0, self._step - 100),
                    episodes=self._step // 200,
                    last_return=-float(self._step) if self._step >= 200 else math.nan,
                    best_return=-200.0 if self._step >= 200 else math.nan,
                    critic_1_loss=0.5,
                    critic_2_loss=0.25,
                    actor_loss=math.nan,
                )
            )
        finished = self._step >= self._number("steps")
        if finished or self._step % self._number("eval_every") == 0:
            self._send(
                self._dialect.MAVLink_rlt_evaluation_message(
                    1000 * self._step,
                    self._step,
                    self._number("eval_episodes"),
                    -1000.0 + self._step,
                    12.5,
                    -1100.0,
                    -900.0,
                )
            )
        if self._step == self.faults.unplug_at_step:
            self.unplug()
            raise OSError("unplugged")
        if finished:
            self._come_to_rest(State.FINISHED)

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
                self._step,
                IMAGE_HEADER.size + len(self._payload),
                len(POLICY),
                self.state,
                list(digest),
            )
        )

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
        if number == dialect.MAVLINK_MSG_ID_COMMAND_LONG:
            self._command(message)
        elif number == dialect.MAVLINK_MSG_ID_PARAM_SET:
            self._set_parameter(message)
        elif number == dialect.MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL:
            self._file_request(payload_of(message)[3:].ljust(251, b"\0"))

    def _command(self, message: Any) -> None:
        dialect = self._dialect
        self.commands.append(message.command)
        accepted = True
        after: Callable[[], None] | None = None
        if message.command == dialect.MAV_CMD_REQUEST_MESSAGE:
            if int(message.param1) == dialect.MAVLINK_MSG_ID_RLT_IDENTITY:
                after = self._send_identity
            elif self.state in (State.PAUSED, State.FINISHED):
                after = self._send_result
            else:
                accepted = False
        elif message.command == dialect.MAV_CMD_RLT_START:
            repeated = message.confirmation > 0 and message.param1 == self._start_token
            accepted = repeated or self.state != State.TRAINING
            if accepted and not repeated:
                self._start_token = message.param1
                self._payload, self._step = initial_state(self.values["seed"]), 0
                self.state = State.TRAINING
        elif message.command == dialect.MAV_CMD_RLT_RESUME:
            accepted = self.state in (State.PAUSED, State.FINISHED)
            if accepted:
                self.state = State.TRAINING
                self._waits_for_pause_at = None
        elif message.command == dialect.MAV_CMD_RLT_PAUSE:
            if self._on_pause is not None:
                self._on_pause()
            accepted = self.state == State.TRAINING
            after = (lambda: self._come_to_rest(State.PAUSED)) if accepted else None
        result = dialect.MAV_RESULT_ACCEPTED if accepted else dialect.MAV_RESULT_DENIED
        self._send(dialect.MAVLink_command_ack_message(message.command, result))
        if after is not None:
            after()

    def _send_identity(self) -> None:
        self._send(
            self._dialect.MAVLink_rlt_identity_message(
                self._fingerprint,
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

    def _set_parameter(self, message: Any) -> None:
        payload = payload_of(message).ljust(23, b"\0")
        name = payload[6:22].split(b"\0")[0].decode()
        bits = int.from_bytes(payload[:4], "little")
        if name not in self.values:
            return
        parameter = self._table[name]
        value = bits if parameter.type == "U32" else struct.unpack("<f", payload[:4])[0]
        if parameter.minimum <= value <= parameter.maximum and self.faults.refuse_parameter != name:
            self.values[name] = bits
            self.parameters_set.append(name)
        kind = 5 if parameter.type == "U32" else 9
        answer = struct.pack(
            "<IHH16sB", self.values[name], len(self.values), 0, name.encode(), kind
        )
        self._transmit(
            self._encoder.encode_payload(self._dialect.MAVLINK_MSG_ID_PARAM_VALUE, answer)
        )

    # -- the files -------------------------------------------------------------------------------

    def _file(self, path: str) -> bytes | None:
        if self.state not in (State.PAUSED, State.FINISHED):
            return None
        if path == "/policy.rltp":
            return POLICY
        if path == "/checkpoint.rltc":
            return build_image(self._fingerprint, self._step, self._payload)
        return None

    def _file_request(self, raw: bytes) -> None:
        request = Packet.parse(raw)
        if request is None:
            return
        if raw == self._last_request and request.opcode != Opcode.BURST_READ_FILE:
            self._send_file(self._last_reply)
            return
        self._last_request = raw
        if request.opcode == Opcode.BURST_READ_FILE:
            self._burst(request)
            return
        try:
            data, offset = self._file_answer(request, raw)
            opcode = Opcode.ACK
        except _Refused as refused:
            data, offset, opcode = bytes((refused.reason,)), request.offset, Opcode.NAK
        reply = Packet(
            (request.sequence + 1) & 0xFFFF, 1, opcode, request.opcode, False, offset, data
        )
        self._last_reply = reply.pack()
        self._send_file(self._last_reply)

    def _file_answer(self, request: Packet, raw: bytes) -> tuple[bytes, int]:
        opcode, offset = request.opcode, request.offset
        if opcode == Opcode.RESET_SESSIONS:
            self._upload = None
        elif opcode in (Opcode.OPEN_FILE_RO, Opcode.CALC_FILE_CRC32):
            content = self._file(request.data.decode())
            if content is None:
                raise _Refused(Nak.FILE_NOT_FOUND)
            if opcode == Opcode.CALC_FILE_CRC32:
                crc = mavlink_crc32(content) ^ self.faults.wrong_crc32
                return crc.to_bytes(4, "little"), 0
            self._open = content
            return len(content).to_bytes(4, "little"), 0
        elif opcode == Opcode.READ_FILE:
            size = raw[4]
            if offset >= len(self._open):
                raise _Refused(Nak.END_OF_FILE)
            return self._open[offset : offset + size], offset
        elif opcode == Opcode.CREATE_FILE:
            if self.state == State.TRAINING:
                raise _Refused(Nak.FILE_PROTECTED)
            self._upload = bytearray()
        elif opcode == Opcode.WRITE_FILE:
            if self._upload is None:
                raise _Refused(Nak.INVALID_SESSION)
            end = offset + len(request.data)
            self._upload.extend(bytes(max(0, end - len(self._upload))))
            self._upload[offset:end] = request.data
        elif opcode == Opcode.TERMINATE_SESSION:
            if self._upload is not None:
                self._take(bytes(self._upload))
            self._upload = None
        else:
            raise _Refused(Nak.UNKNOWN_COMMAND)
        return b"", offset

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

    def _burst(self, request: Packet) -> None:
        """At most 20 packets, so that long files take several bursts."""
        offset = request.offset
        for index in range(20):
            data = self._open[offset : offset + DATA_BYTES]
            last = index == 19 or offset + len(data) >= len(self._open)
            sequence = (request.sequence + 1 + index) & 0xFFFF
            kind = Opcode.BURST_READ_FILE
            packet = Packet(sequence, 1, Opcode.ACK, kind, last, offset, data)
            self._send_file(packet.pack())
            offset += len(data)
            if last:
                return

    def _send_file(self, payload: bytes) -> None:
        self._send(self._dialect.MAVLink_file_transfer_protocol_message(0, 255, 190, payload))

    # -- the wire --------------------------------------------------------------------------------

    def _send(self, message: Any) -> None:
        frame = self._encoder.encode(message)
        if message.get_type() in self.faults.lose_messages:
            self.faults.lose_messages.discard(message.get_type())
            return
        self._transmit(frame)

    def _transmit(self, frame: bytes) -> None:
        faults, chance = self.faults, self._random
        if chance.random() < faults.drop:
            return
        if chance.random() < faults.flip:
            damaged = bytearray(frame)
            damaged[chance.randrange(len(frame))] ^= 1 << chance.randrange(8)
            frame = bytes(damaged)
        if chance.random() < faults.repeat:
            frame += frame
        if chance.random() < faults.noise:
            frame = chance.randbytes(chance.randrange(1, 40)) + frame
        rest = memoryview(frame)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


class _Refused(Exception):
    def __init__(self, reason: Nak) -> None:
        self.reason = reason
