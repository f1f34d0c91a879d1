"""A board with policies behind a link in memory, after docs/protocol.md, "Policies".

It loses answers on demand, and checks no image: what it says of one is set by the test.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fake_files import FakeFileServer
from rltools_host.boards.messages import SlotUse
from scripted_node import ScriptedNode

SLOT_BYTES = 4096
DROPPED_BY_DEADLINE, DROPPED_BY_HOST = 1, 5


def number_of(image: bytes) -> float:
    return float(int.from_bytes(hashlib.sha256(image).digest()[:3], "big"))


class ScriptedPolicies(ScriptedNode):
    """`images` and `uses` are those of the two slots."""

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect)
        self.images = [b"", b""]
        self.uses = [SlotUse.EMPTY, SlotUse.EMPTY]
        self.armed = False
        self.last_drop = 0
        self.refuses = (0, 0)  # the next image: error and reason
        self.refused = (0, 0)
        self.forgets_roll_backs = False  # and denies their repetitions, as early firmware does
        self.deadline_passes = False  # before the next command
        self.commands: list[tuple[int, float, float, int]] = []
        self.trials: list[float] = []  # numbers of trials, in the same order
        self.observations: list[Any] = []
        self.action_bits = [0x80000000]  # of an answer: the float -0
        self.files = FakeFileServer(
            self._file, self._may_write, self._take, clock=self.link.clock, seed=1
        )
        self._rolled_back = 0.0

    @property
    def numbers(self) -> list[int]:
        """Of the commands that came, without requests for messages."""
        asked = self._dialect.MAV_CMD_REQUEST_MESSAGE
        return [command[0] for command in self.commands if command[0] != asked]

    def put(self, use: int, image: bytes, slot: int) -> None:
        self.images[slot], self.uses[slot] = image, use

    def find(self, *uses: int) -> int | None:
        return next((slot for slot in range(2) if self.uses[slot] in uses), None)

    # -- messages ----------------------------------------------------------------------------------

    def _observe(self, part: Any) -> None:
        self.observations.append(part)
        if part.first + 48 < part.dimension:
            return
        values = np.zeros(24, np.uint32)
        values[: len(self.action_bits)] = self.action_bits
        self._send(
            self._dialect.MAVLink_rlt_action_message(
                part.tick, 12, 0, 1, 2, values.view(np.float32).tolist(), [7, 8, *[0] * 14]
            )
        )

    def _obey(self, message: Any) -> None:
        dialect = self._dialect
        command = message.command, message.param1, message.param2, message.confirmation
        self.commands.append(command)
        self.trials.append(message.param3)
        if self.deadline_passes and message.command != dialect.MAV_CMD_REQUEST_MESSAGE:
            self.deadline_passes = False
            self._drop(DROPPED_BY_DEADLINE)
        self._acknowledge(message.command, self._carry_out(*command))
        if message.command == dialect.MAV_CMD_REQUEST_MESSAGE:
            self._tell(int(message.param1))

    def _tell(self, number: int) -> None:
        dialect = self._dialect
        if number == dialect.MAVLINK_MSG_ID_RLT_POLICY_SLOT:
            self._send(*(self._slot(slot) for slot in range(2)))
        elif number == dialect.MAVLINK_MSG_ID_RLT_EXECUTOR:
            counts = [10, 1, 2, 3, [*range(16)], int(self.armed)]
            self._send(dialect.MAVLink_rlt_executor_message(*counts))

    def _slot(self, slot: int) -> Any:
        image, use = self.images[slot], self.uses[slot]
        digest = hashlib.sha256(image).digest() if use else bytes(32)
        return self._dialect.MAVLink_rlt_policy_slot_message(
            SLOT_BYTES,
            len(image) if use else 0,
            400,
            7,
            2500 if use == SlotUse.TRIAL else 0,
            3,
            slot,
            2,
            use,
            self.last_drop,
            *self.refused,
            list(digest),
            [1] * 32,
            b"pushed",
            b"Somewhere",
        )

    # -- what commands do --------------------------------------------------------------------------

    def _carry_out(self, command: int, _: float, second: float, repetition: int) -> bool:
        dialect = self._dialect
        if command == dialect.MAV_CMD_RLT_TRY:
            return self._try(second, repetition)
        if command == dialect.MAV_CMD_RLT_CONFIRM:
            return self._confirm(second, repetition)
        if command == dialect.MAV_CMD_RLT_ROLL_BACK:
            return self._roll_back(second, repetition)
        return True

    def _is(self, slot: int | None, number: float) -> bool:
        return slot is not None and number_of(self.images[slot]) == number

    def _try(self, number: float, repetition: int) -> bool:
        if (trial := self.find(SlotUse.TRIAL)) is not None:
            return bool(repetition) and self._is(trial, number)
        staged = self.find(SlotUse.STAGED)
        if self.armed or staged is None or not self._is(staged, number):
            return False
        self.uses[staged] = SlotUse.TRIAL
        self._rolled_back = 0.0
        return True

    def _confirm(self, number: float, repetition: int) -> bool:
        trial = self.find(SlotUse.TRIAL)
        if trial is None:
            return bool(repetition) and self._is(self.find(SlotUse.ACTIVE), number)
        if not self._is(trial, number):
            return False
        self.uses[1 - trial] = SlotUse.PREVIOUS if self.uses[1 - trial] else SlotUse.EMPTY
        self.uses[trial] = SlotUse.ACTIVE
        return True

    def _roll_back(self, number: float, repetition: int) -> bool:
        if repetition and number == self._rolled_back:
            return not self.forgets_roll_backs
        trial, active = self.find(SlotUse.TRIAL), self.find(SlotUse.ACTIVE)
        if self.armed or not self._is(active if trial is None else trial, number):
            return False
        if trial is None:
            previous = self.find(SlotUse.PREVIOUS)
            if previous is None or active is None:
                return False
            self.uses[previous], self.uses[active] = SlotUse.ACTIVE, SlotUse.EMPTY
            self.last_drop = DROPPED_BY_HOST
        else:
            self._drop(DROPPED_BY_HOST)
        self._rolled_back = number
        return True

    def _drop(self, reason: int) -> None:
        if (slot := self.find(SlotUse.TRIAL, SlotUse.STAGED)) is not None:
            self.uses[slot] = SlotUse.EMPTY
            self.last_drop = reason

    # -- files -------------------------------------------------------------------------------------

    def _file(self, path: str) -> bytes | None:
        slot = self.find(SlotUse.STAGED, SlotUse.TRIAL, SlotUse.PREVIOUS)
        return self.images[slot] if path == "/candidate.rltp" and slot is not None else None

    def _may_write(self, path: str) -> bool:
        return path == "/candidate.rltp" and not self.armed

    def _take(self, image: bytes) -> None:
        slot = 1 if self.uses[0] == SlotUse.ACTIVE else 0
        self.refused = self.refuses
        self.put(SlotUse.EMPTY if any(self.refuses) else SlotUse.STAGED, image, slot)
