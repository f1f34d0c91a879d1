"""The policies of a board: slots, trial, confirmation and the way back; docs/protocol.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rltools_host.clients.file_packet import Progress, mavlink_crc32
from rltools_host.clients.files import CANDIDATE_PATH, CONTRACT_PATH, FileClient
from rltools_host.clients.messages import (
    Action,
    ExecutorCounts,
    PolicySlot,
    SlotUse,
    action_of,
    executor_counts_of,
    policy_slot_of,
)
from rltools_host.clients.refusals import DROP_REASONS, refusal, text_of_number
from rltools_host.errors import RefusedError, VerificationError
from rltools_host.link.connection import EVERYONE, Connection
from rltools_host.link.exchange import Exchange
from rltools_host.link.framing import Dialect, Message

PART_FLOATS = 48  # of an observation that one RLT_OBSERVATION has
NUMBER_DIGITS = 6  # of an image's SHA-256, which commands name it by: as many as a float holds


@dataclass(frozen=True)
class Slots:
    """Both slots of a board at one time."""

    slots: tuple[PolicySlot, ...]

    def with_use(self, use: int) -> PolicySlot | None:
        return next((slot for slot in self.slots if slot.use == use), None)

    @property
    def active(self) -> PolicySlot | None:
        return self.with_use(SlotUse.ACTIVE)

    @property
    def trial(self) -> PolicySlot | None:
        return self.with_use(SlotUse.TRIAL)

    @property
    def acting(self) -> PolicySlot | None:
        return self.trial or self.active

    @property
    def slot_bytes(self) -> int:
        return self.slots[0].slot_bytes

    @property
    def last_drop(self) -> int:
        return self.slots[0].last_drop

    @property
    def refusal(self) -> str:
        """What the board found wrong with the last image; empty where nothing."""
        return refusal(self.slots[0].refused_error, self.slots[0].refused_reason)


class PolicyClient:
    """Brings policies to a board and decides which one acts.

    What became of a command is read from the slots behind its acknowledgement, so that it does not
    matter which of the two was lost.
    """

    def __init__(self, connection: Connection, files: FileClient) -> None:
        self._connection = connection
        self._files = files
        self._tick = 0

    # -- how the board stands ----------------------------------------------------------------------

    def slots(self) -> Slots:
        number = self._dialect.MAVLINK_MSG_ID_RLT_POLICY_SLOT
        found: dict[int, PolicySlot] = {}

        def request() -> None:
            found.clear()  # what arrives late belongs to another time
            self._connection.request_message(number)

        def all_of(message: Message) -> Slots | None:
            slot = policy_slot_of(message)
            if slot is None:
                return None
            found[slot.slot] = slot
            if len(found) < slot.slots:
                return None
            return Slots(tuple(found[index] for index in sorted(found)))

        with Exchange(self._connection, "RLT_POLICY_SLOT") as exchange:
            return exchange.ask(request, all_of, "its policies")

    def executor(self) -> ExecutorCounts:
        number = self._dialect.MAVLINK_MSG_ID_RLT_EXECUTOR
        with Exchange(self._connection, "RLT_EXECUTOR") as exchange:
            return exchange.ask(
                lambda: self._connection.request_message(number),
                executor_counts_of,
                "its executor's counts",
            )

    def contract(self) -> bytes:
        """What the board's policies must be made for (docs/protocol.md, "Policies")."""
        return self._files.download(CONTRACT_PATH)

    # -- staging -----------------------------------------------------------------------------------

    def upload(self, image: bytes, sha256: str, progress: Progress | None = None) -> PolicySlot:
        """Stages an image: the board checks it, and reads it back right."""
        self._files.upload(CANDIDATE_PATH, image, progress)
        slots = self.slots()
        staged = slots.with_use(SlotUse.STAGED)
        if staged is None:
            why = slots.refusal or "it arrived damaged"
            raise RefusedError(f"the board on {self._name} refuses the policy ({why})")
        stated = self._files.crc32(CANDIDATE_PATH)
        if staged.sha256 != sha256 or stated != mavlink_crc32(image):
            raise VerificationError(
                f"the board on {self._name} holds other bytes than it was sent: SHA-256 "
                f"{staged.sha256[:12]}…, not {sha256[:12]}…; push again"
            )
        return staged

    # -- commands ----------------------------------------------------------------------------------

    def try_candidate(self, sha256: str, deadline_s: float) -> Slots:
        """The staged image acts, until it is confirmed or the deadline has passed."""
        command = self._dialect.MAV_CMD_RLT_TRY
        accepted = self._command(command, "try a policy", deadline_s, number_of(sha256))
        slots = self.slots()
        if slots.trial is None or slots.trial.sha256 != sha256:
            raise self._refused("try the policy", slots, accepted)
        return slots

    def confirm(self, sha256: str) -> Slots:
        """The policy in trial becomes the active one."""
        command = self._dialect.MAV_CMD_RLT_CONFIRM
        accepted = self._command(command, "confirm a policy", 0.0, number_of(sha256))
        slots = self.slots()
        if slots.trial is not None or slots.active is None or slots.active.sha256 != sha256:
            raise self._refused("confirm the policy", slots, accepted)
        return slots

    def roll_back(self, sha256: str) -> Slots:
        """Ends the trial of this image, or returns from this active one to the one before.

        Where it does not act any more, there is nothing to do.
        """
        before = self.slots()
        if before.acting is None or before.acting.sha256 != sha256:
            return before
        command = self._dialect.MAV_CMD_RLT_ROLL_BACK
        accepted = self._command(command, "roll back", 0.0, number_of(sha256))
        slots = self.slots()
        if slots.acting is not None and slots.acting.slot == before.acting.slot:
            raise self._refused("roll back", slots, accepted)
        return slots

    def arm(self, armed: bool) -> None:
        command = self._dialect.MAV_CMD_COMPONENT_ARM_DISARM
        verb = "arm" if armed else "disarm"
        if not self._command(command, verb, float(armed)) or self.executor().armed != armed:
            raise RefusedError(f"the board on {self._name} refuses to {verb}")

    def _command(
        self, command: int, what: str, parameter: float = 0.0, second: float = 0.0
    ) -> bool:
        """Sends a command until it is acknowledged; whether the board accepts it."""
        with Exchange(self._connection, "COMMAND_ACK") as exchange:
            result = exchange.ask(
                lambda: self._connection.send_command(
                    command, parameter, exchange.sent - 1, second_parameter=second
                ),
                lambda message: message.result if message.command == command else None,
                f"the command to {what}",
            )
        accepted: int = self._dialect.MAV_RESULT_ACCEPTED
        return bool(result == accepted)

    def _refused(self, verb: str, slots: Slots, accepted: bool) -> RefusedError:
        """Why a command has not led to what it should: the board says no more than that."""
        if self.executor().armed:
            why = "it is armed, disarm it first"
        elif slots.trial is not None:
            left_s = slots.trial.trial_left_ms / 1000.0
            why = f"another policy is in trial, for {left_s:.1f} s more"
        elif verb == "roll back":
            why = "there is no policy before the active one"
        elif slots.with_use(SlotUse.STAGED) is not None:
            why = "it gives no reason, reset it and try again"
        elif slots.last_drop:
            why = text_of_number(slots.last_drop, DROP_REASONS)
        else:
            why = "another program has changed its policies meanwhile"
        refuses = "did not" if accepted else "refuses to"
        return RefusedError(f"the board on {self._name} {refuses} {verb}: {why}")

    # -- observations ------------------------------------------------------------------------------

    def forward(self, observation: Sequence[float]) -> Action:
        """What the acting policy's network gives for an observation; nothing acts."""
        self._tick = (self._tick + 1) & 0xFFFFFFFF
        tick = self._tick

        def answer_of(message: Message) -> Action | None:
            action = action_of(message)
            return action if action is not None and action.tick == tick else None

        with Exchange(self._connection, "RLT_ACTION") as exchange:
            return exchange.ask(self._sender(tick, observation), answer_of, "an action")

    def _sender(self, tick: int, observation: Sequence[float]) -> Callable[[], None]:
        """Sends an observation, in parts where it is longer than one."""
        dialect, connection = self._dialect, self._connection
        dimension = len(observation)

        def send() -> None:
            target = connection.target or EVERYONE
            for first in range(0, dimension, PART_FLOATS):
                part = [float(value) for value in observation[first : first + PART_FLOATS]]
                part += [0.0] * (PART_FLOATS - len(part))
                mode = dialect.RLT_OBSERVE_FORWARD
                connection.send(
                    dialect.MAVLink_rlt_observation_message(
                        tick, 0, 0, part, first, dimension, *target, mode
                    )
                )

        return send

    @property
    def _dialect(self) -> Dialect:
        return self._connection.dialect

    @property
    def _name(self) -> str:
        return self._connection.description


def number_of(sha256: str) -> float:
    """How commands name an image."""
    return float(int(sha256[:NUMBER_DIGITS], 16))
