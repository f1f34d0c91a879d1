"""The client of a board's policies: slots, trial, confirmation and roll-back; docs/protocol.md."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rltools_host.boards.connection import Connection, Exchange, ask
from rltools_host.boards.file_transfer import (
    CANDIDATE_PATH,
    CONTRACT_PATH,
    SAMPLES_PATH,
    FileClient,
)
from rltools_host.boards.framing import Dialect, Message
from rltools_host.boards.messages import (
    DROP_REASONS,
    PART_FLOATS,
    Action,
    PolicySlot,
    Progress,
    SlotUse,
    mavlink_crc32,
    policy_slot_of,
    refusal,
    text_of_number,
)
from rltools_host.boards.observations import (
    MESSAGES_UNDER_WAY,
    action_at,
    answers_to,
    send_observation,
)
from rltools_host.errors import BoardMismatchError, RefusedError

MEASUREMENT_TIMEOUT_S = 5.0  # then its end is asked for: a question would disturb it
MAX_SAMPLES = 1024  # of one measurement
NUMBER_DIGITS = 6  # of an image's SHA-256, which commands name it by: as many as a float holds

ANY_TRIAL, LARGEST_TRIAL = 0.0, (1 << 24) - 1  # numbers of trials, which a float holds


class Measured:
    """The subjects of RLT_MEASURED."""

    NOTHING, FORWARD, TICK = range(3)


@dataclass(frozen=True)
class Tick:
    """A call of the executor: its time, and the observation with the time when it was taken."""

    now_us: int
    taken_us: int
    observation: tuple[float, ...]


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
        """Return what the board found wrong with the last image; empty if nothing."""
        return refusal(self.slots[0].refused_error, self.slots[0].refused_reason)


class PolicyClient:
    """The client that brings policies to a board and decides which one acts.

    The result of a command is read from the slots after its acknowledgement, so that it does not
    matter which of the two was lost.
    """

    def __init__(self, connection: Connection, files: FileClient) -> None:
        self._connection = connection
        self._files = files
        self._tick = 0
        self._trial = ANY_TRIAL  # that this client has begun, and that has not ended

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

    def is_armed(self) -> bool:
        """Return whether the board's executor acts on a vehicle: then its policies stay."""
        return ask(
            self._connection,
            "RLT_EXECUTOR",
            lambda message: bool(message.armed),
            "its executor's counts",
        )

    def contract(self) -> bytes:
        """Return the contract that the board's policies must be made for (docs/protocol.md,
        "Policies")."""
        return self._files.download(CONTRACT_PATH)

    # -- staging -----------------------------------------------------------------------------------

    def upload(
        self, image: bytes, sha256: str, progress: Progress | None = None, unknown: str = ""
    ) -> PolicySlot:
        """Send an image, which the board checks, and compare its checksum.

        `unknown` is a clause about fields that older firmware calls malformed.
        """
        try:
            self._files.upload(CANDIDATE_PATH, image, progress)
        except BoardMismatchError:  # which the files cannot explain
            slots = self.slots()
            if slots.trial is None and not self.is_armed():
                raise
            raise self._refused("take the policy", slots, accepted=False) from None
        slots = self.slots()
        staged = slots.with_use(SlotUse.STAGED)
        if staged is None:
            why = slots.refusal or "it arrived damaged"
            clause = unknown if why.startswith("malformed") else ""
            raise RefusedError(f"the board on {self._name} refuses the policy ({why}){clause}")
        stated = self._files.crc32(CANDIDATE_PATH)
        if staged.sha256 != sha256 or stated != mavlink_crc32(image):
            raise RefusedError(
                f"the board on {self._name} holds other bytes than it was sent: SHA-256 "
                f"{staged.sha256[:12]}…, not {sha256[:12]}…; push again"
            )
        return staged

    # -- commands ----------------------------------------------------------------------------------

    def try_candidate(self, sha256: str, deadline_s: float) -> Slots:
        """Let the staged image act, until it is confirmed or the deadline has passed."""
        self._trial = float(1 + secrets.randbelow(LARGEST_TRIAL))
        command = self._dialect.MAV_CMD_RLT_TRY
        accepted = self._command(
            command, "try a policy", deadline_s, number_of(sha256), self._trial
        )
        slots = self.slots()
        if slots.trial is None or slots.trial.sha256 != sha256:
            raise self._refused("try the policy", slots, accepted)
        return slots

    def confirm(self, sha256: str) -> Slots:
        """Make the policy in trial the active one."""
        command = self._dialect.MAV_CMD_RLT_CONFIRM
        accepted = self._command(command, "confirm a policy", 0.0, number_of(sha256), self._trial)
        slots = self.slots()
        if slots.trial is not None or slots.active is None or slots.active.sha256 != sha256:
            raise self._refused("confirm the policy", slots, accepted)
        self._trial = ANY_TRIAL
        return slots

    def roll_back(self, sha256: str) -> Slots:
        """End the trial of this image, or return from this active one to the one before.

        Do nothing if it does not act any more.
        """
        before = self.slots()
        if before.acting is None or before.acting.sha256 != sha256:
            return before
        command = self._dialect.MAV_CMD_RLT_ROLL_BACK
        accepted = self._command(command, "roll back", 0.0, number_of(sha256), self._trial)
        slots = self.slots()
        if slots.acting is not None and slots.acting.slot == before.acting.slot:
            raise self._refused("roll back", slots, accepted)
        self._trial = ANY_TRIAL
        return slots

    def _command(self, command: int, what: str, *parameters: float) -> bool:
        with Exchange(self._connection, "COMMAND_ACK") as exchange:
            return exchange.command(command, what, *parameters)

    def _refused(self, verb: str, slots: Slots, accepted: bool) -> RefusedError:
        """Return the error for a command without its effect, with the reason as far as the slots
        show it."""
        if self.is_armed():
            why = "it is armed, disarm it first"
        elif slots.trial is not None:
            left_s = slots.trial.trial_left_ms / 1000.0
            why = f"another policy is in trial, for {left_s:.1f} s more"
        elif verb == "roll back":
            why = "there is no policy before the active one"
        elif slots.with_use(SlotUse.STAGED) is not None:
            why = "no reason is known, reset it and try again"
        elif slots.last_drop:
            why = text_of_number(slots.last_drop, DROP_REASONS)
        else:
            why = "another program has changed its policies meanwhile"
        refuses = "did not" if accepted else "refuses to"
        return RefusedError(f"the board on {self._name} {refuses} {verb}: {why}")

    # -- observations ------------------------------------------------------------------------------

    def forward(self, observation: Sequence[float]) -> Action:
        """Return what the acting policy's network computes for an observation; nothing acts."""
        return self.forward_all([observation])[0]

    def forward_all(
        self, observations: Sequence[Sequence[float]], progress: Progress | None = None
    ) -> list[Action]:
        """Return the same for many observations, several of which are pending at once."""
        mode = self._dialect.RLT_OBSERVE_FORWARD
        of_tick = {self._next_tick(): observation for observation in observations}
        parts = max((len(values) - 1) // PART_FLOATS + 1 for values in observations)
        window = max(1, MESSAGES_UNDER_WAY // parts)

        def send(tick: int) -> None:
            send_observation(self._connection, tick, of_tick[tick], mode)

        return answers_to(self._connection, send, list(of_tick), window, progress)

    def act_through(self, ticks: Sequence[Tick]) -> list[Action]:
        """Return what the executor does from a reset on, call after call.

        A repeated call would be another one. If an answer is lost, the sequence starts again.
        """
        dialect = self._dialect
        modes = [dialect.RLT_OBSERVE_BEGIN, *[dialect.RLT_OBSERVE_STEP] * (len(ticks) - 1)]
        with Exchange(self._connection, "RLT_ACTION") as exchange:
            for _ in exchange.attempts(lambda: None):
                actions: list[Action] = []
                for mode, call in zip(modes, ticks, strict=True):
                    tick = self._next_tick()
                    times = call.now_us, call.taken_us
                    send_observation(self._connection, tick, call.observation, mode, *times)
                    action = exchange.wait(action_at(tick))
                    if action is None:
                        break
                    actions.append(action)
                else:
                    return actions
        raise exchange.unanswered("an action")

    def _next_tick(self) -> int:
        self._tick = (self._tick + 1) & 0xFFFFFFFF
        return self._tick

    # -- cost --------------------------------------------------------------------------------------

    def measure(self, what: int, count: int) -> tuple[int, ...]:
        """Return `count` costs of the acting policy, in counts of the board's counter."""
        refusal_text = f"the board on {self._name} does not measure"
        with Exchange(self._connection, "COMMAND_ACK", "RLT_MEASUREMENT") as exchange:
            command = self._dialect.MAV_CMD_RLT_MEASURE
            if not exchange.command(command, "measure", float(what), float(count)):
                raise RefusedError(f"{refusal_text}: it is armed, or no policy acts")
            while True:
                self._wait_for_measurement(exchange)
                try:
                    content = self._files.download(SAMPLES_PATH)
                except BoardMismatchError:
                    if exchange.sent == 1:
                        raise
                    continue  # the command came twice, and has begun the measurement again
                if len(content) != 4 * count:
                    raise RefusedError(f"{refusal_text} to the end: its policy was dropped")
                return struct.unpack(f"<{count}I", content)

    def _wait_for_measurement(self, exchange: Exchange) -> None:
        number = self._dialect.MAVLINK_MSG_ID_RLT_MEASUREMENT
        self._connection.expect_signs()
        while not exchange.wait(
            lambda message: message.get_type() == "RLT_MEASUREMENT" or None, MEASUREMENT_TIMEOUT_S
        ):
            self._connection.check_silence()
            self._connection.request_message(number)

    @property
    def _dialect(self) -> Dialect:
        return self._connection.dialect

    @property
    def _name(self) -> str:
        return self._connection.description


def number_of(sha256: str) -> float:
    """Return the number by which commands name an image."""
    return float(int(sha256[:NUMBER_DIGITS], 16))
