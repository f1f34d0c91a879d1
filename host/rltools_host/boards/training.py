"""Training on a board: start, pause and resume it, what it reports, and its result."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterator

from rltools_host.boards.connection import Connection, Exchange, ask
from rltools_host.boards.file_transfer import CHECKPOINT_PATH, FileClient
from rltools_host.boards.framing import SEVERITY_CRITICAL, Dialect, Message, payload_of
from rltools_host.boards.messages import (
    Evaluation,
    Event,
    Identity,
    Progress,
    Report,
    Result,
    State,
    StatusText,
    identity_of,
    report_of,
    result_of,
)
from rltools_host.errors import (
    BrokenEnvironmentError,
    DamagedFileError,
    LinkLostError,
    TrainingFaultError,
)

QUIET_S = 2.0  # without a report: ask how the board stands
IDLE_S = 0.1
GATHER_S = 0.1  # reports that come within this time are taken in together
STATE_IN_TEXT = "; state "  # of a fault's text: an environment's step is to blame
GATHER_BYTES = 2048  # as long as they are no more than this: the link's buffers must not fill


class TrainingClient:
    """The client that commands a board that trains, and receives its reports."""

    def __init__(self, connection: Connection, files: FileClient) -> None:
        self._connection = connection
        self._files = files
        self._queue = connection.open_queue(
            "RLT_PROGRESS", "RLT_EVALUATION", "RLT_RESULT", "RLT_IDENTITY", "STATUSTEXT"
        )
        self._identity: Identity | None = None  # the last identity among the events
        self._fault_text = ""
        self._newest: dict[type[Report], tuple[int, bytes]] = {}  # step and payload

    # -- commands ----------------------------------------------------------------------------------

    def start(self, rest_above: float | None = None) -> None:
        """Start a new training run.

        `rest_above` is the largest mean return of an evaluation so far: a board that keeps no best
        policy pauses after a larger one, and its result says so. None: it does not pause.
        """
        self._lead(self._dialect.MAV_CMD_RLT_START, "start", rest_above)

    def resume(self, rest_above: float | None = None, evaluates: bool = False) -> None:
        """Continue a paused training run; `rest_above` as for `start`.

        A run whose checkpoint was uploaded `evaluates` its policy first, if it was paused before
        its evaluation ended.
        """
        self._lead(self._dialect.MAV_CMD_RLT_RESUME, "resume", rest_above, float(evaluates))

    def _lead(
        self, command: int, verb: str, rest_above: float | None, evaluates: float = 0.0
    ) -> None:
        """Send a command that leads into training, or to its end if no steps are left."""
        token = float(1 + secrets.randbelow(2**24 - 1))  # so many a float holds exactly
        rests = (0.0, 0.0) if rest_above is None else (1.0, rest_above)
        self._command(command, verb, (State.TRAINING, State.FINISHED), (token, *rests, evaluates))
        self._forget_identity()

    def pause(self) -> None:
        """Ask for a pause; the board then sends its result."""
        self._command(self._dialect.MAV_CMD_RLT_PAUSE, "pause", (State.PAUSED, State.FINISHED))

    def result(self) -> Result:
        """Return the result of a board that is paused or finished."""
        return ask(self._connection, "RLT_RESULT", result_of, "its result")

    def kept_evaluations(self) -> list[Evaluation]:
        """Return the evaluation of the best policy that a board at rest keeps, and its last one.

        Empty if there was none.
        """
        dialect, kept = self._dialect, list[Evaluation]()
        number = dialect.MAVLINK_MSG_ID_RLT_EVALUATION

        def answer_of(message: Message) -> list[Evaluation] | None:
            if message.get_type() == "COMMAND_ACK":
                is_ours = message.command == dialect.MAV_CMD_REQUEST_MESSAGE
                return [] if is_ours and message.result != dialect.MAV_RESULT_ACCEPTED else None
            evaluation = report_of(message)
            assert isinstance(evaluation, Evaluation)
            kept.append(evaluation)
            return kept if len(kept) > 1 else None

        with Exchange(self._connection, "RLT_EVALUATION", "COMMAND_ACK") as exchange:
            found = exchange.ask(
                lambda: self._connection.request_message(number), answer_of, "its evaluations"
            )
        self._queue.drop("RLT_EVALUATION")
        return found

    def upload_checkpoint(self, image: bytes, progress: Progress | None = None) -> None:
        """Put a checkpoint into the board's memory, which verifies it and is then paused."""
        with Exchange(self._connection) as exchange:
            self._files.upload(CHECKPOINT_PATH, image, progress)
            if self._state() not in (State.PAUSED, State.FINISHED):
                exchange.because()
                raise DamagedFileError(
                    f"the board on {self._connection.description} refuses the checkpoint: "
                    f"{exchange.error_text or 'it arrived damaged'}; try again"
                )

    def _command(
        self,
        command: int,
        verb: str,
        states: tuple[int, ...],
        parameters: tuple[float, ...] = (),
    ) -> None:
        """Send a command until it is acknowledged. `states` are those that it leads to."""
        with Exchange(self._connection, "COMMAND_ACK") as exchange:
            if exchange.command(command, verb, *parameters):
                return
            state = self._state()
            if exchange.sent > 1 and state in states:
                return  # the first one was carried out, and its acknowledgement lost
            name = State.NAMES[state] if state < len(State.NAMES) else f"in state {state}"
            raise TrainingFaultError(
                f"the board on {self._connection.description} is {name} and refuses to {verb}: "
                f"reset it, then try again{exchange.because()}"
            )

    def _state(self) -> int:
        """Return the board's present state."""
        return ask(self._connection, "RLT_IDENTITY", identity_of, "its identity").state

    def _forget_identity(self) -> None:
        """Drop the messages from before the board obeyed a command.

        The queue ends at the command's acknowledgement: what follows is not in it yet.
        """
        self._queue.drop("RLT_RESULT", "RLT_IDENTITY")
        self._identity = None
        self._fault_text = ""
        self._newest.clear()

    # -- events ------------------------------------------------------------------------------------

    def poll(self, timeout_s: float) -> list[Event]:
        """Return the events that have come, after waiting for the first at most this long."""
        if not self._queue:
            self._connection.deliver(timeout_s)
        return self.remaining_events()

    def remaining_events(self) -> list[Event]:
        """Return the events that have come already, also over a link that is lost meanwhile."""
        self._connection.deliver_arrived()
        events: list[Event] = []
        while (item := self._queue.take()) is not None:
            event = self._take_text(item) if isinstance(item, StatusText) else self._event_of(item)
            if event is not None:
                events.append(event)
        return events

    def events(
        self,
        idle: Callable[[], None] | None = None,
        gather: Callable[[float], None] | None = None,
    ) -> Iterator[Event]:
        """Yield events until training is at rest: the last one is a Result.

        `idle` is called at least every IDLE_S and GATHER_S. `gather`, called with the longest
        time that it may take, waits for more reports to come: a board that is a process on this
        machine may have to share a core with this one, and each awakening takes from its time. A
        lost RLT_RESULT is asked for again. Raises LinkLostError after a long silence,
        TrainingFaultError on a fault.
        """
        connection = self._connection
        connection.expect_signs()
        last_sign = connection.clock()  # the last report, or question how the board stands
        while True:
            received_before = connection.bytes_received
            for event in self.poll(IDLE_S):
                last_sign = connection.clock()
                yield event
                if isinstance(event, Result):
                    return
                if isinstance(event, StatusText) and event.is_error:
                    last_sign = -math.inf  # ask at once
            if idle is not None:
                idle()
            connection.check_silence()
            self._check_identity()
            now = connection.clock()
            if now - last_sign > QUIET_S:
                last_sign = now
                connection.request_message(self._dialect.MAVLINK_MSG_ID_RLT_IDENTITY)
            if gather is not None and connection.bytes_received - received_before <= GATHER_BYTES:
                gather(GATHER_S)

    def _check_identity(self) -> None:
        """Act on an identity that came among the events: a fault, a restart, a lost result."""
        identity, self._identity = self._identity, None
        if identity is None:
            return
        if identity.state == State.FAULT:
            why = self._fault_text or "a value is not finite"
            why = why.removeprefix("training stopped: ")
            stopped = f"training stopped on {self._connection.description}: {why}; "
            if STATE_IN_TEXT in why:
                raise BrokenEnvironmentError(
                    f"{stopped}fix the environment, or end its episodes before", why
                )
            raise TrainingFaultError(f"{stopped}try a smaller learning_rate with --set", why)
        if identity.state == State.IDLE:
            raise LinkLostError(
                f"the board on {self._connection.description} restarted and lost its training "
                "state: start again"
            )
        if identity.state in (State.PAUSED, State.FINISHED):
            self._connection.request_message(self._dialect.MAVLINK_MSG_ID_RLT_RESULT)

    def _event_of(self, message: Message) -> Event | None:
        if (identity := identity_of(message)) is not None:
            self._identity = identity
        report = report_of(message)
        if report is None:
            return result_of(message)
        return report if self._is_new(report, payload_of(message)) else None

    def _is_new(self, report: Report, payload: bytes) -> bool:
        """Return False for a report that came before, or after a later one."""
        step, before = self._newest.get(type(report), (0, b""))
        if report.step < step or payload == before:
            return False
        self._newest[type(report)] = report.step, payload
        return True

    def _take_text(self, text: StatusText) -> StatusText:
        if text.severity <= SEVERITY_CRITICAL:
            self._fault_text = text.text
        return text

    @property
    def _dialect(self) -> Dialect:
        return self._connection.dialect
