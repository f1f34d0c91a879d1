"""A board whose policy acts, behind a link in memory: docs/executor.md and docs/protocol.md.

It computes as this machine does, but for the faults that a test gives it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from fake_files import FakeFileServer
from rltools_host.boards.file_transfer import FileClient
from rltools_host.boards.framing import payload_of
from rltools_host.boards.messages import EXECUTOR_STATUSES
from rltools_host.boards.policies import MAX_SAMPLES, PolicyClient
from rltools_host.policies.acting import HiddenState
from rltools_host.policies.image import Float32Array, PolicyImage
from scripted_node import ScriptedNode

NUMBERS = {name: number for number, name in enumerate(EXECUTOR_STATUSES)}
MAX_LAYERS, MOST_ACTIONS = 16, 24
OBSERVATION_HEAD, OBSERVATION_BYTES = 20, 192  # of an RLT_OBSERVATION: before its elements, these


class Executor:
    """docs/executor.md with the default limits; statuses in `blind_to` are not looked for."""

    def __init__(self, image: PolicyImage) -> None:
        self.image = image
        self.blind_to: set[str] = set()
        self.safe, self.normalized_safe = image.runner.safe_action()
        self.forgets = False  # its last actions
        self.reset()

    def reset(self) -> None:
        self.due: int | None = None
        self.taken: int | None = None
        self.last = self.safe
        self.given: list[Float32Array] = []  # normalized, the latest last
        self.state = HiddenState(self.image)

    def call(self, now: int, taken: int, values: Float32Array) -> tuple[str, Float32Array]:
        interval = self.image.step_interval_us
        if self.due is None:
            self.due = now
        elif difference(now, self.due) < -(interval // 4) and "held" not in self.blind_to:
            return "held", self.last
        self.due = (self.due + interval) & 0xFFFFFFFF
        status = next((name for name in self.faults(now, taken, values)), "acted")
        self.last, given = self.safe, self.normalized_safe
        if status == "acted":
            inputs = np.array([[*values, *self.past()]], np.float32)
            output, action = self.state.run(now, inputs)
            self.last, given = action[0], np.clip(output[0], -1, 1)
        else:
            self.state.fail(status)
        if not self.forgets:
            self.given.append(given)
        return status, self.last

    def past(self) -> list[float]:
        return [
            self.given[-past.ticks][past.action] if past.ticks <= len(self.given) else 0.0
            for past in self.image.added_inputs
        ]

    def faults(self, now: int, taken: int, values: Float32Array) -> list[str]:
        interval, age = self.image.step_interval_us, difference(now, taken)
        channels = self.image.contract.observations
        is_before = self.taken is not None and difference(taken, self.taken) < 0
        found = [
            ("observation_out_of_order", age < -(interval // 4)),
            ("observation_stale", age > 2 * interval),
            ("observation_out_of_order", is_before),
        ]
        if not any(is_so for _, is_so in found):
            self.taken = taken
        found += [
            ("observation_not_finite", not np.isfinite(values).all()),
            (
                "observation_out_of_range",
                any(
                    not channel.minimum <= value <= channel.maximum
                    for channel, value in zip(channels, values, strict=True)
                ),
            ),
        ]
        return [name for name, is_so in found if is_so and name not in self.blind_to]


def difference(a: int, b: int) -> int:
    return (a - b + 2**31) % 2**32 - 2**31


class ScriptedInfer(ScriptedNode):
    """`client` is what a test calls."""

    def __init__(self, dialect: Any, image: PolicyImage) -> None:
        super().__init__(dialect)
        self.client = PolicyClient(self.connection, FileClient(self.connection))
        self.executor = Executor(image)
        self.heard = 0  # observations, those that get lost too
        self.begun = 0  # resets of the executor
        self.most_waiting = 0  # answers that the host had not read
        self.hears: Callable[[int], bool] = lambda _: True  # of the number of an observation
        self.copies: Callable[[int], int] = lambda _: 1  # of the answer to one
        # Changes a forward pass: tick, status, layers and action.
        self.spoil: Callable[[int, list[int], Float32Array], str | None] = lambda *_: None
        self.stated: Float32Array | None = None  # safe action of a forward pass: the contract's
        self.measured: list[tuple[int, int]] = []  # what, and how many samples
        self.sample: Callable[[int, int], int] = lambda what, index: 10 + 100 * what + index % 3
        self.most_samples = MAX_SAMPLES  # until its policy is dropped
        self.file_is_missing_for = 0  # requests for the samples
        self._samples = b""
        self._image = image
        self.files = FakeFileServer(self._file, clock=self.link.clock)

    # -- observations ------------------------------------------------------------------------------

    def _observe(self, message: Any) -> None:
        number = self.heard
        self.heard += 1
        if not self.hears(number):
            return
        content = payload_of(message).ljust(OBSERVATION_HEAD + OBSERVATION_BYTES, b"\0")
        tick, now, taken = struct.unpack_from("<3I", content)
        values = np.frombuffer(content, "<f4", message.dimension, OBSERVATION_HEAD)
        layers: list[int] = []
        if message.mode == self._dialect.RLT_OBSERVE_FORWARD:
            status, layers, action = self._forward(tick, values)
        else:
            if message.mode == self._dialect.RLT_OBSERVE_BEGIN:
                self.begun += 1
                self.executor.reset()
            status, action = self.executor.call(now, taken, values)
        words = np.zeros(MOST_ACTIONS, np.float32)
        words[: len(action)] = action
        padded = [*layers, *[0] * (MAX_LAYERS - len(layers))]
        for _ in range(self.copies(number)):
            self._send(
                self._dialect.MAVLink_rlt_action_message(
                    tick, 12, NUMBERS[status], len(action), len(layers), words.tolist(), padded
                )
            )
        self.most_waiting = max(self.most_waiting, self.link.waiting)

    def _forward(self, tick: int, values: Float32Array) -> tuple[str, list[int], Float32Array]:
        status, layers = "observation_not_finite", []
        output, action = self._image.runner.run(values)
        if np.isfinite(values).all():
            layers = list(self._image.runner.layer_checksums(values))
            status = "acted" if np.isfinite(output).all() else "output_not_finite"
        if status != "acted" and self.stated is not None:
            action[:] = self.stated
        return self.spoil(tick, layers, action) or status, layers, action

    def _file(self, path: str) -> bytes | None:
        if path != "/samples.u32" or self.file_is_missing_for:
            self.file_is_missing_for -= 1
            return None
        return self._samples or None

    # -- commands ----------------------------------------------------------------------------------

    def _obey(self, message: Any) -> None:
        dialect = self._dialect
        is_done = True
        if message.command == dialect.MAV_CMD_REQUEST_MESSAGE:
            is_done = bool(self._samples)
        self._acknowledge(message.command, is_done)
        if message.command == dialect.MAV_CMD_RLT_MEASURE and is_done:
            what, count = int(message.param1), int(message.param2)
            self.measured.append((what, count))
            count = min(count, self.most_samples)
            samples = [self.sample(what, index) for index in range(count)]
            self._samples = struct.pack(f"<{count}I", *samples)
        if is_done:
            count = len(self._samples) // 4
            self._send(dialect.MAVLink_rlt_measurement_message(count, self.measured[-1][0]))
